# Sends the logs of many runs, by byte offset, over one connection.
# arguments: FOLLOW LAST MOST, then for each run FOLDER OUT ERR OVER: the offsets read so far, and
# whether it finished. FOLLOW, if not empty: stream for about MOST seconds; less if some runs
# finish, as others may have started. LAST, if not empty: send only so many last lines of logs that
# were not read yet.
# Output is chunks: a line "K out|err COUNT" and COUNT bytes, where K counts the runs from 1.
# "K skip-out OFFSET" is where reading begins, after "K cut-out COUNT" as in tail.sh, "K end 0"
# means a finished run was sent completely, "K gone 0" that it has no folder. "- - 0" is a keepalive.
follow=$1 last=$2 most=$3 limit='' count=0
shift 3
while [ $# -gt 0 ]; do
  count=$((count + 1))
  eval "folder_$count=\$1 out_$count=\$2 err_$count=\$3 over_$count=\$4"
  shift 4
done
measure() { # sets out_size_K and err_size_K of all runs, with one program at most
  set --
  k=0
  while [ "$k" -lt "$count" ]; do
    k=$((k + 1))
    eval "folder=\$folder_$k out_size_$k=0 err_size_$k=0"
    [ -n "$folder" ] || continue
    [ ! -s "$folder/@OUT_LOG@" ] || set -- "$@" "$folder/@OUT_LOG@"
    [ ! -s "$folder/@ERR_LOG@" ] || set -- "$@" "$folder/@ERR_LOG@"
  done
  [ $# -gt 0 ] || return 0
  sizes=$(wc -c "$@") || exit 1
  k=1
  while read -r size file; do # in the order of the runs; files that cannot be read are missing
    from=$k
    while [ "$k" -le "$count" ]; do
      eval "folder=\$folder_$k"
      case $file in
        "$folder/@OUT_LOG@") eval "out_size_$k=$size" && break ;;
        "$folder/@ERR_LOG@") eval "err_size_$k=$size" && break ;;
      esac
      k=$((k + 1))
    done
    [ "$k" -le "$count" ] || k=$from
  done << end
$sizes
end
}
seconds=0 some='' idle=0
while :; do
  k=0 over_now=' '
  # before their logs are measured: what they wrote last must be sent
  while [ "$k" -lt "$count" ]; do
    k=$((k + 1))
    eval "folder=\$folder_$k"
    [ -n "$folder" ] || continue
    if [ -e "$folder/@EXIT@" ] || [ -e "$folder/@EXIT@.d" ]; then over_now="$over_now$k "; fi
  done
  measure
  k=0 left='' busy=''
  while [ "$k" -lt "$count" ]; do
    k=$((k + 1))
    eval "folder=\$folder_$k out=\$out_$k err=\$err_$k over=\$over_$k"
    eval "out_size=\$out_size_$k err_size=\$err_size_$k"
    [ -n "$folder" ] || continue
    if ! cd "$folder" 2> /dev/null; then
      printf '%s gone 0\n' "$k"
      eval "folder_$k="
      continue
    fi
    case $over_now in *" $k "*) over=yes ;; esac
    of="$k "
    if [ -n "$last" ] && [ "$seconds" -eq 0 ] && [ "$out$err" = 00 ]; then
      begin out @OUT_LOG@ "$out_size"
      out=$offset
      begin err @ERR_LOG@ "$err_size"
      err=$offset
    fi
    send out @OUT_LOG@ "$out" "$out_size"
    eval "out_$k=$offset"
    send err @ERR_LOG@ "$err" "$err_size"
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
  if [ -n "$busy" ]; then idle=0; else idle=$((idle + 1)); fi
  if [ "$idle" -lt 5 ]; then pause=1; else pause=2; fi # a login node has many users
  seconds=$((seconds + pause))
  [ "$seconds" -lt "$most" ] || exit 0
  [ -z "$some" ] || [ "$seconds" -lt 3 ] || exit 0
  printf -- '- - 0\n'
  sleep "$pause"
done
