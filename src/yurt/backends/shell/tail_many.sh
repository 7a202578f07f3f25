# Sends the logs of many runs, by byte offset, over one connection.
# arguments: FOLLOW LAST MOST, then for each run FOLDER OUT ERR OVER: the offsets read so far, and whether it finished.
# FOLLOW, if not empty: stream for about MOST seconds; less if some runs finish, as others may have started.
# LAST, if not empty: send only so many last lines of logs that were not read yet.
# Output is chunks: a line "K out|err COUNT" and COUNT bytes, where K counts the runs from 1. "K skip-out OFFSET" is
# where reading begins, "K end 0" means a finished run was sent completely, "K gone 0" that it has no folder.
# "- - 0" is a keepalive.
follow=$1 last=$2 most=$3 count=0
shift 3
while [ $# -gt 0 ]; do
  count=$((count + 1))
  eval "folder_$count=\$1 out_$count=\$2 err_$count=\$3 over_$count=\$4"
  shift 4
done
size() { # size FILE: sets size
  size=0
  [ ! -s "$1" ] || size=$(($(wc -c < "$1" 2> /dev/null || echo 0)))
}
send() { # send K NAME FILE OFFSET: sends a log from the offset on; sets offset
  offset=$4
  size "$3"
  while [ "$offset" -lt "$size" ]; do
    part=$((size - offset))
    [ "$part" -le 1048576 ] || part=1048576
    printf '%s %s %s\n' "$1" "$2" "$part"
    tail -c "+$((offset + 1))" "$3" | head -c "$part"
    offset=$((offset + part))
  done
}
begin() { # begin K NAME FILE: sets offset to the start of the last lines of a log
  size "$3"
  offset=0
  [ "$size" -eq 0 ] || offset=$((size - $(head -c "$size" "$3" | tail -n "$last" | wc -c)))
  printf '%s skip-%s %s\n' "$1" "$2" "$offset"
}
seconds=0 some=
while :; do
  k=0 left=
  while [ "$k" -lt "$count" ]; do
    k=$((k + 1))
    eval "folder=\$folder_$k out=\$out_$k err=\$err_$k over=\$over_$k"
    [ -n "$folder" ] || continue
    if ! cd "$folder" 2> /dev/null; then
      printf '%s gone 0\n' "$k"
      eval "folder_$k="
      continue
    fi
    if [ -e @EXIT@ ] || [ -e @EXIT@.d ]; then over=yes; fi
    if [ -n "$last" ] && [ "$seconds" -eq 0 ] && [ "$out$err" = 00 ]; then
      begin "$k" out @OUT_LOG@
      out=$offset
      begin "$k" err @ERR_LOG@
      err=$offset
    fi
    send "$k" out @OUT_LOG@ "$out"
    eval "out_$k=$offset"
    send "$k" err @ERR_LOG@ "$err"
    eval "err_$k=$offset"
    if [ -n "$over" ] || [ -z "$follow" ]; then
      printf '%s end 0\n' "$k"
      eval "folder_$k="
      some=yes
    else
      left=yes
    fi
  done
  [ -n "$left" ] || exit 0
  seconds=$((seconds + 1))
  [ "$seconds" -lt "$most" ] || exit 0
  [ -z "$some" ] || [ "$seconds" -lt 3 ] || exit 0
  printf -- '- - 0\n'
  sleep 1
done
