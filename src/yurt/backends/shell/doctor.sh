# Examines a site for `yurt doctor`. Follows own.sh; doctor.sh of a scheduler may follow. Changes nothing but a file of its
# own in BASE, which it removes.
# arguments: MARK BASE MODULES PATHS. Each section follows a line "MARK name". BASE is yurt's folder on the site. MODULES
# are words. PATHS are lines KEY=PATH of the context's settings that name files.
mark=$1 base=$2 modules=$3 paths=$4
section() { printf '\n%s %s\n' "$mark" "$1"; }
limited() { if command -v timeout > /dev/null 2>&1; then timeout 20 "$@"; else "$@"; fi; }
login_shell() { if command -v bash > /dev/null 2>&1; then limited bash -lc "$1"; else limited sh -lc "$1"; fi; }
export LC_ALL=C

section begin
date +%s

section who
id -un
uname -n
printf '%s\n' "${SHELL-}"

section tools
for tool in git rsync unison python3 tar zstd; do
  command -v "$tool" > /dev/null 2>&1 || continue
  flag=--version
  [ "$tool" != unison ] || flag=-version
  printf '%s %s\n' "$tool" "$(limited "$tool" "$flag" 2>&1 < /dev/null | head -n 1)"
done

section profile
said=$(login_shell : 2>&1 < /dev/null)
echo "code $?"
[ -z "$said" ] || printf '%s\n' "$said" | head -n 3

section space # NAME TOTAL-KB FREE-KB INODES FREE-INODES PATH
nearest=$base
while [ ! -d "$nearest" ] && [ -n "$nearest" ]; do nearest=${nearest%/*}; done
nearest=${nearest:-/}
for each in "home ${HOME:-/}" "storage $nearest"; do
  path=${each#* }
  blocks=$(limited df -Pk "$path" 2> /dev/null | awk 'END { print $2, $4 }')
  nodes=$(limited df -Pi "$path" 2> /dev/null | awk 'END { print $2, $4 }')
  printf '%s %s %s %s\n' "${each%% *}" "${blocks:-- -}" "${nodes:-- -}" "$path"
done

section quota
if command -v quota > /dev/null 2>&1; then limited quota -w 2> /dev/null < /dev/null | tail -n +3; fi
if command -v lfs > /dev/null 2>&1; then
  for path in "${HOME:-/}" "$nearest"; do limited lfs quota -q -u "$(id -un)" "$path" 2> /dev/null < /dev/null | head -n 3; done
fi

section owner
unsafe=
own "${base%/*}" "$base"
printf '%s %s\n' "$?" "$unsafe"
[ "$(cd -P "$nearest" 2> /dev/null && pwd)" = "$nearest" ] || printf 'real %s\n' "$(cd -P "$nearest" 2> /dev/null && pwd)"

section write
test_write() {
  part=$nearest/.yurt-doctor-$(uname -n)-$$
  (umask 077 && printf 'yurt %s\n' "$$" > "$part") && mv -f "$part" "$part.2" && [ "$(cat "$part.2")" = "yurt $$" ]
  written=$?
  rm -f "$part" "$part.2"
  return "$written"
}
test_write 2>&1 && echo written

section modules
login_shell 'type module > /dev/null 2>&1 && echo "found ${LMOD_VERSION:+Lmod}"' 2> /dev/null < /dev/null | tail -n 1
if [ -n "$modules" ]; then
  # shellcheck disable=SC2016 # the login shell expands it
  YURT_MODULES=$modules login_shell 'for each in $YURT_MODULES; do
    module is-avail "$each" > /dev/null 2>&1 || module -t avail "$each" 2>&1 | grep -q -F "$each" || echo "missing $each"
  done' 2> /dev/null < /dev/null | grep '^missing '
fi

section paths
printf '%s\n' "$paths" | while IFS= read -r each; do
  [ -z "$each" ] || [ -e "${each#*=}" ] || printf '%s\n' "$each"
done
