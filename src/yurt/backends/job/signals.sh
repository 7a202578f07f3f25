# Signals: how your command gets them, and why a start was told to stop.
in_own_session() { # in_own_session COMMAND…: in a session of its own, so that all of it can be signalled
  if command -v setsid > /dev/null 2>&1; then exec setsid "$@"; else exec perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@"; fi
}
kill_session() { # kill_session PID: what was started by in_own_session, also if it has no session of its own yet
  kill -KILL "-$1" 2> /dev/null || kill -KILL "$1" 2> /dev/null
}
is_cancelled() { # whether you wanted this ended, alone or with the sweep it belongs to
  [ -e @CANCEL@ ] || { [ -n "$sweep" ] && [ -e "$sweep/@CANCEL@" ]; }
}
note_stop() { # note_stop WHY: write down why this start stops, while there is time
  if is_cancelled; then set -- cancelled; fi
  [ -z "$stopped" ] || [ "$1" = cancelled ] || return
  stopped=$1 # first: another signal may come while it is written
  (patience=3 && write_once "@STOPPED@$k" "$1") > /dev/null
}
signal_command() { # signal_command SIGNAL: to your command and everything it started
  [ -n "$child" ] && { kill "-$1" "-$child" || kill "-$1" "$child"; } 2> /dev/null
}
command_runs() { # whether a process of your command's is left; not a zombie, which process 1 may reap late
  kill -0 "-$child" 2> /dev/null || return 1
  [ -r "/proc/$$/stat" ] || return 0 # here nothing more can be known
  for stat in /proc/[0-9]*/stat; do
    { read -r line < "$stat"; } 2> /dev/null || continue
    # shellcheck disable=SC2086 # numbers and a letter, after the name in brackets: STATE PARENT GROUP
    set -- ${line##*) }
    [ "${3-}" != "$child" ] || case $1 in [ZX]) ;; *) return 0 ;; esac
  done
  return 1
}
on_term() { # pass it on; where no scheduler does so, kill your command if it goes on
  signal_command TERM
  if [ -n "$limit" ] && [ "$(date +%s)" -ge $((came + limit - 5)) ]; then note_stop timeout; else note_stop stopped; fi
  # A signal that comes while a shell is being forked is lost with its traps: the first one may have been.
  [ "$(date +%s)" -gt $((began + 2)) ] || signal_command TERM
  [ "$kind" = slurm ] || [ -z "$child" ] || run_later "$grace" "kill -KILL -$child"
}
