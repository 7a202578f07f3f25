# What one run wrote, by byte offset. arguments: FOLDER OUT ERR FOLLOW LAST; FOLLOW and LAST as in tail_many.sh.
# The answer is chunks: a line "out|err COUNT" and COUNT bytes; "skip-out OFFSET" says where reading begins. Following
# ends when the run has ended and all was sent, or when nothing came for long. "- 0" now and then shows that the link
# lives.
cd "$1" 2> /dev/null || exit 44
out=$2 err=$3 follow=$4 last=$5
size() { size=$(wc -c < "$1" 2> /dev/null) || size=0; size=$((size)); }
send() { # send NAME FILE OFFSET: what is there beyond the offset
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
if [ -n "$last" ]; then # only the last lines of what is there
  for name in out err; do
    size "$name.log"
    [ "$size" -gt 0 ] && count=$(head -c "$size" "$name.log" | tail -n "$last" | wc -c) || count=0
    printf 'skip-%s %s\n' "$name" $((size - count))
    [ "$name" = out ] && out=$((size - count)) || err=$((size - count))
  done
fi
pause=0.5 idle=0
while :; do
  busy= over=
  [ -e exit.json ] || [ -e exit.json.d ] && over=1
  send out out.log "$out"
  out=$offset
  send err err.log "$err"
  err=$offset
  [ -n "$over" ] || [ -z "$follow" ] && exit 0
  if [ -n "$busy" ]; then pause=0.5 idle=0; else idle=$((idle + 1)); fi
  [ "$idle" -lt 20 ] || pause=1
  [ "$idle" -lt 35 ] || exit 0 # it may have ended without an ending: let the caller look
  printf -- '- 0\n'
  sleep "$pause" 2> /dev/null || sleep 1
done
