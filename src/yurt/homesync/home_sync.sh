# Without arguments: a sync in batch mode. Other arguments go to Unison as they are. The exit code is Unison's, the
# highest of all places: 0 in sync, 1 conflicts, 2 files that could not be copied, 3 nothing is known to be in sync.
# Set before: count keep finish quoted_backups hub, and for each place NUMBER: name_N client_N reach_N().
umask 077
UNISON=${UNISON:-$HOME/.unison}
export UNISON
case " $* " in
  *" -help "* | *" --help "* | *" -version "* | *" --version "* | *" -doc "*) exec unison "$@" ;;
esac
[ $# -gt 0 ] || set -- -batch -auto -contactquietly -log=false
mkdir -p "$UNISON/yurt"
if [ ! -O "$UNISON/yurt" ]; then
  echo "home_sync: cannot use the folder $UNISON/yurt" >&2
  exit 3
fi

is_full() { # is_full ARGUMENT...: whether Unison syncs everything and asks nothing, so that a good sync releases jobs
  batch=1
  for word; do
    case $word in
      -batch) batch=0 ;;
      -auto | -terse | -silent | -times | -dumbtty | -contactquietly | -log=false) ;;
      *) return 1 ;;
    esac
  done
  return $batch
}
finish() { # finish GOOD TOKEN FOLDERS REACH PLACE: looks for backups, expires old ones, and releases jobs
  { printf "set -- '%s' %s %s %s %s\n" "$1" "$quoted_backups" "$until" "$2" "$3" && printf %s "$finish"; } | "$4" | sed -n \
    -e "s/^released \(.*\)/released job $5:\1/p" -e "s/^left \([^ ]*\) \(.*\)/job $5:\1 stays held: \2/p" \
    -e "s/^backup \(.*\)/replaced versions are on $5 in \1/p"
}
sync_all() { # sync_all SCRIPT ARGUMENT...: as Unison; that only the modes of the two homes differ is no conflict
  { { sh "$@" && echo 0 > "$1.code" || echo "$?" > "$1.code"; } 2>&1 >&3 3>&- | tee "$1.err" >&2; } 3>&1
  read -r code < "$1.code" || code=3
  if [ "$code" = 1 ] && [ "$(grep -cE '^  (skipped|failed|partially transferred): ' "$1.err")" = 1 ] &&
    grep -qx '  skipped:  (properties changed on both sides)' "$1.err"; then code=0; fi
  return "$code"
}
# shellcheck disable=SC2317 # called by name
reach_here() { sh; }

seconds=$(($(date +%s) - keep))
until=$(date -u -d "@$seconds" +%Y%m%d%H%M%S 2> /dev/null || date -u -r "$seconds" +%Y%m%d%H%M%S)
full='' highest=0 number=0 first='' folders='' script=''
if is_full "$@"; then full=yes; fi
trap '[ -z "$script" ] || rm -f "$script" "$script".*' EXIT
trap 'exit 130' INT TERM HUP
for word; do # its name in older versions
  shift
  case $word in -testServer) word=-testserver ;; esac
  set -- "$@" "$word"
done
while [ "$number" -lt "$count" ]; do
  number=$((number + 1))
  token=$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n') stamp=$(date -u +%Y%m%dT%H%M%SZ)
  eval "text=\$client_$number name=\$name_$number"
  script=$UNISON/yurt/client.$token
  # The text contains its own length, so what is replaced has the same length.
  printf %s "$text" | sed "s/@TOKEN!!/$token/g; s/@STAMP_OF_SYNC!!/$stamp/g" > "$script"
  [ -z "$full" ] || echo "syncing $hub with $name"
  if [ -n "$full" ]; then sync_all "$script" "$@"; else sh "$script" "$@"; fi
  code=$?
  rm -f "$script" "$script".*
  case $code in 0 | 1 | 2) ;; *) code=3 ;; esac
  [ "$code" -le "$highest" ] || highest=$code
  first=${first:-$token}
  if [ "$code" -lt 3 ]; then
    folders="$folders $stamp-$token" good=''
    [ "$full$code" != yes0 ] || good=1
    finish "$good" "$token" "$stamp-$token" "reach_$number" "$name"
  fi
done
good=''
[ "$full$highest" != yes0 ] || good=1
[ -z "$folders" ] || finish "$good" "$first" "$folders" reach_here "$hub"
exit "$highest"
