# Sends the logs of one run, by byte offset.
# arguments: FOLDER OUT ERR LAST FOLLOW [LIMIT]: the offsets read so far; LAST, if not empty: send
# only so many last lines; FOLLOW, if not empty: stream new output; LIMIT: send at most so many
# bytes of a log.
# Output is chunks: a line "out|err COUNT" and COUNT bytes. "skip-out OFFSET" is where reading
# begins, after "cut-out COUNT" if that is not the start of a line, since the lines are too long;
# "- 0" a keepalive, "more 0" the end if LIMIT was less than the logs have. Following stops when the
# run has finished and all was sent, or when it is idle for long.
cd "$1" 2> /dev/null || exit 44
out=$2 err=$3 last=$4 follow=$5 limit=${6-} of=''
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
  # a login node has many users
  case $idle in [0-3]) pause=0.5 ;; [4-7]) pause=1 ;; *) pause=2 ;; esac
  [ "$idle" -lt 18 ] || exit 0 # it may have died without exit.json: let the caller check
  printf -- '- 0\n'
  sleep "$pause" 2> /dev/null || sleep 1
done
