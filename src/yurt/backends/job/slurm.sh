# Calls of Slurm's commands, whose output yurt reads: without the variables by which dotfiles change what they say and do.
plain_slurm() { # unsets these variables, in this shell; those that choose an account or resources stay
  case $(export -p) in
    *SQUEUE_* | *SCANCEL_* | *SINFO_* | *SACCT* | *SCONTROL_* | *SPRIO_* | *SSHARE_* | *SBATCH_* | *SRUN_* | *SLURM_*) ;;
    *) return 0 ;;
  esac
  for yurt_each in $(env | sed -n 's/^\(S[A-Z]*_[A-Z0-9_]*\)=.*/\1/p'); do
    case $yurt_each in
      SQUEUE_* | SINFO_* | SACCT_* | SACCTMGR_* | SCONTROL_* | SPRIO_* | SSHARE_*) ;; # which records are listed, and how
      SCANCEL_*) ;;                                           # which jobs are cancelled
      SLURM_TIME_FORMAT) ;;                                   # how times are printed
      SLURM_EXIT_ERROR | SLURM_EXIT_IMMEDIATE | SLURM_UMASK) ;; # sbatch's exit code if it fails; the umask of the job
      SBATCH_ARRAY_INX) ;;                                    # several jobs instead of one
      SBATCH_CLUSTERS) ;;                                     # squeue looks elsewhere; SLURM_CLUSTERS is for all commands
      SBATCH_CONTAINER | SBATCH_CONTAINER_ID) ;;              # where job.sh runs
      SBATCH_DEBUG) ;;                                        # sbatch prints more than the reason for a refusal
      SBATCH_EXPORT | SBATCH_GET_USER_ENV) ;;                 # the job lacks the shares of secrets
      SBATCH_INPUT | SBATCH_OUTPUT | SBATCH_ERROR | SBATCH_OPEN_MODE) ;; # where logs are; a requeue truncates them
      SBATCH_JOB_NAME) ;;                                     # yurt finds jobs by their names
      SBATCH_REQUEUE | SBATCH_NO_REQUEUE) ;;                  # whether a job starts again
      SBATCH_SIGNAL) ;;                                       # job.sh takes signals for a time limit or a preemption
      SBATCH_WAIT) ;;                                         # sbatch returns at the end of the job
      SRUN_* | SLURM_EXPORT_ENV | SLURM_LABELIO | SLURM_MULTI_PROG | SLURM_STD*MODE | SLURM_TIMELIMIT | SLURM_WORKING_DIR | \
        SLURM_IMMEDIATE | SLURM_EXCLUSIVE | SLURM_OPEN_MODE | SLURM_*PROLOG | SLURM_*EPILOG)
        [ -z "${SLURM_JOB_ID-}" ] || continue ;; # how srun starts a step; in a job they are its own
      *) continue ;;
    esac
    unset "$yurt_each"
  done
  unset yurt_each
}
drop_rivals() { # drop_rivals SBATCH-OPTION…: unsets variables that would add to these options, or that sbatch refuses beside them
  for yurt_each; do
    case $yurt_each in
      --mem=* | --mem-per-*) unset SBATCH_MEM_PER_NODE SBATCH_MEM_PER_CPU SBATCH_MEM_PER_GPU ;;
      --gres=* | --gpus*) unset SBATCH_GRES SBATCH_GPUS SBATCH_GPUS_PER_NODE SBATCH_GPUS_PER_TASK SBATCH_CPUS_PER_GPU ;;
      --cpus-per-task=*) unset SBATCH_CPUS_PER_GPU ;;
    esac
  done
}
plainly() (plain_slurm && exec "$@") # plainly COMMAND…, of Slurm, in a job
queue() { # queue SQUEUE-OPTION…: prints rows; fails if squeue fails, or does not print its header, which has no small letters
  yurt_rows=$(plainly timeout "${yurt_patience:-60}" squeue "$@" < /dev/null) || return
  yurt_header=${yurt_rows%%"
"*}
  case $yurt_header in '' | *[!A-Z_\ \|]*) echo "squeue printed no table${yurt_header:+: $yurt_header}" >&2 && return 1 ;; esac
  [ "$yurt_rows" = "$yurt_header" ] || printf '%s\n' "${yurt_rows#*"
"}"
}
