# Entry point: runs a start, or a part of one.
all_completed() { # all_completed FOLDER...: whether runs completed; removed runs count as completed
  for each in "$@"; do
    for _try in 1 2 3 4 5 6; do # a file written on another node may show up late
      [ -d "$each" ] || continue 2
      case $(cd "$each" && read_written @EXIT@) in '{"code":0,'*) continue 2 ;; ?*) return 1 ;; esac
      sleep 2
    done
    return 1
  done
}
run_start() { # run_start NONCE [K]: passes the gate, runs your command, records the result. With K: only start K
  mask=$(umask)
  umask 077
  nonce=$1 only=${2-} patience='' later='' held=''
  stopped=
  trap 'stopped=early' TERM
  trap '' USR1 USR2
  own_folders || { echo "yurt: $unsafe, so this job does not start" >&2 && exit 78; }
  # At its end, a task removes its gate: exit.json, written before that, keeps it closed. So look before and after it.
  if [ -n "$sweep" ] && (cd "$run" && read_written @EXIT@) > /dev/null 2>&1; then exit 0; fi
  [ -z "$sweep" ] || insist make_task_folder || exit 75
  cd "$run" || exit 75
  if [ -n "$sweep" ]; then
    insist make_files @OUT_LOG@ @ERR_LOG@ || exit 75
    exec >> @OUT_LOG@ 2>> @ERR_LOG@
  fi
  hide_shares
  job=$$
  [ "$kind" != slurm ] || job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
  born=$(born $$)
  { read -r boot < /proc/sys/kernel/random/boot_id || boot=$(sysctl -n kern.bootsessionuuid); } 2> /dev/null
  came=$(date +%s) began=$came
  due=$((came + ${limit:-0} - ${stage_time:-0})) asked=

  me=$nonce.$job.$$
  # The gate: one submission wins. Only the winner, and jobs that it or yurt submits later, run starts.
  owner=$(write_once @WINNER@ "$nonce.$job") || exit 75
  if [ -n "$sweep" ] && read_written @EXIT@ > /dev/null; then fold && exit 0; fi
  [ -z "$only" ] || [ "$owner" = cancelled ] || nonce=${owner%%.*} # submitted for a start that is due
  node=$(uname -n)
  me=$nonce.$job.${SLURM_RESTART_COUNT:-0}${only:+-$only}.$node.$$.${born:-0}.${boot:-0}
  [ "${owner%%.*}" = "$nonce" ] || { drop_shares "$share"; exit 0; }
  [ "$owner" = "$nonce.$job" ] || [ -n "$only" ] || exit 0
  unclaimed=
  # Defined only for a candidate of a race; before a start is counted, since the job may go back to the queue.
  if type take_claim > /dev/null 2>&1 && ! read_written @EXIT@ > /dev/null; then take_claim; fi
  k=${only:-1}
  while :; do
    if read_written @EXIT@ > /dev/null; then exit 0; fi
    [ "$k" -eq 1 ] || [ "$requeues" -gt 0 ] || [ "$retries" -gt 0 ] || exit 0
    owner=$(write_once "@START@$k" "$me") || exit 75
    [ "$owner" != "$me" ] || break
    case $owner in "$nonce.$job."*) k=$((k + 1)) ;; *) exit 0 ;; esac # only the same job, requeued, continues
  done
  if [ "$k" -gt 1 ] && ! read_written "@END@$((k - 1))" > /dev/null; then fence $((k - 1)); fi
  if read_written @EXIT@ > /dev/null; then exit 0; fi

  child='' timers='' heartbeat='' sampling='' spent_before='' silent='' local_env='' keeper='' keeper_born='' stage_until='' unstaged='' stage_saved='' largest=''
  [ "$k" -eq 1 ] || failures_left 1 || finish 1 node_failed
  trap on_term TERM
  trap 'signal_command INT; note_stop stopped' INT
  trap on_usr1 USR1
  trap 'signal_command USR2' USR2
  trap on_alarm ALRM
  trap 'silent=lost' URG # from the heartbeat, which then kills your command
  if [ "$requeues" -gt 0 ] || [ "$retries" -gt 0 ]; then
    insist make_files "@BEAT@$k.a" || exit 75
    if read_written "@FENCED@$k" > /dev/null; then exit 0; fi
  fi
  if [ -n "$stopped" ] || is_cancelled; then # before your command was started
    stopped=
    note_stop stopped
    finish 143 "$stopped"
  fi
  [ "$unclaimed" != race ] || finish 0 race
  if [ "$unclaimed" = unanswered ]; then
    echo "nobody told its job which cluster was first, and it cannot be queued again from its node" > @WHY@
    finish 78
  fi
  [ -z "$unclaimed" ] || finish 143 stopped
  # Defined only for a run with predecessors.
  if [ "$k" -eq 1 ] && type predecessors_completed > /dev/null 2>&1 && ! predecessors_completed; then finish 1 after; fi
  began=$(date +%s)
  [ "$kind" = slurm ] || came=$began
  for each in "${sweep:-$run}/@JOB@" "${sweep:-$run}/@DATA@"; do # Slurm itself has a copy of the first
    if [ -f "$each" ] && [ -r "$each" ]; then continue; fi
    echo "$each, a part of the job script, is missing or cannot be read" > @WHY@
    sed 's/^/yurt: /' @WHY@ >&2
    finish 78
  done
  export YURT_RESTARTS=$((k - 1))
  [ -z "$unpack" ] || local_env=$(env_copy "$unpack")
  [ -z "${stage-}" ] || stage_begin
  spent_before=$(spent)
  ([ -z "$stopped" ] || exit 143; [ -z "$local_env" ] || export YURT_ENV_COPY="$local_env"; [ -z "$keeper" ] || export YURT_KEEPER="$keeper $keeper_born"; umask "$mask" && with_shares in_own_session "$(command -v bash || command -v sh)" "${sweep:-$run}/@JOB@" inside "$nonce") < /dev/null &
  child=$!
  [ -z "$stopped" ] || { sleep 1; on_term; }
  if [ -n "$spent_before" ]; then
    # Not at once: shorter commands should not pay for it.
    (in_own_session sh -c 'sleep 0.4 || sleep 1; exec sh "$@"' sh "${sweep:-$run}/@JOB@" sample "$k" "$child" $$ "$born") < /dev/null > /dev/null 2>&1 &
    sampling=$!
  fi
  [ "$kind" = slurm ] || echo "$child $(born "$child")" > "@CHILD@$k"
  [ "$kind" = slurm ] || due=$((came + ${limit:-0} - ${stage_time:-0}))
  if [ -n "$limit" ] && { [ "$kind" != slurm ] || [ "$requeues" -gt 0 ] || [ "${stage_time:-0}" -gt 0 ]; }; then set_alarm; fi
  if [ "$requeues" -gt 0 ] || [ "$retries" -gt 0 ]; then
    (in_own_session sh "${sweep:-$run}/@JOB@" heartbeat "$k" "$child" $$ "$born") < /dev/null > /dev/null 2>&1 &
    heartbeat=$!
  fi

  while :; do # a signal interrupts wait, not the command
    wait "$child"
    status=$?
    kill -0 "$child" 2> /dev/null || break
  done
  wait "$child" 2> /dev/null
  last_status=$?
  [ "$last_status" -eq 127 ] || status=$last_status
  # Slurm signals one process after the other: your command may have received TERM before this shell.
  if [ "$status" -eq 143 ] && [ -z "$stopped" ] && [ "$kind" = slurm ]; then sleep 1; fi
  if [ "$requeues" -gt 0 ] && [ -n "$stopped" ] && [ "$stopped" != cancelled ]; then # its other processes may still be saving
    until=$(($(date +%s) + (before > 30 ? before : 30)))
    while command_runs && [ "$(date +%s)" -lt "$until" ]; do sleep 1; done
  fi
  cancel_timers
  # No wait for the sampler: it may hang on a disk.
  [ -z "$sampling" ] || kill_session "$sampling"
  if [ -n "$keeper" ]; then
    signal_command KILL # processes your command left behind do not change its outputs while they are copied
    stage_end
    [ -z "$unstaged" ] || [ "$status" -ne 0 ] || status=74
  fi
  # KILL: any other signal is lost if it arrives while a shell forks, and then this would wait forever.
  if [ -n "$heartbeat" ]; then kill_session "$heartbeat" && wait "$heartbeat"; fi 2> /dev/null
  signal_command KILL # processes your command left behind

  if read_written "@FENCED@$k" > /dev/null; then exit 0; fi
  cause=
  if [ "$status" -ne 0 ]; then
    cause=${stopped:-$silent}
    case $cause,$status in # the signal may have reached your command but not this script
      ,13[07] | ,143) ! is_cancelled || cause=cancelled ;;
    esac
    ! out_of_memory || cause=out_of_memory
  fi
  finish "$status" "$cause"
}
end_start() { # end_start NONCE ME STATUS CAUSE BEGAN SPENT LARGEST: finishes the start that backends/local/runner.py made
  mask=$(umask)
  umask 077
  nonce=$1 me=$2 job=$$ k=1 came=$5 began=$5 spent_before=$6 largest=$7 cause=$4 patience='' stopped='' silent='' child='' timers=''
  local_env='' keeper='' stage_until='' unstaged='' stage_saved='' node=$(uname -n)
  cd "$run" || exit 75
  finish "$3" "$4"
}
case ${1-} in
  '') YURT_RESTARTS=0 exec "$(command -v bash || command -v sh)" "${sweep:-$run}/@JOB@" inside ;;
  inside) run_session ;;
  session) begin_session ;;
  hold) hold_resources ;;
  heartbeat) shift && heartbeat "$@" ;;
  sample) shift && sample "$@" ;;
  ended) shift && end_start "$@" ;;
  *) run_start "$@" ;;
esac
