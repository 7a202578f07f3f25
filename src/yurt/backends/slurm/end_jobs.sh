# Cancels jobs, and looks at the queue until they are seen ending. Needs slurm.sh before it, and two functions: rows_of_jobs
# reads rows JOB|STATE|NAME of the queue and prints lines JOB STATE RUN for the jobs to cancel, or fails; cancel_by_name
# does what is possible without the queue.
end_jobs() { # end_jobs [-r]: sets `left` to the lines of jobs that are not seen ending; exits if the queue cannot be read
  for pause in 0 0 0.3 0.7 1; do
    [ "$pause" = 0 ] || sleep "$pause" 2> /dev/null || sleep 1
    rows=$(queue "$@" -t all -u "$(id -un)" -o '%i|%T|%j') || {
      [ $? -eq 124 ] || cancel_by_name # 124: squeue took too long, and so would scancel
      exit 7
    }
    listed=$(printf '%s\n' "$rows" | rows_of_jobs) || unreadable_rows
    left=$(printf '%s\n' "$listed" | awk '
      NF && $2 !~ /^(COMPLETING|COMPLETED|FAILED|TIMEOUT|DEADLINE|OUT_OF_MEMORY|CANCELLED|PREEMPTED|REVOKED|NODE_FAIL|BOOT_FAIL)/
      ') || unreadable_rows
    [ -n "$left" ] || return 0
    printf '%s\n' "$left" | cut -d ' ' -f 1 | sort -u | timeout "${yurt_patience:-60}" xargs scancel
  done
}
unreadable_rows() {
  cancel_by_name
  echo "the rows of squeue cannot be read" >&2
  exit 1
}
goes_on() { # goes_on RUN FOLDER: whether a run that has started goes on though the queue does not list its job; adds it to `left`
  [ ! -e "$2/@EXIT@" ] && [ ! -e "$2/@EXIT@.d" ] || return
  case $rows in *"|yurt-$1"*) return 1 ;; esac
  [ -e "$2/@JOBS@" ] || return
  jobs=$(tail -n 3 "$2/@JOBS@") || { left="? RUNNING $1" && return; }
  for job in $jobs; do
    seen=$(timeout "${yurt_patience:-60}" scontrol show job "$job" 2>&1) || [ $? -ne 124 ] || seen='unable to contact' # it took too long
    case $seen in
      *"JobName=yurt-$1"*JobState=PENDING* | *"JobName=yurt-$1"*JobState=RUNNING* | *"JobName=yurt-$1"*JobState=SUSPENDED* | *'nable to contact'*)
        scancel "$job"
        left="$job RUNNING $1" && return ;;
    esac
  done
  return 1
}
