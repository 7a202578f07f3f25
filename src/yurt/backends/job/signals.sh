# Signals: passes them to your command, and records why a start stops.
in_own_session() { # in_own_session COMMAND…: runs it in a new session, so that all its processes can be signalled
  if command -v setsid > /dev/null 2>&1; then exec setsid "$@"; else exec perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@"; fi
}
kill_session() { # kill_session PID: kills what in_own_session started, even if its session does not exist yet
  kill -KILL "-$1" 2> /dev/null || kill -KILL "$1" 2> /dev/null
}
is_cancelled() { # whether you cancelled this run, or its sweep
  [ -e @CANCEL@ ] || { [ -n "$sweep" ] && [ -e "$sweep/@CANCEL@" ]; }
}
note_stop() { # note_stop WHY: records why this start stops, while there is time
  if is_cancelled; then set -- cancelled; fi
  [ -z "$stopped" ] || [ "$1" = cancelled ] || return
  stopped=$1 # first: another signal may arrive during the write
  (patience=3 && write_once "@STOPPED@$k" "$1") > /dev/null
}
signal_command() { # signal_command SIGNAL: signals your command and everything it started
  [ -n "$child" ] && { kill "-$1" "-$child" || kill "-$1" "$child"; } 2> /dev/null
}
command_runs() { # whether a process of your command is alive; zombies do not count: process 1 may reap them late
  kill -0 "-$child" 2> /dev/null || return 1
  [ -r "/proc/$$/stat" ] || return 0 # no /proc: cannot tell more
  for stat in /proc/[0-9]*/stat; do
    { read -r line < "$stat"; } 2> /dev/null || continue
    # shellcheck disable=SC2086 # fields after the name in parentheses: STATE PARENT GROUP
    set -- ${line##*) }
    [ "${3-}" != "$child" ] || case $1 in [ZX]) ;; *) return 0 ;; esac
  done
  return 1
}
on_term() { # on_term [limit]: passes it on; without a scheduler, kills your command after the grace period
  signal_command TERM
  if [ -n "${1-}" ]; then note_stop timeout; elif [ -n "$limit" ] && [ "$(date +%s)" -ge $((came + limit - 5)) ]; then note_stop timeout; else note_stop stopped; fi
  # A signal that arrives while a shell forks is lost with its traps: send it again.
  [ "$(date +%s)" -gt $((began + 2)) ] || signal_command TERM
  [ "$kind" = slurm ] || [ -z "$child" ] || run_later "$grace" "kill -KILL -$child"
  [ -z "${stage-}" ] || [ -n "${1-}" ] || stage_hurry
}
