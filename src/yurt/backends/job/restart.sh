# Decides whether the run is restarted after a start, and restarts it.
count_starts() { # count_starts REASON...: prints how many earlier starts finished for these reasons; one without a record was lost
  found=0 each=1
  while [ "$each" -lt "$k" ]; do
    read -r _status reason _rest << end
$(read_written "@END@$each" || echo "0 lost")
end
    for word in "$@"; do [ "$reason" != "$word" ] || found=$((found + 1)); done
    each=$((each + 1))
  done
  echo "$found"
}
saved() { # prints "saved" if this start wrote a file that the next one can use
  [ -z "$stage_saved" ] || { echo saved && return; }
  since=@START@$k
  [ -e "$since" ] || since=$since.d
  [ -z "$(find @CHECKPOINTS@ @OUTPUTS@ @WORK@ @METRICS@ -type f -newer "$since" 2> /dev/null | head -n 1)" ] || echo saved
}
failures_left() { # failures_left [MORE]: whether a lost start may be retried
  allowed=$retries
  [ "$requeues" -eq 0 ] || [ "$allowed" -ge 3 ] || allowed=3 # limits a run that breaks node after node
  [ "$(count_starts lost error)" -lt $((allowed + ${1:-0})) ]
}
idle() { # whether this start and the previous one reached the time limit and saved nothing
  [ -z "$(saved)" ] || return 1
  case $(read_written "@END@$((k - 1))") in *" limit "*" saved") return 1 ;; *" limit "*) ;; *) return 1 ;; esac
}
decide_restart() { # decide_restart STATUS CAUSE: sets `reason` if the run is restarted, else `cause`
  reason='' cause=$2 # as in the table of model/restart_policy.py
  case $1,$2 in
    0,* | *,cancelled | *,out_of_memory) return 1 ;;
    137,lost) # its disk did not respond for too long
      if failures_left; then reason=lost; else cause=node_failed; fi ;;
    85,stopped | 13[78],stopped | 143,stopped)
      [ "$requeues" -eq 0 ] || reason=stopped ;;
    85,* | 13[78],timeout | 143,timeout)
      if [ "$requeues" -eq 0 ]; then
        :
      elif [ "$(count_starts limit)" -ge "$requeues" ]; then
        cause=requeues
      elif idle; then
        cause=idle
      else
        reason=limit
      fi ;;
  esac
  if [ -z "$reason$cause" ] && [ -n "$errors" ] && [ "$(count_starts lost error)" -lt "$retries" ]; then reason=error; fi
  [ -n "$reason" ]
}
restart() { # requeues this job or submits another; if that fails, the next yurt command does it
  [ "$kind" = slurm ] || with_shares exec sh "${sweep:-$run}/@JOB@" "$nonce" $((k + 1)) ${sweep:+"$YURT_TASK_INDEX"}
  for _try in 1 2 3 4 5 6 7 8 9 10 11 12; do
    if is_cancelled; then exit 143; fi
    if [ -z "$follow" ]; then
      reply=$(timeout 30 scontrol requeue "$job" 2>&1) && exit 0
      case $reply in *isabled* | *nvalid* | *denied* | *ermission*) follow=yes ;; esac
    fi
    if [ -n "$follow" ] && reply=$(submit_next_job $((k + 1))); then
      next=$(job_id "$reply")
      echo "$next" >> "@JOBS@"
      ! is_cancelled || plainly scancel "$next"
      exit 0
    fi
    sleep 5
  done
}
submit_next_job() ( # submit_next_job K: submits a job for start K, not before `later` or, with `held`, on hold, in the environment of the first submission
  for name in $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p'); do
    [ "$name" = SLURM_CONF ] || unset "$name"
  done
  plain_slurm
  umask "$mask"
  if [ -n "$sweep" ]; then # an array of one task, so that the job name contains its number
    with_shares submit --dependency="afterany:$job" ${later:+--begin="$later"} ${held:+--hold} --job-name="yurt-${sweep##*/}+$YURT_TASK_INDEX" --array=0 \
      --comment="${held:+race_wait }yurt:${sweep##*/}:$1:$YURT_TASK_INDEX:0" @JOB@ "$nonce" "$1" "$YURT_TASK_INDEX" < /dev/null
  else
    with_shares submit --dependency="afterany:$job" ${later:+--begin="$later"} ${held:+--hold --comment="race_wait yurt:${run##*/}"} @JOB@ "$nonce" "$1" < /dev/null
  fi
)
