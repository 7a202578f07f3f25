# The heartbeat of a start that may be followed by another: no two of them run at a time.
heartbeat() { # heartbeat K CHILD JOB BORN: shows every sixth of the lease that this start lives; ends it if fenced off, or it cannot tell
  trap '' USR1 USR2 HUP # a signal to all of the job is none to this
  # JOB, this script, is told why. Nothing here touches a disk, and only builtins are used: the disk may hang at any time.
  give_up="{ read -r line < /proc/$3/stat; } 2> /dev/null && set -- \${line##*) } && [ \"\${20-}\" = '$4' ] && kill -URG $3; kill -KILL -$2"
  watcher= now=a next=b
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
uptime='{ read -r up _rest < /proc/uptime; } 2> /dev/null && up=${up%.*} || up=0'
watchdog() { # gives up after half a lease; if all this was stopped for a while, as Slurm does when it suspends, beat comes first
  sh -c 'eval "$1"; from=$up
    sleep "$2"
    eval "$1"
    [ $((up - from)) -le $(($2 + 1)) ] || sleep "$3"
    eval "$4"' yurt-timer "$uptime" $((lease / 2)) $(((lease + 11) / 12)) "$give_up" > /dev/null 2>&1 &
  watcher=$!
}
fence() { # fence K: from now on start K is over, wherever it runs; waits until it must have noticed
  write_once "@FENCED@$1" "$me" > /dev/null || exit 75
  while :; do
    for _try in 1 2 3 4 5 6; do
      if mv -f "@BEAT@$1.a" "@BEAT@$1.gone" || mv -f "@BEAT@$1.b" "@BEAT@$1.gone"; then break; fi 2> /dev/null
    done
    sleep $((lease / 2 + lease / 6 + 1))
    [ -e "@BEAT@$1.a" ] || [ -e "@BEAT@$1.b" ] || return 0
  done
}
