# What many runs wrote, by byte offset, over one connection.
# arguments: FOLLOW LAST MOST, then of each run FOLDER OUT ERR OVER: how far its logs were read, and whether it has ended.
# FOLLOW, if not empty: go on for about MOST seconds; a little less when some have ended, as others may have begun.
# LAST, if not empty: of logs that were not read yet, only so many lines.
# The answer is chunks: a line "K out|err COUNT" and COUNT bytes, where K counts the runs from 1. "K skip-out OFFSET"
# says where reading begins, "K end 0" that all was sent of a run that has ended, "K gone 0" that it has no folder.
# "- - 0" now and then shows that the link lives.
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
send() { # send K NAME FILE OFFSET: what a log has beyond the offset; sets offset
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
begin() { # begin K NAME FILE: where the last lines of a log begin; sets offset
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
