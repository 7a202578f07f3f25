# Receives the definition of an environment and starts its build in the background. Safe to repeat.
# Needs env_state.sh before it.
# arguments: FOLDER NONCE ON SIZES LEASE [ARGUMENT]...
# SIZES describes standard input: size and name of each file. The first lock of an environment is permanent. The
# arguments are those of env_build.sh after NONCE. ON: login, or node with the options of sbatch, a line each, after a colon.
umask 077
folder=$1 nonce=$2 on=$3 sizes=$4 lease=$5
shift 5
mkdir -p "$folder" || exit 1
cd "$folder" || exit 1
# shellcheck disable=SC2086 # sizes and names, which are words
receive() {
  while [ $# -gt 0 ]; do
    head -c "$1" > "$2.$nonce"
    [ "$(wc -c < "$2.$nonce")" -eq "$1" ] || { rm -f ./*."$nonce" && exit 45; }
    shift 2
  done
}
# shellcheck disable=SC2086 # sizes and names, which are words
receive $sizes
if ln "build.sh.$nonce" .link 2> /dev/null; then rm -f .link; else : > @NO_LINKS@; fi
for each in lock environment.yml explicit; do
  [ -s "$each" ] || rm -f "$each" # damaged
  [ ! -e "$each.$nonce" ] || ln "$each.$nonce" "$each" 2> /dev/null || [ -e "$each" ] || mv -f "$each.$nonce" "$each"
  rm -f "$each.$nonce"
done
[ ! -e "pack.$nonce" ] || mv -f "pack.$nonce" pack
if [ -e "wheels.$nonce" ]; then mv -f "wheels.$nonce" wheels; else rm -f wheels; fi
mv -f "definition.json.$nonce" definition.json && mv -f "build.sh.$nonce" "build.$nonce.sh" || exit 1
if env_is_complete .; then rm -f "build.$nonce.sh" && echo ready && exit 0; fi
if env_is_idle .; then rm -f failed lacking; fi
: > "starting.$nonce" # until it is the builder, or waits for another one
export YURT_LEASE="$lease"
set -- "$folder/build.$nonce.sh" "$folder" "$nonce" "$@"
case $on in
  login)
    # A login shell: programs such as uv and conda are often found only there.
    # shellcheck disable=SC2016
    setsid nice -n 10 bash -lc 'exec bash "$@"' bash "$@" > /dev/null 2>&1 < /dev/null &
    ;;
  *)
    options=${on#*:} count=$#
    while IFS= read -r each; do [ -z "$each" ] || set -- "$@" "$each"; done << end
$options
end
    while [ "$count" -gt 0 ]; do set -- "$@" "$1" && shift && count=$((count - 1)); done
    sbatch --parsable --output=/dev/null --job-name="yurt-env-${folder##*/}" "$@" || exit 8
    ;;
esac
echo building
