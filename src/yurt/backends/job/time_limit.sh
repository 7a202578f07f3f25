# The time limit: timers, and the signal to save before it.
run_later() { # run_later SECONDS COMMAND, unless cancel_timers is called before
  (trap '' USR1 USR2 HUP TERM; in_own_session sh -c 'sleep "$1"; eval "$2"' yurt-timer "$1" "$2") > /dev/null 2>&1 &
  timers="$timers $!"
}
cancel_timers() {
  for each in $timers; do kill_session "$each"; done
  timers=
}
alarm_in() { # alarm_in SECONDS: sends ALRM to this script, unless its process id was reused
  run_later "$1" "set -- $$; [ \"\$($start_time)\" = '$born' ] && kill -ALRM $$"
}
time_left() { # prints the scheduler's remaining seconds, without those for copying outputs; nothing if unknown
  plainly timeout 10 squeue -h -j "$job" -o %L 2> /dev/null | awk -F: -v kept="${stage_time:-0}" '/^[0-9:-]+$/ {
    if (split($1, days, "-") == 2) $1 = days[2]; else days[1] = 0
    for (at = 1; at <= NF; at++) seconds = seconds * 60 + $at
    print days[1] * 86400 + seconds - kept }'
}
set_alarm() { # for the time to save; or earlier, to query the scheduler for a changed limit
  wake=$((due - before - $(date +%s))) ask=''
  if [ "$kind" = slurm ] && [ "$wake" -gt 60 ]; then
    ask=yes wake=$((wake - 30))
  elif [ "$kind" = slurm ] && [ "$wake" -gt 14 ] && [ -z "$asked" ]; then
    ask=yes wake=$((wake - 12))
  fi
  [ "$wake" -gt 0 ] || wake=0
  alarm_in "$wake"
}
on_usr1() { # Slurm warns of the limit, which has an alarm here, or of preemption with a grace time; or you sent it
  if [ "$kind" = slurm ] && [ "$requeues" -gt 0 ]; then
    [ -n "$child" ] && [ -z "$stopped" ] || return
    case $(plainly timeout 10 squeue -h -j "$job" -O PreemptTime:30 2> /dev/null) in
      [0-9]*) note_stop stopped ;;
      *)
        remaining=$(time_left) # the limit may have changed
        [ -n "$remaining" ] || [ -z "$limit" ] || remaining=$((due - $(date +%s)))
        if [ "${remaining:-86400}" -le $((before + 90)) ]; then
          due=$(($(date +%s) + remaining)) asked=''
          [ -n "$limit" ] || before=$remaining
          cancel_timers
          set_alarm
          return
        fi ;;
    esac
  fi
  signal_command USR1
}
on_alarm() { # signals your command to save, and kills it in time for what follows
  [ -z "$stopped" ] || return
  timers= # the only timer has fired
  if [ -n "$ask" ]; then
    asked=yes remaining=$(time_left)
    [ -z "$remaining" ] || due=$(($(date +%s) + remaining))
  fi
  remain=$((due - $(date +%s)))
  if [ "$remain" -gt $((before + 1)) ]; then
    set_alarm
  elif [ "$requeues" -eq 0 ]; then
    on_term limit
    [ "$kind" != slurm ] || run_later $((stage_time / 3)) "kill -KILL -$child"
  else
    signal_command USR1
    note_stop timeout
    spare=$((before / 3))
    [ "$spare" -lt 10 ] || spare=10
    [ "$remain" -gt $((spare + 1)) ] || remain=$((spare + 1))
    run_later $((remain - spare)) "kill -KILL -$child"
  fi
}
