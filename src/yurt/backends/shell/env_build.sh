# Builds an environment on a site. Several builders may run at a time, also on several hosts: one builds, others wait.
# Needs gate.sh, environment.sh, env_state.sh, env_conda.sh and env_index.sh before it.
# arguments: FOLDER NONCE KIND PYTHON UV CUDA MODULES-INIT [MODULE]...
# KIND is lock or conda. PYTHON is the program for the environment; UV that program, or empty for pip; for conda the
# installer to use on a site without conda. CUDA is the version that the driver supports, for conda; or empty.
# The file `wheels` lists files to install from, uploaded ones (SHA256/NAME) and absolute paths; `--no-index` means no
# others. If the index of the site lacks packages, `lacking` names them, and jobs stay held: the next yurt command uploads
# them. A file `conda` is the path of the conda that built the environment and activates it.
# The environment is a folder of its own for each builder, because its path is written into its files. `ready`, written
# once and last, names the complete one. So an interrupted build is never used, whatever became of its builder.
folder=$1 nonce=$2 kind=$3 python=$4 uv=$5 cuda=$6 modules=$7
shift 7
umask 077
tools=$(dirname "$(dirname "$folder")")/tools
me=$nonce patience='' yurt_recorded='' built=''
cd "$folder" || exit 1

release_jobs() { # the jobs that wait for this environment
  for each in wait.*; do
    [ -e "$each" ] || continue
    release_built . "${each#wait.}"
  done
}
write_first() { # write_first NAME TEXT: as write_once; also on a disk without hard links, NAME is a file
  write_once "$1" "$2" > /dev/null || return
  [ -e "$1" ] || { printf '%s\n' "$text" > "$1.$nonce" && mv -f "$1.$nonce" "$1"; }
  printf '%s\n' "$text"
}
remove_first() { # remove_first NAME: makes room for another one
  rm -f "$1"
  rm -rf "$1.d"
}
wait_for_builder() { # until the other builder has finished, or has stopped for a minute
  still=0 last=
  env_is_building . || still=${YURT_LEASE:-60} # by the clock of the file system, it stopped minutes ago
  while [ -e builder ] && [ "$still" -lt "${YURT_LEASE:-60}" ]; do
    now=$(cat beat 2> /dev/null)
    if [ "$now" = "$last" ]; then still=$((still + 1)); else still=0 last=$now; fi
    sleep 1
  done
  [ ! -e builder ] || { mv -T builder "builder.$nonce" && rm -rf builder.d; } 2> /dev/null
  rm -f "builder.$nonce"
}
claim() { # returns when this process is the builder
  while :; do
    if env_is_complete .; then release_jobs && exit 0; fi
    if [ -n "${waited-}" ] && { [ -e failed ] || [ -e lacking ]; }; then exit 1; fi # it has just failed
    holder=$(write_first builder "$nonce") || end "cannot write to $folder"
    [ "$holder" != "$nonce" ] || echo "$nonce 0" > beat # before the next line: somebody may be looking
    rm -f "starting.$nonce"
    [ "$holder" != "$nonce" ] || break
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
end() { # end [REASON]: with a reason, the build has failed; not if only the packed file is missing
  trap '' TERM INT HUP
  if [ -n "${1-}" ] && [ -z "$built" ]; then
    remove_env_files "$name"
    [ -e "$tools/conda-$nonce/complete" ] || rm -rf "$tools/conda-$nonce"
    if ! mv -f "$name.cache/lacking" lacking 2> /dev/null; then
      { printf '%s\n' "$1" && tail -c 20000 build.log; } > "failed.$nonce" && mv -f "failed.$nonce" failed
    fi
  fi
  rm -rf "$name.cache"
  rm -f "starting.$nonce" "packing.$nonce"
  [ "$(cat builder 2> /dev/null)" != "$nonce" ] || { remove_first builder && rm -f beat phase; }
  [ -e lacking ] || release_jobs
  [ -z "${1-}" ]
  exit
}
# shellcheck disable=SC2317 # called by a trap
stop() {
  trap '' TERM INT HUP
  kill -TERM 0 # also the installer; this process is the leader of its group
  end "the build was stopped"
}
no_network='NewConnectionError|name resolution|[Nn]etwork is unreachable|error sending request|dns error'
last_error() { # the line that a reader needs first
  if grep -E '^(Python [0-9.]+ cannot be downloaded on|the installer of conda) ' build.log; then return; fi
  if grep -q -E "$no_network" build.log; then
    echo "the package index cannot be reached from $(uname -n)"
    return
  fi
  grep -v '^ *$' build.log | grep -i -E '^ *(error|fatal|×|╰─▶|[a-z]+error:|cause: (Because|Hash mismatch))|no space left|quota exceeded|no matching distribution' | tail -n 1 |
    sed 's/^[ ×╰─▶]*//; s/^[Ee][Rr][Rr][Oo][Rr]: *//; s/^cause: //' | cut -c 1-300
}
split_lock() { # `hashed`: options and packages with hashes; `addressed`: those that have an address instead of a version
  mkdir -p "$name.cache"
  # Without an index, the files of the latter are uploaded, too, so their names are enough.
  awk -v to="$name.cache/" -v named="$(grep -s -c -x -e --no-index wheels)" '
    function put() {
      if (block ~ /^[^ \n]+ @ / && (named > 0 || block !~ /--hash/)) {
        if (named > 0) sub(/ @ .*/, "", block)
        print block > (to "addressed")
      } else if (block !~ /^(#|$)/) print block > (to (block ~ /^-/ ? "options" : "locked"))
    }
    /^[^ \t]/ { put(); block = $0; next }
    { block = block "\n" $0 }
    END { put() }' lock
  [ ! -e "$name.cache/locked" ] || cat "$name.cache/options" "$name.cache/locked" > "$name.cache/hashed" 2> /dev/null || true
}
find_lacking() { # find_lacking INSTALLER...: lists the packages that neither an index nor a file has, once
  ! grep -s -q -E '^(--no-index$|[0-9a-f]{64}/)' wheels || return 0
  grep -o '^[^ ;]*==[^ ;]*' "$name.cache/locked" > "$name.cache/pins"
  if grep -q -E "$no_network" build.log; then # an index that the project declares, and only the user's machine reaches
    sed 's/==.*//' "$name.cache/pins" > "$name.cache/lacking"
    return
  fi
  grep -q -E 'No matching distribution|no versions? of|not found in the package' build.log || return 0
  count=0
  while IFS= read -r each; do
    count=$((count + 1))
    is_available "$count" "$@" > /dev/null 2>&1 || echo "${each%%==*}" >> "$name.cache/lacking" &
    [ $((count % 8)) -ne 0 ] || wait
  done < "$name.cache/pins"
  wait
}
is_available() { # is_available NUMBER INSTALLER...: whether it finds $each
  one=$name.cache/one.$1
  shift
  { cat "$name.cache/options" 2> /dev/null || true; } > "$one"
  if [ -n "$uv" ]; then
    echo "$each" >> "$one"
    "$@" --dry-run -r "$one"
  else # pip would download it; for a version that does not exist it lists those that do
    echo "${each%%==*}==0+none" >> "$one"
    "$@" -r "$one" 2>&1 | grep -q -F -e " ${each#*==}," -e " ${each#*==})"
  fi
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
    export UV_INDEX_STRATEGY=unsafe-best-match # any index may have the locked file; its hash says that it is the right one
    case $python in
      managed:*) # a Python of uv; several builders may download it at once
        UV_PYTHON_INSTALL_DIR=$tools/python UV_PYTHON_DOWNLOADS=automatic \
          "$uv" venv --no-project --no-config --relocatable --python-preference only-managed --python "${python#managed:}" "$name" ||
          { echo "Python ${python#managed:} cannot be downloaded on $(uname -n)" && return 1; }
        ;;
      *) "$uv" venv --no-project --no-config --relocatable --python "$python" "$name" ;;
    esac
    echo installing > phase
    use_pip_settings "$name/bin/python"
    # shellcheck disable=SC2086 # an option or nothing
    set -- "$uv" pip install $no_index --python "$name/bin/python" --no-deps --compile-bytecode
    backend=$(sed -n 's/^# torch-backend: //p' lock) # PyTorch for the driver of the site, from PyTorch's own index
    [ -z "$backend" ] || grep -s -q -x -e --no-index wheels || set -- "$@" --torch-backend "$backend"
  else
    "$python" -m venv "$name"
    echo installing > phase
    set -- "$name/bin/python" -m pip install --no-input --disable-pip-version-check --no-cache-dir --no-deps
  fi
  if [ -s wheels ]; then
    mkdir -p "$name.cache/wheels"
    while IFS= read -r each; do
      case $each in
        --no-index) set -- "$@" --no-index ;;
        /*)
          [ -r "$each" ] || { echo "error: $each is no longer in the wheelhouse" && return 1; }
          ln -s "$each" "$name.cache/wheels/"
          ;;
        *) ln -s "$folder/../../wheels/$each" "$name.cache/wheels/" ;;
      esac
    done < wheels
    # uv takes either the option or the site's own variable, pip takes both.
    export UV_FIND_LINKS="${UV_FIND_LINKS:+$UV_FIND_LINKS,}$name.cache/wheels"
    [ -n "$uv" ] || set -- "$@" --find-links "$name.cache/wheels"
  fi
  split_lock
  if [ -s "$name.cache/hashed" ] && ! "$@" --require-hashes -r "$name.cache/hashed"; then
    find_lacking "$@"
    return 1
  fi
  [ ! -s "$name.cache/addressed" ] || "$@" -r "$name.cache/addressed"
}
pack() { # makes one file of the environment, not compressed: unpacking is then as fast as the disks. Runs do without it
  [ -e pack ] && env_is_ready . || return 0
  echo packing > phase
  # A copy belongs to one job, which removes it: it is not read-only.
  tar -c --mode=u+w -f "packing.$nonce" -C "$yurt_env_path" . 2>> build.log &
  if wait $!; then mv -f "packing.$nonce" "$yurt_env_path.tar"; fi
}

protect() { # makes the environment read-only: many runs use it. A file with several names is also one of conda's cache
  find "$name" \( -type d -o -type f -links 1 \) -perm /222 -exec chmod a-w {} +
}

name=env-$nonce
trap 'rm -f "starting.$nonce" "build.$nonce.sh"' EXIT
claim
trap stop TERM INT HUP
rm -f failed lacking packing.* # left by an interrupted build
beat &
if env_is_whole .; then
  built=yes
  pack
  end
fi
if [ -e ready ]; then cat ready >> retired && remove_first ready; fi # a purge has removed files of it; runs may be using it
for each in env-*; do # left by interrupted builds
  [ "$each" = "$name" ] || grep -s -q -F -e "$each " retired || remove_env_files "$each"
done
(
  [ $# -eq 0 ] || load_modules "$modules"
  for each; do load_module "$each"; done
  create
) > build.log 2>&1 &
wait $! || end "$(reason=$(last_error) && echo "${reason:-the build failed}")"
"$name/bin/python" -c '' > /dev/null 2>> build.log || end "the Python of the environment does not run"
rm -rf "$name.cache"
env_packages "./$name" > "$name/.packages" || end "no space left for the list of packages"
find "$name" -type f -newer "$name/.packages" -exec touch -c -r "$name/.packages" {} + # their times are in the future
entries=$(find "$name" | wc -l) kilobytes=$(du -sk "$name" | cut -f 1)
# uv does not say so if it cannot write what it compiles; each run would then compile all packages again.
if [ "$kind" = lock ] && [ -n "$uv" ] && [ -z "${PYTHONPYCACHEPREFIX-}" ]; then
  sources=$(find "$name" -path '*/site-packages/*/*.py' | wc -l) compiled=$(find "$name" -name '*.pyc' | wc -l)
  [ $((compiled * 4)) -ge "$sources" ] || end "no space left on device for the compiled files of the environment"
fi
[ "$(cat builder 2> /dev/null)" = "$nonce" ] || end "another builder has taken over"
protect
write_first ready "$name $((entries)) $kilobytes" > /dev/null || end "no space left for the environment"
built=yes
: > used
pack
end
