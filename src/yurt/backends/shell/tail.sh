# What one run wrote, by byte offset.
# arguments: FOLDER OUT ERR FOLLOW LAST: how far its logs were read; whether to go on, if not empty; and, if not empty,
# of how many last lines to send no more.
# The answer is chunks: a line "out|err COUNT" and COUNT bytes. "skip-out OFFSET" says where reading begins, "- 0" now and
# then shows that the link lives. Following ends when the run has ended and all was sent, or when nothing came for long.
cd "$1" 2> /dev/null || exit 44
out=$2 err=$3 follow=$4 last=$5
size() { # size FILE: sets size
  size=$(wc -c < "$1" 2> /dev/null) || size=0
  size=$((size))
}
send() { # send NAME FILE OFFSET: what a log has beyond the offset; sets offset
  size "$2"
  offset=$3
  while [ "$offset" -lt "$size" ]; do
    count=$((size - offset))
    [ "$count" -le 1048576 ] || count=1048576
    printf '%s %s\n' "$1" "$count"
    tail -c "+$((offset + 1))" "$2" | head -c "$count"
    offset=$((offset + count)) busy=1
  done
}
begin() { # begin NAME FILE: where the last lines of a log begin; sets offset
  size "$2"
  offset=0
  [ "$size" -eq 0 ] || offset=$((size - $(head -c "$size" "$2" | tail -n "$last" | wc -c)))
  printf 'skip-%s %s\n' "$1" "$offset"
}
if [ -n "$last" ]; then
  begin out @OUT_LOG@
  out=$offset
  begin err @ERR_LOG@
  err=$offset
fi
pause=0.5 idle=0
while :; do
  busy='' over=''
  if [ -e @EXIT@ ] || [ -e @EXIT@.d ]; then over=1; fi
  send out @OUT_LOG@ "$out"
  out=$offset
  send err @ERR_LOG@ "$err"
  err=$offset
  if [ -n "$over" ] || [ -z "$follow" ]; then exit 0; fi
  if [ -n "$busy" ]; then pause=0.5 idle=0; else idle=$((idle + 1)); fi
  [ "$idle" -lt 20 ] || pause=1
  [ "$idle" -lt 35 ] || exit 0 # it may have ended without an ending: let the caller look
  printf -- '- 0\n'
  sleep "$pause" 2> /dev/null || sleep 1
done
