# The heartbeat of a start that may be restarted: no two starts run at a time.
heartbeat() { # heartbeat K CHILD JOB BORN: renews the lease of start K every lease/6 seconds; kills the start if that fails
  trap '' USR1 USR2 HUP # ignore signals sent to all processes of the job
  # JOB, the process of this start, gets URG first. Uses only builtins and no disk, which may hang at any time.
  give_up="{ read -r line < /proc/$3/stat; } 2> /dev/null && set -- \${line##*) } && [ \"\${20-}\" = '$4' ] && kill -URG $3; kill -KILL -$2"
  watcher='' now=a next=b
  watchdog
  while :; do
    sleep $((lease / 6))
    mv -f "@BEAT@$1.$now" "@BEAT@$1.$next" 2> /dev/null || [ -e "@BEAT@$1.$next" ] || break
    earlier=$watcher
    watchdog
    kill -KILL "$earlier"
    swap=$now now=$next next=$swap
  done
  eval "$give_up"
}
watchdog() { # gives up after half a lease, unless the next heartbeat kills it
  # Two sleeps: if Slurm suspended the job, the first is over when the processes resume, and the heartbeat has the
  # second to act.
  last=$(((lease + 11) / 12))
  sh -c 'sleep "$1"; sleep "$2"; eval "$3"' yurt-timer $((lease / 2 - last)) "$last" "$give_up" > /dev/null 2>&1 &
  watcher=$!
}
fence() { # fence K: makes start K stop, wherever it runs; waits until it must have noticed
  # With the time of the first and of the last heartbeat: renaming a file changes only its second time.
  ran=$(stat -c '%Y %Z' "@BEAT@$1.a" "@BEAT@$1.b" 2> /dev/null | head -n 1)
  write_once "@FENCED@$1" "$me $ran" > /dev/null || exit 75
  while :; do
    for _try in 1 2 3 4 5 6; do
      if mv -f "@BEAT@$1.a" "@BEAT@$1.gone" || mv -f "@BEAT@$1.b" "@BEAT@$1.gone"; then break; fi 2> /dev/null
    done
    sleep $((lease / 2 + lease / 6 + 1))
    [ -e "@BEAT@$1.a" ] || [ -e "@BEAT@$1.b" ] || return 0
  done
}
