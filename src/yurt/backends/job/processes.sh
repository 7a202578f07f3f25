# Identifies processes: an id may be used again, but not with the same start time.
# shellcheck disable=SC2016
start_time='if { read -r stat < "/proc/$1/stat"; } 2> /dev/null; then
  set -- ${stat##*) } && echo "${20}"
else
  LC_ALL=C TZ=UTC0 ps -o lstart= -p "$1" 2> /dev/null | tr -cd 0-9
fi'
born() { # born PID: prints when a process started, as a number; the same as yurt.backends.local.process.born
  eval "$start_time"
}
is_process() { # is_process PID BORN: whether a process is alive, and its id was not reused
  kill -0 "$1" 2> /dev/null || return
  if { read -r line < "/proc/$1/stat"; } 2> /dev/null; then
    birth=$2
    # shellcheck disable=SC2086 # fields after the name in parentheses
    set -- ${line##*) }
    case $1 in [ZX]) return 1 ;; esac # process 1 may reap them late
    [ "${20-}" = "$birth" ]
  else
    [ "$(born "$1")" = "$2" ]
  fi
}
