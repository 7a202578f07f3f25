# Cancels runs and sweeps, even during their upload; safe to retry. Needs gate.sh and close.sh before it.
# Standard input: a line RUN RUN-FOLDER for each. Output: a line RUN WINNER for each, as in cancel.sh, or RUN ended; none
# for a run whose gate could not be closed, such as on a full disk. Its jobs are cancelled anyway.
runs=$(cat) closed=
close_run() { # close_run RUN-FOLDER: does the same as close_gate, with a link to `closed` if that is possible
  winner=
  if [ -s "$closed" ] && cd "$1" 2> /dev/null && [ ! -e @NO_LINKS@ ]; then
    read_written @WINNER@ > /dev/null || ln "$closed" @WINNER@ 2> /dev/null
    if read_written @WINNER@ > /dev/null; then
      winner=$text
      [ "$winner" = cancelled ] || make_files @CANCEL@
      remove_secrets && return
    fi
  fi
  close_gate "$1"
}
close_each() {
  while read -r id folder; do
    case $id in
      s*) (close_sweep "$folder"; [ -z "$winner" ] || printf '%s %s %s\n' "$id" "$winner" "$(begun_tasks "$folder")") ;;
      *)
        if [ -z "$closed" ] && [ -d "$folder" ]; then # one file for the gates of all runs
          closed=$folder/@WINNER@.cancel.$(uname -n).$$
          (umask 077 && printf 'cancelled\n' | dd of="$closed" conv=fsync) 2> /dev/null
        fi
        if [ -e "$folder/@EXIT@" ] || [ -e "$folder/@EXIT@.d" ]; then over=ended; else over=; fi
        (close_run "$folder" < /dev/null; [ -z "$winner" ] || printf '%s %s\n' "$id" "${over:-$winner}") ;;
    esac
  done
  [ -z "$closed" ] || rm -f "$closed"
}
answer=$(printf '%s\n' "$runs" | close_each)
for try in 1 2; do # a job may end between the two commands
  queue=$(timeout 60 squeue -h -u "$(id -un)" -o '%F %j') || exit 7
  jobs=$(printf '%s\n\n%s\n' "$runs" "$queue" | awk '
    !listed { if ($0 == "") listed = 1; else wanted["yurt-" $1]; next }
    { name = $2; if (name ~ /^yurt-s/) sub(/[+].*/, "", name) }
    name in wanted && !($1 in found) { found[$1]; print $1 }')
  [ -n "$jobs" ] || break
  printf '%s\n' "$jobs" | timeout 60 xargs scancel && break
  [ "$try" = 1 ] || exit 7
done
[ -z "$answer" ] || printf '%s\n' "$answer"
