# Cancels runs and sweeps, even during their upload; safe to retry. Needs the scripts that
# cancel.sh needs.
# Standard input: a line RUN RUN-FOLDER for each. Output: a line RUN WINNER for each, as in cancel.sh, or RUN ended; none
# for a run whose gate could not be closed, such as on a full disk, and whose jobs are cancelled anyway; and none for a run
# of which a job is not seen ending.
closed=''
runs=$(cat) || exit 1
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
rows_of_jobs() {
  printf '%s\n\n%s\n' "$runs" "$rows" | awk -F '|' '
    !listed { if ($0 == "") listed = 1; else { sub(/ .*/, ""); wanted["yurt-" $0] }; next }
    { job = $1; state = $2; sub(/_.*/, "", job); sub(/^[^|]*[|][^|]*[|]/, ""); if (/^yurt-s/) sub(/[+].*/, "") }
    $0 in wanted { print job, state, substr($0, 6) }'
}
cancel_by_name() {
  printf '%s\n' "$runs" | while read -r id _; do timeout 5 scancel -u "$(id -un)" --name="yurt-$id" || return; done
}
end_jobs
unconfirmed=$left
while read -r id winner; do # those that have started, and that the queue does not list
  case $winner in '' | ended | cancelled) continue ;; esac
  left=
  folder=$(printf '%s\n' "$runs" | sed -n "s/^$id //p") && [ -n "$folder" ] || exit 1
  if goes_on "$id" "$folder"; then
    unconfirmed="$unconfirmed
$left"
  fi
done << end
$answer
end
[ -z "$answer" ] || printf '%s\n=\n%s\n' "$unconfirmed" "$answer" | awk '
  $0 == "=" { listed = 1; next }
  !listed { left[$3]; next }
  !($1 in left)'
