# The environment of your command: modules, conda, container.
fail() { # fail REASON: ends before your command starts
  echo "yurt: $*" >&2
  [ -z "${yurt_recorded-}" ] || printf '%s\n' "$*" > "$yurt_recorded" 2> /dev/null
  exit 78
}
load_modules() { # load_modules FOLDER: `module` is defined in login shells only, which a job is not
  type module > /dev/null 2>&1 && return
  for yurt_each in "$1/init/bash" "$1/init/sh" /etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do
    if [ -r "$yurt_each" ]; then . "$yurt_each" && return; fi
  done
  fail "command 'module' not found on this node"
}
load_module() { # load_module NAME
  module load "$1" && return
  case $( (module load "$1") 2>&1) in
    *[Uu]nable\ to\ locate* | *unknown* | *[Nn]ot\ found* | *[Uu]nknown\ module*) fail "module $1 not found" ;;
  esac
  fail "module load $1 failed"
}
use_venv() { # use_venv FOLDER
  [ -d "$1" ] || fail "virtual environment $1 not found"
  [ -r "$1/bin/activate" ] || fail "$1 is not a virtual environment: it has no bin/activate"
  "$1/bin/python" -c '' > /dev/null 2>&1 || fail "the Python of the virtual environment $1 does not run on this node"
  . "$1/bin/activate" || fail "cannot activate the virtual environment $1"
}
use_env() { # use_env FOLDER [unpack]: an environment that yurt built; waits while it is being built
  yurt_last='' yurt_still=0
  until env_is_ready "$1"; do
    if env_is_idle "$1"; then
      env_is_ready "$1" && break
      [ -e "$1/failed" ] || fail "its environment ${1##*/} is not built; build it with \`yurt env build\`"
      fail "its environment was not built: $(env_failure "$1")"
    fi
    yurt_now=$(cat "$1/beat" 2> /dev/null)
    if [ "$yurt_now" = "$yurt_last" ]; then yurt_still=$((yurt_still + 1)); else yurt_still=0 yurt_last=$yurt_now; fi
    [ "$yurt_still" -lt 90 ] || fail "the build of its environment ${1##*/} was interrupted; repeat it with \`yurt env build\`"
    sleep 1
  done
  if [ -n "$yurt_recorded" ]; then
    touch -c "$1/used" 2> /dev/null
    yurt_now=$(env_changes "$yurt_env_path")
    [ -z "$yurt_now" ] || fail "its environment ${1##*/} is not as it was built: $yurt_now; submit the run again, and yurt builds it again"
  fi
  unset yurt_last yurt_still yurt_now
  [ -z "${2-}" ] || use_copy "$1"
  if [ -d "$yurt_env_path/conda-meta" ]; then
    [ -n "${PYTHONNOUSERSITE+x}" ] || export PYTHONNOUSERSITE=1 # as in a venv, packages in ~/.local are not a part of it
    use_conda "$yurt_env_path" "$(cat "$1/conda" 2> /dev/null)"
  else
    use_venv "$yurt_env_path"
  fi
}
use_conda() { # use_conda NAME [PROGRAM]
  for yurt_each in ${2:+"$2"} conda "$HOME/miniconda3/bin/conda" "$HOME/miniforge3/bin/conda" "$HOME/anaconda3/bin/conda"; do
    command -v "$yurt_each" > /dev/null 2>&1 || continue
    eval "$("$yurt_each" shell.posix hook)" && conda activate "$1" && return
    fail "conda environment $1 not found, or not usable"
  done
  fail "command 'conda' not found on this node"
}
container_engine='for engine in apptainer singularity; do command -v "$engine" > /dev/null && exec "$engine" "$@"; done
  why="neither apptainer nor singularity found on this node"
  echo "yurt: $why" >&2
  echo "$why" > "$0"
  exit 78'
