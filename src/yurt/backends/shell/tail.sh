# Sends the logs of one run, by byte offset.
# arguments: FOLDER OUT ERR FOLLOW LAST: the offsets read so far; FOLLOW, if not empty: stream new output; LAST, if not
# empty: send only so many last lines.
# Output is chunks: a line "out|err COUNT" and COUNT bytes. "skip-out OFFSET" is where reading begins, "- 0" a
# keepalive. Following stops when the run has finished and all was sent, or when it is idle for long.
cd "$1" 2> /dev/null || exit 44
out=$2 err=$3 follow=$4 last=$5
size() { # size FILE: sets size
  size=0
  [ ! -f "$1" ] || size=$(wc -c < "$1" 2> /dev/null) || size=0
  size=$((size))
}
send() { # send NAME FILE OFFSET: sends a log from the offset on; sets offset
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
begin() { # begin NAME FILE: sets offset to the start of the last lines of a log
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
  [ "$idle" -lt 35 ] || exit 0 # it may have died without exit.json: let the caller check
  printf -- '- 0\n'
  sleep "$pause" 2> /dev/null || sleep 1
done
