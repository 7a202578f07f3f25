# Builds an environment on a site. Several builders may run at a time, also on several hosts: one builds, others wait.
# Needs gate.sh, environment.sh, env_state.sh and env_conda.sh before it.
# arguments: FOLDER NONCE KIND PYTHON UV CUDA MODULES-INIT [MODULE]...
# KIND is lock or conda. PYTHON is the program for the environment; UV that program, or empty for pip; for conda the
# installer to use on a site without conda. The file `wheels` lists uploaded wheels to use instead of the index of the site.
# CUDA is the version that the driver supports, for conda; or empty. A file `conda` is the path of the conda that built the environment and activates it.
# The environment is a folder of its own for each builder, because its path is written into its files. `ready`, written
# once and last, names the complete one. So an interrupted build is never used, whatever became of its builder.
folder=$1 nonce=$2 kind=$3 python=$4 uv=$5 cuda=$6 modules=$7
shift 7
umask 077
tools=$(dirname "$(dirname "$folder")")/tools
me=$nonce patience='' yurt_recorded=''
cd "$folder" || exit 1

release_jobs() { # the jobs that wait for this environment
  for each in wait.*; do
    [ -e "$each" ] || continue
    scontrol release "${each#wait.}" 2> /dev/null
    rm -f "$each"
  done
}
wait_for_builder() { # until the other builder has finished, or has stopped for a minute
  still=0 last=
  while [ -e builder ] && [ "$still" -lt "${YURT_LEASE:-60}" ]; do
    now=$(cat beat 2> /dev/null)
    if [ "$now" = "$last" ]; then still=$((still + 1)); else still=0 last=$now; fi
    sleep 1
  done
  [ ! -e builder ] || mv -T builder "builder.$nonce" 2> /dev/null
  rm -f "builder.$nonce"
}
claim() { # returns when this process is the builder
  while :; do
    if env_is_whole .; then release_jobs && exit 0; fi
    holder=$(write_once builder "$nonce") || end "cannot write to $folder"
    rm -f "starting.$nonce"
    [ "$holder" != "$nonce" ] || break
    [ ! -e failed ] || [ -z "${waited-}" ] || exit 1 # it has just failed
    wait_for_builder
    waited=yes
  done
}
beat() { # in the background, as long as the builder lives
  number=0
  while kill -0 "$$" 2> /dev/null && [ "$(cat builder 2> /dev/null)" = "$nonce" ]; do
    number=$((number + 1))
    echo "$nonce $number" > "beat.$nonce" && mv -f "beat.$nonce" beat
    sleep 5
  done 2> /dev/null
}
end() { # end [REASON]: with a reason, the build has failed
  trap '' TERM INT HUP
  if [ -n "${1-}" ]; then
    rm -rf "$name"
    [ -e "$tools/conda-$nonce/complete" ] || rm -rf "$tools/conda-$nonce"
    { printf '%s\n' "$1" && tail -c 20000 build.log; } > "failed.$nonce" && mv -f "failed.$nonce" failed
  fi
  rm -rf "$name.cache"
  rm -f "starting.$nonce"
  [ "$(cat builder 2> /dev/null)" != "$nonce" ] || rm -f builder beat
  release_jobs
  [ -z "${1-}" ]
  exit
}
# shellcheck disable=SC2317 # called by a trap
stop() {
  trap '' TERM INT HUP
  kill -TERM 0 # also the installer; this process is the leader of its group
  end "the build was stopped"
}
last_error() { # the line that a reader needs first
  if grep -E '^(Python [0-9.]+ cannot be downloaded on|the installer of conda) ' build.log; then return; fi
  if grep -q -E 'NewConnectionError|name resolution|[Nn]etwork is unreachable|error sending request|dns error' build.log; then
    echo "the package index cannot be reached from $(uname -n)"
    return
  fi
  grep -v '^ *$' build.log | grep -i -E '^ *(error|fatal|×|╰─▶|[a-z]+error:|cause: (Because|Hash mismatch))|no space left|quota exceeded|no matching distribution' | tail -n 1 |
    sed 's/^[ ×╰─▶]*//; s/^[Ee][Rr][Rr][Oo][Rr]: *//; s/^cause: //' | cut -c 1-300
}
create() { # in build.log
  set -e
  echo creating > phase
  if [ "$kind" = conda ]; then
    find_conda "$tools"
    [ -n "$conda" ] || [ -z "$uv" ] || install_conda "$tools" "$uv" "$nonce"
    [ -n "$conda" ] || { echo "error: command 'conda' not found" && return 1; }
    echo "$conda" > "conda.$nonce" && mv -f "conda.$nonce" conda
    # conda itself sees no GPU on a login node.
    [ -z "$cuda" ] || export CONDA_OVERRIDE_CUDA="${CONDA_OVERRIDE_CUDA:-$cuda}"
    if [ -s explicit ]; then
      "$conda" create -y -q -p "$folder/$name" --file explicit
    else
      "$conda" env create -q -p "$folder/$name" -f environment.yml
      "$conda" list -p "$folder/$name" --explicit --md5 > "explicit.$nonce" && mv -f "explicit.$nonce" explicit
    fi
    "$conda" list -p "$folder/$name" --export > "lock.$nonce"
    mv -f "lock.$nonce" lock
    return
  fi
  if [ -n "$uv" ]; then
    export UV_CACHE_DIR="$folder/$name.cache" UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS="${UV_PYTHON_DOWNLOADS:-never}"
    case $python in
      managed:*) # a Python of uv; several builders may download it at once
        UV_PYTHON_INSTALL_DIR=$tools/python UV_PYTHON_DOWNLOADS=automatic \
          "$uv" venv --no-project --no-config --relocatable --python-preference only-managed --python "${python#managed:}" "$name" ||
          { echo "Python ${python#managed:} cannot be downloaded on $(uname -n)" && return 1; }
        ;;
      *) "$uv" venv --no-project --no-config --relocatable --python "$python" "$name" ;;
    esac
    echo installing > phase
    set -- "$uv" pip install --python "$name/bin/python" --no-deps --compile-bytecode --require-hashes -r lock
    backend=$(sed -n 's/^# torch-backend: //p' lock) # PyTorch for the driver of the site, from PyTorch's own index
    [ -z "$backend" ] || [ -s wheels ] || set -- "$@" --torch-backend "$backend"
  else
    "$python" -m venv "$name"
    echo installing > phase
    set -- "$name/bin/python" -m pip install --no-input --disable-pip-version-check --no-cache-dir --no-deps --require-hashes -r lock
  fi
  if [ -s wheels ]; then
    mkdir -p "$name.cache/wheels"
    while IFS= read -r each; do ln -s "$folder/../../wheels/$each" "$name.cache/wheels/"; done < wheels
    set -- "$@" --no-index --find-links "$name.cache/wheels"
  fi
  if [ -s lock ] && grep -q '^[^# ]' lock; then "$@"; fi
}

name=env-$nonce
trap 'rm -f "starting.$nonce" "build.$nonce.sh"' EXIT
claim
trap stop TERM INT HUP
rm -f failed
beat &
if [ -e ready ]; then cat ready >> retired && rm -f ready; fi # a purge has removed files of it; runs may be using it
for each in env-*; do # left by interrupted builds
  [ "$each" = "$name" ] || grep -s -q -F -e "$each " retired || rm -rf "$each"
done
(
  [ $# -eq 0 ] || load_modules "$modules"
  for each; do load_module "$each"; done
  create
) > build.log 2>&1 &
wait $! || end "$(reason=$(last_error) && echo "${reason:-the build failed}")"
"$name/bin/python" -c '' > /dev/null 2>> build.log || end "the Python of the environment does not run"
rm -rf "$name.cache"
entries=$(find "$name" | wc -l) kilobytes=$(du -sk "$name" | cut -f 1)
[ "$(cat builder 2> /dev/null)" = "$nonce" ] || end "another builder has taken over"
write_once ready "$name $((entries)) $kilobytes" > /dev/null || end "no space left for the environment"
: > used
rm -f phase
end
