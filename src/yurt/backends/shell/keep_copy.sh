# Copies results to a lasting tier: each copy is complete or not there, and what an earlier copy has is not lost. Needs
# measure.sh before it. Safe to kill and to repeat: what is copied aside is used again.
# arguments: TIER WITH-CHECKPOINTS [run|place SOURCE TARGET]... All targets are in TIER/yurt-kept.
# Output: a line for each: done MEASURES..., same MEASURES..., or failed REASON. `tick` while it runs.
tier=$1 checkpoints=$2 base=$1/@KEPT@
shift 2
umask 077
can_measure || exit
if [ ! -d "$tier" ]; then echo "$tier does not exist" >&2 && exit 1; fi
mkdir "$base" 2> /dev/null
if [ -h "$base" ] || [ ! -d "$base" ] || [ ! -O "$base" ]; then echo "$base cannot be created, or is not your own folder" >&2 && exit 1; fi
while sleep 5 > /dev/null 2>&1; do echo tick; done &
ticker=$!
trap 'kill "$ticker" 2> /dev/null' EXIT
rsync=
! command -v rsync > /dev/null 2>&1 || rsync=yes

run_copy() { # run_copy COMMAND...: sets `why` if it fails
  why=$("$@" 2>&1 > /dev/null < /dev/null) && return
  code=$?
  all=$why
  why=$(printf '%s\n' "$all" | grep -e 'No space left' -e '[Qq]uota' | tail -n 1)
  [ -n "$why" ] || why=$(printf '%s\n' "$all" | grep -v -e '^rsync error' -e '^rsync: connection' | tail -n 1)
  why=${why:-exit code $code}
  return $code
}
tar_copy() ( # tar_copy FOLDER TARGET [LIST]: the whole folder, or the files in a list of names that end with NUL
  cd "$1" && mkdir -p "$2" || exit 1
  if [ $# -eq 3 ]; then set -- "$1" "$2" --null -T "$3"; else set -- "$1" "$2" .; fi
  to=$2
  shift 2
  { tar -cf - "$@" || echo failed > "$to.failed"; } | (cd "$to" && tar -xf -) || exit 1
  [ ! -e "$to.failed" ] || { rm -f "$to.failed" && exit 1; }
)
copy_all() { # copy_all FOLDER TARGET
  [ -d "$1" ] || return 0
  if [ -n "$rsync" ]; then run_copy rsync -a --temp-dir="$tmp" "$1/" "$2/"; else run_copy tar_copy "$1" "$2"; fi
}
copy_listed() { # copy_listed FOLDER TARGET: the files in the list $aside.list
  [ -s "$aside.list" ] || return 0
  if [ -n "$rsync" ]; then
    run_copy rsync -a -0 --temp-dir="$tmp" --files-from="$aside.list" "$1/" "$2/"
  else
    run_copy tar_copy "$1" "$2" "$aside.list"
  fi
}
copy_run() { # copy_run FOLDER: into $aside
  mkdir -p "$aside" || return
  copy_all "$1/@OUTPUTS@" "$aside/@OUTPUTS@" || return
  [ -z "$checkpoints" ] || copy_all "$1/@CHECKPOINTS@" "$aside/@CHECKPOINTS@" || return
  if [ -d "$1/@WORK@" ]; then
    newer=
    [ ! -e "$1/@COPIED@" ] || newer=$1/@COPIED@
    find_written '%P\0' "$1/@WORK@" > "$aside.list" || { why="files of $1/@WORK@ cannot be read" && return 1; }
    newer=
    copy_listed "$1/@WORK@" "$aside/@WORK@" || return
  fi
  (cd "$1" && find . -maxdepth 1 \( -name @RUN@ -o -name @PLAN@ -o -name @PARAMS@ -o -name @OUT_LOG@ -o -name @ERR_LOG@ \
    -o -name @METRICS@ -o -name @EXIT@ -o -name @STATUS@ \) -type f -print0) > "$aside.list"
  copy_listed "$1" "$aside" || return
  [ ! -e "$1/@EXIT@.d" ] || copy_all "$1/@EXIT@.d" "$aside/@EXIT@.d"
}
files_of() { # files_of MEASURE
  case $1 in '?') echo 0 ;; *) echo "${1%%:*}" ;; esac
}
measure_run() { # measure_run FOLDER: sets `measures`
  saved=''
  outputs=$(measure "$1/@OUTPUTS@") || { why="$1/@OUTPUTS@ cannot be measured" && return 1; }
  work=$(measure_work "$1") || { why="$1/@WORK@ cannot be measured" && return 1; }
  [ -z "$checkpoints" ] || saved=$(measure "$1/@CHECKPOINTS@") || { why="$1/@CHECKPOINTS@ cannot be measured" && return 1; }
  measures="$outputs ${saved:--} $work"
}
is_same() { # is_same TARGET: whether it has as many files and bytes of everything as the source
  [ -e "$1" ] || return
  for part in "@OUTPUTS@ $outputs" "@CHECKPOINTS@ ${saved:-?}" "@WORK@ $work"; do
    case $part in *' ?') [ "${part%% *}" = @CHECKPOINTS@ ] && [ -z "$checkpoints" ] && continue || return ;; esac
    has=$(measure "$1/${part%% *}") || return
    wanted=${part#* }
    [ "${has%:*}" = "${wanted%:*}" ] || return
  done
}
drop_old() { # renames it first: what stands under its name is always whole, because the next call may take it back
  [ ! -e "$old" ] || { mv -T "$old" "$tmp/old" && rm -rf "$tmp/old"; }
}
keep() { # keep run|place SOURCE TARGET
  aside=${3%/*}/.${3##*/}.part old=${3%/*}/.${3##*/}.old why='' measures=''
  unfinished=${3%/*}/.${3##*/}.tmp # a killed rsync leaves unfinished files, which must not become part of the copy
  tmp=$unfinished.$$
  mkdir -p "${3%/*}" "$tmp" || { why="cannot create ${3%/*}" && return 1; }
  [ -e "$3" ] || [ ! -e "$old" ] || mv -T "$old" "$3" # killed while it replaced the earlier copy
  drop_old || return
  if [ "$1" = run ]; then
    measure_run "$2" || return
    ! is_same "$3" || { rm -rf "$unfinished".* && same=yes && return 0; }
  fi
  if [ -d "$3" ]; then # files that the source has no longer
    if [ -n "$rsync" ]; then run_copy rsync -a --temp-dir="$tmp" --link-dest="$3" "$3/" "$aside/"; else run_copy tar_copy "$3" "$aside"; fi || return
  fi
  if [ "$1" = run ]; then
    copy_run "$2" || return
    for part in "@OUTPUTS@ $outputs" "@WORK@ $work"; do
      [ "$(files_of "$(measure "$aside/${part%% *}")")" -ge "$(files_of "${part#* }")" ] || { why="files are missing in the copy" && return 1; }
    done
  elif [ -d "$2" ]; then
    copy_all "$2" "$aside" || return
  else
    run_copy cp -p "$2" "$aside" || return
  fi
  [ ! -e "$3" ] || mv -T "$3" "$old" || return
  mv -T "$aside" "$3" || return
  drop_old
  rm -rf "$aside.list" "$unfinished".*
}
while [ $# -gt 0 ]; do
  same=
  keep "$1" "$2" "$3"
  code=$?
  rm -rf "$tmp"
  if [ "$code" -eq 0 ]; then
    case $same in yes) echo "same $measures" ;; *) echo "done $measures" ;; esac
  elif [ "$1" = run ] && measure_run "$2" && is_same "$3"; then
    echo "same $measures" # another process was first
  else
    rm -rf "$aside" "$aside.list" # give the space back; the source is as it was
    printf 'failed %s\n' "${why:-cannot write to ${3%/*}}"
  fi
  shift 3
done
