# The time limit: timers, and the signal to save in time.
run_later() { # run_later SECONDS COMMAND, unless cancel_timers comes first
  (trap '' USR1 USR2 HUP; in_own_session sh -c 'sleep "$1"; eval "$2"' yurt-timer "$1" "$2") > /dev/null 2>&1 &
  timers="$timers $!"
}
cancel_timers() {
  for each in $timers; do kill_session "$each"; done
  timers=
}
alarm_in() { # alarm_in SECONDS: send ALRM to this script, unless its process id belongs to another by then
  run_later "$1" "[ \"\$(cut -d ' ' -f 22 /proc/$$/stat 2> /dev/null)\" = '$born' ] && kill -ALRM $$"
}
time_left() { # prints the seconds until the limit, as the scheduler has it; nothing if it does not say
  timeout 10 squeue -h -j "$job" -o %L 2> /dev/null | awk -F: '/^[0-9:-]+$/ {
    if (split($1, days, "-") == 2) $1 = days[2]; else days[1] = 0
    for (at = 1; at <= NF; at++) seconds = seconds * 60 + $at
    print days[1] * 86400 + seconds }'
}
set_alarm() { # for when it is time to save; or a while before, to ask the scheduler whether the limit has changed
  wake=$((due - before - $(date +%s))) ask=''
  if [ "$kind" = slurm ] && [ "$wake" -gt 60 ]; then
    ask=yes wake=$((wake - 30))
  elif [ "$kind" = slurm ] && [ "$wake" -gt 14 ] && [ -z "$asked" ]; then
    ask=yes wake=$((wake - 12))
  fi
  [ "$wake" -gt 0 ] || wake=0
  alarm_in "$wake"
}
on_usr1() { # it may warn of the limit, which has an alarm here; of preemption, if there is a grace; or be sent by you
  if [ "$kind" = slurm ] && [ "$requeues" -gt 0 ]; then
    [ -n "$child" ] && [ -z "$stopped" ] || return
    case $(timeout 10 squeue -h -j "$job" -O PreemptTime:30 2> /dev/null) in
      [0-9]*) note_stop stopped ;;
      *)
        told=$(time_left) # somebody may have changed it
        [ -n "$told" ] || [ -z "$limit" ] || told=$((due - $(date +%s)))
        if [ "${told:-86400}" -le $((before + 90)) ]; then
          due=$(($(date +%s) + told)) asked=''
          [ -n "$limit" ] || before=$told
          cancel_timers
          set_alarm
          return
        fi ;;
    esac
  fi
  signal_command USR1
}
on_alarm() { # tell your command to save, and kill it in time for what comes after it
  [ -z "$stopped" ] || return
  timers= # the only one there was has rung
  if [ -n "$ask" ]; then
    asked=yes told=$(time_left)
    [ -z "$told" ] || due=$(($(date +%s) + told))
  fi
  remain=$((due - $(date +%s)))
  if [ "$remain" -gt $((before + 1)) ]; then
    set_alarm
  elif [ "$requeues" -eq 0 ]; then
    on_term
  else
    signal_command USR1
    note_stop timeout
    spare=$((before / 3))
    [ "$spare" -lt 10 ] || spare=10
    [ "$remain" -gt $((spare + 1)) ] || remain=$((spare + 1))
    run_later $((remain - spare)) "kill -KILL -$child"
  fi
}
