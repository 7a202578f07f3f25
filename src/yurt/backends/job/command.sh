# Runs your command in its folder and its environment.
# In each Slurm task that srun starts for yurt: where the tasks meet, and which one it is, under the names of PyTorch.
# The first task is on the node that runs srun. Ports of clients begin at 32768 on Linux.
# torchrun reads its options from PET_ variables. It starts the processes of a node, so each node has one task.
# shellcheck disable=SC2016
task_environment='
  export MASTER_ADDR="${MASTER_ADDR:-$SLURM_LAUNCH_NODE_IPADDR}" MASTER_PORT="${MASTER_PORT:-$((10000 + SLURM_JOB_ID % 20000))}"
  export RANK="${RANK:-$SLURM_PROCID}" LOCAL_RANK="${LOCAL_RANK:-$SLURM_LOCALID}" WORLD_SIZE="${WORLD_SIZE:-$SLURM_NTASKS}"
  case " ${PET_NNODES:+--nnodes $PET_NNODES }$* " in
    *" --standalone "* | *" --nnodes 1 "* | *" --nnodes=1 "*) ;; # a torchrun of its own on each node
    *) if [ "${SLURM_NNODES:-1}" -gt 1 ] && [ "$SLURM_NTASKS" = "$SLURM_NNODES" ]; then
      export PET_NNODES="${PET_NNODES:-$SLURM_NNODES}" PET_NODE_RANK="${PET_NODE_RANK:-$RANK}"
      export PET_MASTER_ADDR="${PET_MASTER_ADDR:-$MASTER_ADDR}" PET_MASTER_PORT="${PET_MASTER_PORT:-$MASTER_PORT}"
    fi ;;
  esac
  case $1 in python) command -v python > /dev/null 2>&1 || { shift && set -- python3 "$@"; } ;; esac
  exec "$@"'
link_log() { # link_log FOLDER LOG NAME: makes a log of the run appear as a file in its working directory
  [ -n "$yurt_recorded" ] || return 0
  case $3 in */*) mkdir -p "$1/${3%/*}" ;; esac
  ln -f "$YURT_RUN_DIR/$2" "$1/$3" 2> /dev/null || ln -sf "$YURT_RUN_DIR/$2" "$1/$3" || echo "yurt: cannot create $1/$3" >&2
}
join_streams() { # as sbatch does without --error
  [ -z "$yurt_recorded" ] || exec 2>&1
}
padded() { # padded WIDTH NUMBER
  case $2 in *[!0-9]*) printf %s "$2" ;; *) printf "%0$1d" "$2" ;; esac
}
check_parts() { # check_parts FILE…: ends if a part of the script cannot be read; bash would go on without it
  for yurt_each; do
    if [ -f "$yurt_each" ] && [ -r "$yurt_each" ]; then continue; fi
    fail "$yurt_each, a part of the job script, is missing or cannot be read"
  done
  unset yurt_each
}
run_command() { # run_command [NONCE]: runs your command in your environment
  yurt_recorded=${1:+$run/@WHY@}
  bring_secrets "${1-}"
  mask=$(umask)
  umask 077 # these folders are private; what your command creates in them has your umask
  make_work_folder
  [ -z "${stage-}" ] || use_stage "${1-}"
  # The start folder too: the code does not contain it if it has no files.
  if ! { [ -d "$run/@OUTPUTS@" ] && [ -d "$run/@CHECKPOINTS@" ] && [ -d "$run/@WORK@${subfolder:+/$subfolder}" ]; }; then
    insist mkdir -p "$run/@OUTPUTS@" "$run/@CHECKPOINTS@" "$run/@WORK@${subfolder:+/$subfolder}" || fail "cannot write to $run"
  fi
  umask "$mask"
  [ -z "${YURT_INSTEAD-}" ] || launcher=
  [ -z "$first_session" ] || [ -n "${YURT_INSTEAD-}" ] || launcher='' container='' pyxis='' # those are for sessions
  # After your variables are set, none of this script's is used or changed: the names may collide.
  set -- "$(own_packages)$imports" "${place:-$run/@WORK@${subfolder:+/$subfolder}}"
  # srun does not take the CPUs of a task from the job, since Slurm 22.05.
  if [ -n "$pyxis" ]; then
    set -- "$@" srun ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"}
    [ -n "$launcher" ] || set -- "$@" --nodes=1 --ntasks=1
    if [ -n "${YURT_INSTEAD-}" ]; then set -- "$@" --overlap && if [ -t 0 ]; then set -- "$@" --pty; fi; fi
    yurt_mounts=${sweep:-$run}:${sweep:-$run}${code:+,$code:$code:ro}
    [ ! -d "$imports" ] || yurt_mounts=$yurt_mounts,$imports:$imports:ro
    [ -z "${YURT_STAGE-}" ] || yurt_mounts=$yurt_mounts,${YURT_STAGE%/runs/*}:${YURT_STAGE%/runs/*}
    set -- "$@" --container-image="$pyxis" --container-mounts="$yurt_mounts" --container-workdir="$2"
    unset yurt_mounts
  elif [ -n "$launcher" ]; then
    set -- "$@" "$launcher" ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"}
  fi
  [ -z "$launcher" ] || set -- "$@" sh -c "$task_environment" sh
  if [ -n "$container" ] && [ -z "$pyxis" ]; then
    set -- "$@" sh -c "$container_engine" "${yurt_recorded:-/dev/null}" exec ${gpus:+--nv} --bind "${sweep:-$run}" ${code:+--bind "$code"}
    [ ! -d "$imports" ] || set -- "$@" --bind "$imports"
    [ -z "${YURT_STAGE-}" ] || set -- "$@" --bind "${YURT_STAGE%/runs/*}"
    set -- "$@" --pwd "$2" "$container"
  fi
  YURT_KEEP=$#
  [ -z "$sweep" ] || make_task_folder || fail "cannot write to $run"
  [ -z "${SLURM_JOB_ID-}$sbatch" ] || export SLURM_SUBMIT_DIR="$2"
  read_profile
  set -- "${sweep:-$run}/@DATA@" "$secrets" "$@"
  eval "$yurt_profile" # comes first: other variables take precedence
  unset yurt_profile
  [ -z "$sweep" ] || [ -e "$run/@SET@" ] || check_parts "$sweep/@OFFSETS@" "$sweep/@SETS@" # they are missing or damaged
  check_parts "$1" ${sweep:+"$run/@SET@"}
  . "$1" # sets your variables and appends your command to "$@"
  shift
  [ $# -gt $((YURT_KEEP + 1)) ] || fail "the file ${sweep:-$run}/@DATA@ is damaged: it does not contain the command"
  eval "give_secrets $1" && shift
  environment
  export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$1"
  if ! cd "$2"; then
    [ ! -d "$2" ] || fail "cannot enter the folder $2"
    fail "folder $2 not found"
  fi
  if [ -n "${YURT_INSTEAD-}" ]; then # yurt shell: runs another command instead of yours
    set -- $(($# - YURT_KEEP)) "$@"
    while [ "$YURT_KEEP" -gt 0 ]; do
      set -- "$@" "$2"
      YURT_KEEP=$((YURT_KEEP - 1)) yurt_first=$1
      shift 2
      set -- "$yurt_first" "$@"
    done
    shift $(($1 + 1))
    set -- "$@" sh -c -- "$YURT_INSTEAD"
    unset YURT_INSTEAD
  fi
  unset YURT_KEEP
  shift 2
  command -v python > /dev/null 2>&1 || case $1,${2-} in
    python,*) shift && set -- python3 "$@" ;;
    srun,python) shift 2 && set -- srun python3 "$@" ;;
  esac
  exec "$@"
}
