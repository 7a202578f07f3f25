# Signals: how your command gets them, and why a start was told to stop.
in_own_session() { # in_own_session COMMAND…: in a session of its own, so that all of it can be signalled
  if command -v setsid > /dev/null 2>&1; then exec setsid "$@"; else exec perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@"; fi
}
kill_session() { # kill_session PID: of what was started by apart, also if it has not come to be apart yet
  kill -KILL "-$1" 2> /dev/null || kill -KILL "$1" 2> /dev/null
}
is_cancelled() { # whether you wanted this ended, alone or with the sweep it belongs to
  [ -e @CANCEL@ ] || { [ -n "$sweep" ] && [ -e "$sweep/@CANCEL@" ]; }
}
note_stop() { # note_stop WHY: on a signal to stop, write down why, while there is time
  if is_cancelled; then set -- cancelled; fi
  [ -z "$stopped" ] || [ "$1" = cancelled ] || return
  stopped=$1 # first: another signal may come while it is written
  (patience=3 && write_once "@STOPPED@$k" "$1") > /dev/null
}
signal_command() { # signal_command SIGNAL: to your command and everything it started
  [ -n "$child" ] && { kill "-$1" "-$child" || kill "-$1" "$child"; } 2> /dev/null
}
on_term() { # your command is told to end; where no scheduler sees to it, it is killed if it has not by then
  signal_command TERM
  if [ -n "$limit" ] && [ "$(date +%s)" -ge $((came + limit - 5)) ]; then note_stop timeout; else note_stop stopped; fi
  # A signal that comes while a shell is being forked is lost with its traps: the first one may have been.
  [ "$(date +%s)" -gt $((began + 2)) ] || signal_command TERM
  [ "$kind" = slurm ] || [ -z "$child" ] || run_later "$grace" "kill -KILL -$child"
}
