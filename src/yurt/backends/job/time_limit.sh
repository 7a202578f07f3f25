# The time limit: timers, and the signal to save in time.
run_later() { # run_later SECONDS COMMAND; all of them end with: no_more
  (trap '' USR1 USR2 HUP; in_own_session sh -c 'sleep "$1"; eval "$2"' yurt-timer "$1" "$2") > /dev/null 2>&1 &
  timers="$timers $!"
}
cancel_timers() { # of those that were started by later
  for each in $timers; do kill_session "$each"; done
  timers=
}
alarm_in() { # alarm_in SECONDS: have an ALRM then. If this script is gone by that time, its number may be another's
  run_later "$1" "[ \"\$(cut -d ' ' -f 22 /proc/$$/stat 2> /dev/null)\" = '$born' ] && kill -ALRM $$"
}
time_left() { # seconds until the limit, as the scheduler has it; nothing if it does not say
  timeout 10 squeue -h -j "$job" -o %L 2> /dev/null | awk -F: '/^[0-9:-]+$/ {
    if (split($1, days, "-") == 2) $1 = days[2]; else days[1] = 0
    for (at = 1; at <= NF; at++) seconds = seconds * 60 + $at
    print days[1] * 86400 + seconds }'
}
set_alarm() { # for when it is time to save; or a while before, to ask whether the limit still is what it was
  wake=$((due - before - $(date +%s))) ask=
  if [ "$kind" = slurm ] && [ "$wake" -gt 60 ]; then
    ask=yes wake=$((wake - 30))
  elif [ "$kind" = slurm ] && [ "$wake" -gt 14 ] && [ -z "$asked" ]; then
    ask=yes wake=$((wake - 12))
  fi
  [ "$wake" -gt 0 ] || wake=0
  alarm_in "$wake"
}
on_usr1() { # USR1 from outside: of the limit, for which there is a clock here; of preemption, if there is a grace; or yours
  if [ "$kind" = slurm ] && [ "$requeues" -gt 0 ]; then
    [ -n "$child" ] && [ -z "$stopped" ] || return
    case $(timeout 10 squeue -h -j "$job" -O PreemptTime:30 2> /dev/null) in
      [0-9]*) note stopped ;;
      *)
        told=$(time_left) # by now it may be another than it was
        [ -n "$told" ] || [ -z "$limit" ] || told=$((due - $(date +%s)))
        if [ "${told:-86400}" -le $((before + 90)) ]; then
          due=$(($(date +%s) + told)) asked=
          [ -n "$limit" ] || before=$told
          cancel_timers
          set_alarm
          return
        fi ;;
    esac
  fi
  signal_command USR1
}
on_alarm() { # your command is told to save, and killed in time for what comes after it
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
