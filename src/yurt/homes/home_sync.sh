# Without arguments: a sync in batch mode. Other arguments go to Unison as they are. The exit code is Unison's, the
# highest of all places: 0 in sync, 1 conflicts, 2 files that could not be copied, 3 nothing is known to be in sync.
# Set before: count keep finish most large_home share count_files quoted_backups quoted_root hub, and for each place NUMBER:
# name_N client_N record_N quoted_root_N reach_N().
umask 077
UNISON=${UNISON:-$HOME/.unison}
export UNISON
case " $* " in
  *" -help "* | *" --help "* | *" -version "* | *" --version "* | *" -doc "*) exec unison "$@" ;;
esac
guard='' # without arguments, a large deletion is not copied, see deletions.py
[ $# -gt 0 ] || { guard=1 && set -- -batch -auto -contactquietly -log=false; }
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
begin() { # begin CHECK [KEEP]: writes the script of a Unison for the place, with a token of its own; KEEP=1: no deletions
  token=$(date -u '+%Y%m%dT%H%M%SZ %6N') stamp=${token% *}
  token=$(printf %05x $((1${token#* } - 1000000)))$(od -An -N2 -tx1 /dev/urandom | tr -d ' \n' | cut -c 2-) # as here.py
  folders="$folders $stamp-$token"
  # The text contains its own length, so what is replaced has the same length.
  printf %s "$text" | sed "s/@TOKEN!!/$token/g; s/@STAMP_OF_SYNC!!/$stamp/g; s/@CHECK!!/$1/g; s/^keep=''\$/keep=${2-}/" > "$script"
}
run() { # run ARGUMENT...: as Unison; sets code, and keeps what it prints
  { { { sh "$script" "$@" && echo 0 > "$script.code" || echo "$?" > "$script.code"; } 2>&1 >&3 3>&- |
    tee "$script.err" >&2; } 3>&1; } | tee "$script.out"
  read -r code < "$script.code" || code=3
}
copied() { # adds what the last Unison copied to the list of the place, see sure_save
  tr '\r' '\n' < "$script.out" | sed -n 's/^.\{8\} [-<=][-=?]*[->=] .\{10\} \(.*\)  $/.\/\1/p' >> "$script.copied"
}
limited() { # limited LIST: syncs some paths, of which Unison compares the contents; sets code to that of xargs
  # shellcheck disable=SC2016 # for the other sh
  tr '\n\001' '\000\n' < "$1" | (
    xargs -0 sh -c 'for path; do shift && set -- "$@" -path "${path#./}"; done
      exec sh "$0" -batch -auto -contactquietly -log=false -fastcheck false -confirmbigdel=false "$@"' "$script"
    echo "$?" > "$script.code"
  ) | tee "$script.out"
  read -r code < "$script.code" || code=3
}
compare() { # compares the contents of files that were edited during the last sync
  begin no-check "$guard"
  mv "$script.copied" "$script.paths"
  limited "$script.paths"
  cat "$script.paths" >> "$script.copied"
  copied
}
sync_all() { # sync_all ARGUMENT...: a sync of everything; the modes of the two homes, and sockets, are no conflicts
  cat "$list" > "$script.copied" 2> /dev/null
  begin if-saved "$guard"
  run "$@"
  if [ "$code" -gt 2 ] && grep -q '^files on .* were edited during the last sync$' "$script.err"; then
    [ ! -s "$script.copied" ] || compare
    begin no-check "$guard"
    run "$@"
  fi
  copied
  sed -n 's/^  skipped: \(.*\) (would delete a file with nodeletion or nodeletionpartial set)$/\1/p' "$script.err" > "$script.gone"
  gone='^$'
  if [ -n "$guard" ] && [ -s "$script.gone" ] && delete; then gone=' (would delete a file with nodeletion '; fi
  if [ "$code" = 1 ] && grep -qE '^  (skipped|failed|partially transferred): ' "$script.err" &&
    ! grep -E '^  (skipped|failed|partially transferred): ' "$script.err" | grep -v "$gone" |
    grep -vx '  skipped:  (properties changed on both sides)' | grep -qv ' has unknown file type)$'; then code=0; fi
}
count_gone() { # count_gone REACH ROOT: prints how many files of a home the deletions would remove, and how many it has;
  # nothing if the home cannot say
  {
    printf 'count() {\n%s\n}\ncount %s << "%s"\n' "$count_files" "$2" "$token"
    cat "$script.gone"
    printf '%s\n' "$token"
  } | "$1" | awk -v paths="$(wc -l < "$script.gone")" '{ sum += last; last = $1 } END { if (NR == paths + 1) print sum, last }'
}
delete() { # copies the deletions that the last Unison left out, unless they are many
  read -r files home << end
$(count_gone "reach_$number" "$root")
end
  read -r files_here home_here << end
$(count_gone reach_here "$quoted_root")
end
  if [ -z "$files" ] || [ -z "$files_here" ]; then
    echo "home_sync: cannot count the files that are deleted on one side; they are kept" >&2
    return 1
  fi
  files=$((files + files_here))
  [ "$home" -ge "$home_here" ] || home=$home_here
  if [ "$files" -gt "$most" ] || { [ "$home" -ge "$large_home" ] && [ $((files * share)) -gt "$home" ]; }; then
    echo "home_sync: $files files are deleted on one side only; confirm that with 'home_sync -batch'" >&2
    return 1
  fi
  before=$code counts=$token # the sync of everything counts for jobs that wait
  begin no-begin
  limited "$script.gone"
  token=$counts
  [ "$code" = 0 ] && code=$before && return
  code=2
}
finish() { # finish GOOD TOKEN FOLDERS REACH PLACE ROOT RECORDS: see finish.sh; prints what happened
  { printf "set -- '%s' %s %s %s '%s' %s %s\n" "$1" "$quoted_backups" "$until" "$2" "$3" "$6" "$7" && printf %s "$finish"; } |
    "$4" | tee -a "$script.said" | sed -n \
    -e "s/^released \(.*\)/released job $5:\1/p" -e "s/^left \([^ ]*\) \(.*\)/job $5:\1 stays held: \2/p" \
    -e "s/^unlisted\$/jobs on $5 that wait for this sync could not be listed; the next one releases them/p" \
    -e "s/^backup \(.*\)/replaced versions are on $5 in \1/p"
}
quoted_list() { # prints the list of the place, quoted for sh; of many paths only their first part
  sort -u "$script.copied" > "$script.paths"
  [ "$(wc -c < "$script.paths")" -lt 50000 ] || sed 's|^\(\./[^/]*\)/.*|\1|' "$script.paths" | sort -u > "$script.copied"
  [ "$(wc -c < "$script.paths")" -lt 50000 ] || mv "$script.copied" "$script.paths"
  printf "'%s'" "$(sed "s/'/'\\\\''/g" "$script.paths")"
}
# shellcheck disable=SC2317 # called by name
reach_here() { sh; }

seconds=$(($(date +%s) - keep))
until=$(date -u -d "@$seconds" +%Y%m%d%H%M%S 2> /dev/null || date -u -r "$seconds" +%Y%m%d%H%M%S)
full='' highest=0 number=0 first='' all='' records='' script=$UNISON/yurt/client.$$
if is_full "$@"; then full=yes; fi
trap 'rm -f "$script" "$script".*' EXIT
trap 'exit 130' INT TERM HUP
for word; do # its name in older versions
  shift
  case $word in -testServer) word=-testserver ;; esac
  set -- "$@" "$word"
done
while [ "$number" -lt "$count" ]; do
  number=$((number + 1)) folders=''
  eval "text=\$client_$number name=\$name_$number record=\$record_$number root=\$quoted_root_$number"
  list=$UNISON/yurt/last.$record
  if [ -n "$full" ]; then
    echo "syncing $hub with $name"
    sync_all "$@"
  else
    begin no-check
    sh "$script" "$@"
    code=$?
  fi
  case $code in 0 | 1 | 2) ;; *) code=3 ;; esac
  [ "$code" -le "$highest" ] || highest=$code
  first=${first:-$token}
  if [ "$code" -lt 3 ]; then
    all="$all $folders" good='' noted=''
    [ "$full$code" != yes0 ] || good=1
    if [ -n "$full" ]; then
      noted="'$record' $(quoted_list)" records="$records $noted"
      cp "$script.paths" "$list"
    fi
    finish "$good" "$token" "$folders" "reach_$number" "$name" "$root" "$noted"
  fi
done
good=''
[ "$full$highest" != yes0 ] || good=1
[ -z "$all" ] || finish "$good" "$first" "$all" reach_here "$hub" "$quoted_root" "$records"
for list in "$UNISON/yurt"/last.*; do # kept only while a side is unsure of some of these files
  [ -z "$records" ] || grep -qx "unsure ${list##*/last.}" "$script.said" || rm -f "$list"
done
exit "$highest"
