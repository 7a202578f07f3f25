# Sends the logs of one run, by byte offset.
# arguments: FOLDER OUT ERR LAST FOLLOW [MOST]: the offsets read so far; LAST, if not empty: send only so many last lines;
# FOLLOW, if not empty: stream new output; MOST: send at most so many bytes of a log.
# Output is chunks: a line "out|err COUNT" and COUNT bytes. "skip-out OFFSET" is where reading begins, after "cut-out COUNT"
# if that is not the start of a line, since the lines are too long; "- 0" a keepalive, "more 0" the end if MOST was less
# than the logs have. Following stops when the run has finished and all was sent, or when it is idle for long.
cd "$1" 2> /dev/null || exit 44
out=$2 err=$3 last=$4 follow=$5 most=${6-}
measure() { # sets out_size and err_size, with one program at most
  out_size=0 err_size=0
  set --
  [ ! -s @OUT_LOG@ ] || set -- @OUT_LOG@
  [ ! -s @ERR_LOG@ ] || set -- "$@" @ERR_LOG@
  [ $# -gt 0 ] || return 0
  sizes=$(wc -c "$@") || exit 1
  while read -r count name; do
    case $name in @OUT_LOG@) out_size=$count ;; @ERR_LOG@) err_size=$count ;; esac
  done << end
$sizes
end
}
send() { # send NAME FILE OFFSET SIZE: sends a log from the offset on; sets offset
  offset=$3
  while [ "$offset" -lt "$4" ]; do
    count=$(($4 - offset))
    [ "$count" -le 1048576 ] || count=1048576
    printf '%s %s\n' "$1" "$count"
    if [ "$offset" -eq 0 ]; then head -c "$count" "$2"; else tail -c "+$((offset + 1))" "$2" | head -c "$count"; fi || exit 1
    offset=$((offset + count)) busy=1
    if [ -n "$most" ] && [ "$((offset - $3))" -ge "$most" ] && [ "$offset" -lt "$4" ]; then echo "more 0" && exit 0; fi
  done
}
begin() { # begin NAME FILE SIZE: sets offset to the start of the last lines of a log; of very long ones, to a later place
  offset=0 most_of_all=$((1000000 + last * 4096))
  if [ "$3" -gt 0 ]; then
    from=$(($3 > most_of_all ? $3 - most_of_all : 0))
    shown=$(if [ "$from" -eq 0 ]; then head -c "$3" "$2"; else tail -c "+$((from + 1))" "$2" | head -c "$(($3 - from))"; fi |
      tail -n "$last" | wc -c) && [ "$shown" -gt 0 ] || exit 1
    offset=$(($3 - shown))
    [ "$shown" -lt "$most_of_all" ] || printf 'cut-%s %s\n' "$1" "$shown"
  fi
  printf 'skip-%s %s\n' "$1" "$offset"
}
if [ -n "$last" ]; then
  measure
  begin out @OUT_LOG@ "$out_size"
  out=$offset
  begin err @ERR_LOG@ "$err_size"
  err=$offset
fi
idle=0
while :; do
  busy='' over=''
  if [ -e @EXIT@ ] || [ -e @EXIT@.d ]; then over=1; fi
  measure
  send out @OUT_LOG@ "$out" "$out_size"
  out=$offset
  send err @ERR_LOG@ "$err" "$err_size"
  err=$offset
  if [ -n "$over" ] || [ -z "$follow" ]; then exit 0; fi
  if [ -n "$busy" ]; then idle=0; else idle=$((idle + 1)); fi
  case $idle in [0-3]) pause=0.5 ;; [4-7]) pause=1 ;; *) pause=2 ;; esac # a login node has many users
  [ "$idle" -lt 18 ] || exit 0 # it may have died without exit.json: let the caller check
  printf -- '- 0\n'
  sleep "$pause" 2> /dev/null || sleep 1
done
