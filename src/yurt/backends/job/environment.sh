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
use_conda() { # use_conda NAME
  for yurt_each in conda "$HOME/miniconda3/bin/conda" "$HOME/miniforge3/bin/conda" "$HOME/anaconda3/bin/conda"; do
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
