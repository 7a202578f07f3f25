# A candidate of a race: your command starts only if this candidate holds the claim. Needs gate.sh and claim.sh before it.
take_claim() { # sets `unclaimed` to why your command must not start: race (another holds the claim), unanswered or stopped; else empty
  unclaimed=stopped began_asking=$(date +%s) pause=1 asking=$nonce-$$-${born:-0}-${SLURM_RESTART_COUNT:-0}
  item=$(((race_first + race_step * ${YURT_TASK_INDEX:-0} + race_items) % race_items))
  rm -f @WANT@* # of an earlier start
  while [ -z "$stopped" ] && ! is_cancelled && ! read_written @EXIT@ > /dev/null; do
    holder=$(ask)
    case $holder in "$candidate") unclaimed='' ;; '' | *[!a-z0-9-]*) holder='' ;; *) unclaimed=race ;; esac
    [ -z "$holder" ] || break
    [ "$(date +%s)" -lt $((began_asking + race_wait)) ] || give_back || { unclaimed=unanswered && break; }
    sleep "$pause" &
    wait $! # a signal ends it
    [ "$pause" -ge 5 ] || pause=$((pause + 1))
  done
  rm -f "@WANT@$asking" "@ANSWER@$asking"
}
ask() { # prints who holds the claim; nothing if nobody answers
  if [ -n "$race_here" ]; then
    (cd "$race_folder" && me=$me.$asking patience=5 && claim "$item" "$candidate") 2> /dev/null
    return
  fi
  if type reach > /dev/null 2>&1 && by_ssh; then return; fi
  [ -e "@WANT@$asking" ] || { echo "$item $candidate" > "@WANT@aside.$$" && mv "@WANT@aside.$$" "@WANT@$asking"; } 2> /dev/null
  ! type carry > /dev/null 2>&1 || carry > /dev/null 2>&1
  read_written "@ANSWER@$asking"
}
by_ssh() { # asks the arbiter through ssh: from this node, or through the login host
  reply=$(reach "claim $item $candidate" < /dev/null 2> /dev/null) ||
    { [ "$kind" = slurm ] && reply=$(reach -o "ProxyCommand=ssh -o BatchMode=yes -o ConnectTimeout=10 -W [%h]:%p $SLURM_SUBMIT_HOST" "claim $item $candidate" < /dev/null 2> /dev/null); } ||
    return
  printf '%s\n' "$reply" | sed -n 's/^yurt-race \([a-z0-9-]*\)$/\1/p' | grep . # a login may print more lines
}
give_back() { # nobody has answered: gives the node back; a later job asks again. Fails if that is not possible
  began_asking=$(date +%s)
  [ "$kind" = slurm ] || return 0 # nothing is reserved on this machine
  rm -f "@WANT@$asking" # a claim that is carried now would have to wait for the later job
  echo "$began_asking" >> @ROUNDS@
  rounds=$(wc -l 2> /dev/null < @ROUNDS@ || echo 1) # the disk may be full
  later=now+$((60 << (rounds > 5 ? 5 : rounds))) held='' how=requeue again='asks again later'
  if [ "$rounds" -ge 5 ] && [ -z "$race_here" ] && ! type reach > /dev/null 2>&1; then # each round costs a node that does nothing
    later='' held=yes how=requeuehold again='is held, and asks again when you release it'
  fi
  echo "yurt: nobody told this job within $race_wait s whether another cluster was first; it $again" >&2
  next=1
  while read_written "@START@$next" > /dev/null; do next=$((next + 1)); done
  if reply=$(submit_next_job "$next"); then
    job_id "$reply" >> @JOBS@
    exit 0
  fi
  timeout 30 scontrol "$how" "$job" 2> /dev/null && exit 0
  later='' held=''
  [ "$rounds" -lt 5 ]
}
