fail() {
  echo "yurt: $*" >&2
  exit 78
}
load_modules() { # load_modules FOLDER: `module` is a function of login shells, which a job is not
  type module > /dev/null 2>&1 && return
  for yurt_each in "$1/init/bash" "$1/init/sh" /etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do
    if [ -r "$yurt_each" ]; then . "$yurt_each" && return; fi
  done
  fail "there is no 'module' command here"
}
use_conda() { # use_conda NAME
  for yurt_each in conda "$HOME/miniconda3/bin/conda" "$HOME/miniforge3/bin/conda" "$HOME/anaconda3/bin/conda"; do
    command -v "$yurt_each" > /dev/null 2>&1 && eval "$("$yurt_each" shell.posix hook)" && conda activate "$1" && return
  done
  fail "conda activate $1 failed"
}
engine='for engine in apptainer singularity; do command -v "$engine" > /dev/null && exec "$engine" "$@"; done
  echo "yurt: there is neither apptainer nor singularity here" >&2
  exit 78'

mirror() { # mirror FROM TO: links to everything in a folder
  mkdir -p "$2" && find "$1" -mindepth 1 -maxdepth 1 -exec sh -c 'ln -s "$@" "$0"' "$2" {} +
}
make_work() { # the working folder: links into the code, which is read-only and shared; or a copy of it
  [ -d "$run/work" ] && return
  aside=$run/work.$$
  rm -rf "$aside"
  if [ -z "$code" ]; then
    mkdir "$aside"
  elif [ ! -d "$code" ]; then
    fail "the code of this run is gone: $code"
  elif [ -n "$copy" ]; then
    mkdir "$aside" && cp -a "$code/." "$aside/" && chmod -R u+w "$aside"
  else
    mirror "$code" "$aside"
    below= rest=$subfolder
    while [ -n "$rest" ]; do # the folder the command starts in must be a real one too
      below=$below/${rest%%/*}
      case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
      rm -f "$aside$below" && mirror "$code$below" "$aside$below"
    done
  fi || fail "the working folder could not be made"
  mv "$aside" "$run/work" 2> /dev/null || [ -d "$run/work" ]
}

inside() { # your command, in the environment you asked for
  make_work
  mkdir -p "$run/outputs" "$run/checkpoints"
  # Once your variables are set none of this script's is used or changed: they may have the same names.
  set -- "${place:-$run/work${subfolder:+/$subfolder}}" $launcher
  if [ -n "$container" ]; then
    set -- "$@" sh -c "$engine" yurt exec ${gpus:+--nv} --bind "$run" ${code:+--bind "$code"} --pwd "$1" "$container"
  fi
  . "$run/data" # sets your variables, and adds your command to "$@"
  environment
  cd "$1" || fail "there is no folder $1"
  shift
  command -v python > /dev/null 2>&1 || case $1,${2-} in
    python,*) shift && set -- python3 "$@" ;;
    srun,python) shift 2 && set -- srun python3 "$@" ;;
  esac
  exec "$@"
}

apart() { # apart COMMAND…: in a session of its own, so that all of it can be signalled
  if command -v setsid > /dev/null 2>&1; then exec setsid "$@"; else exec perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@"; fi
}
note() { # on a signal to stop: write down why, while there is time
  why=stopped
  [ -e cancel ] && why=cancelled
  [ -n "$limit" ] && [ "$(date +%s)" -ge $((began + limit - 5)) ] && why=timeout
  [ -n "$stopped" ] || patience=3 put "stopped.$k" "$why" > /dev/null
  stopped=$why
}
pass_on() { # pass_on SIGNAL: to your command and everything it started
  [ -n "$child" ] && { kill "-$1" "-$child" || kill "-$1" "$child"; } 2> /dev/null
}
stop() { # your command is told to end; where no scheduler sees to it, it is killed if it has not by then
  pass_on TERM
  note
  # A signal that comes while a shell is being forked is lost with its traps: the first one may have been.
  [ "$(date +%s)" -gt $((began + 2)) ] || pass_on TERM
  [ "$kind" = slurm ] || [ -z "$child" ] || later 10 "kill -KILL -$child"
}
later() { # later SECONDS COMMAND; ends with: kill -KILL "-$timer"
  apart sh -c 'sleep "$1"; eval "$2"' yurt-timer "$1" "$2" > /dev/null 2>&1 &
  timer=$!
}
beat() { # shows every sixth of the lease that this start is alive; ends it when it was fenced off, or cannot tell
  timer= now=a next=b
  trap '[ -z "$timer" ] || kill -KILL "-$timer"; exit' TERM
  later $((lease / 2)) "kill -KILL -$child" # from the start, and never without one: the disk may hang at any time
  while :; do
    sleep $((lease / 6)) &
    wait $!
    mv -f "beat.$k.$now" "beat.$k.$next" 2> /dev/null || [ -e "beat.$k.$next" ] || break
    before=$timer
    later $((lease / 2)) "kill -KILL -$child"
    kill -KILL "-$before" 2> /dev/null
    swap=$now now=$next next=$swap
  done
  kill -KILL "-$child" 2> /dev/null
}
fence() { # fence K: from now on start K is over, wherever it runs; waits until it must have noticed
  put "fenced.$1" "$me" > /dev/null || exit 75
  while :; do
    for _try in 1 2 3 4 5 6; do
      if mv -f "beat.$1.a" "beat.$1.gone" || mv -f "beat.$1.b" "beat.$1.gone"; then break; fi 2> /dev/null
    done
    sleep $((lease / 2 + lease / 6 + 1))
    [ -e "beat.$1.a" ] || [ -e "beat.$1.b" ] || return 0
  done
}
out_of_memory() { # whether the kernel killed something of this job for want of memory
  [ "$kind" = slurm ] || return 1
  while IFS=: read -r _number kinds path; do
    case ,$kinds, in
      *,memory,*) counts=/sys/fs/cgroup/memory$path/memory.oom_control ;;
      ,,) counts=/sys/fs/cgroup$path/memory.events ;;
      *) continue ;;
    esac
    while read -r name count; do
      [ "$name" = oom_kill ] && [ "$count" -gt 0 ] && return 0
    done 2> /dev/null < "$counts"
  done < /proc/self/cgroup
  return 1
}
finish() { # finish STATUS CAUSE: how the run ended, for good unless its site stopped it and it may be started again
  if [ "$2" = stopped ] && [ "$restarts" -ge "$k" ]; then
    put "end.$k" "$1" > /dev/null
    exit "$1"
  fi
  signal=0
  [ "$1" -le 128 ] || signal=$(($1 - 128))
  put exit.json "{\"code\":$1,\"signal\":$signal,\"cause\":\"$2\",\"started\":$began,\"ended\":$(date +%s),\"node\":\"$(uname -n)\",\"job\":\"$job\",\"restarts\":$((k - 1))}" > /dev/null
  put "end.$k" "$1" > /dev/null
  exit "$1"
}

outside() { # outside NONCE: the gate, then your command, then how it ended
  mask=$(umask)
  umask 077
  stopped=
  trap 'stopped=early' TERM
  cd "$run" || exit 75
  job=$$
  [ "$kind" != slurm ] || job=$SLURM_JOB_ID
  born=$(cut -d ' ' -f 22 "/proc/$$/stat" 2> /dev/null)
  read -r boot 2> /dev/null < /proc/sys/kernel/random/boot_id
  me=$1.$job.${SLURM_RESTART_COUNT:-0}.$(uname -n).$$.${born:-0}.${boot:-0}
  began=$(date +%s)

  # The gate: of all submissions one wins, and each of its starts is counted.
  owner=$(put winner "$1.$job") || exit 75
  [ "$owner" = "$1.$job" ] || exit 0
  k=1
  while :; do
    if [ "$k" -gt $((restarts + 1)) ] || stands exit.json > /dev/null; then exit 0; fi
    owner=$(put "gen.$k" "$me") || exit 75
    [ "$owner" != "$me" ] || break
    k=$((k + 1))
  done
  if [ "$k" -gt 1 ] && ! stands "end.$((k - 1))" > /dev/null; then fence $((k - 1)); fi
  if stands exit.json > /dev/null; then exit 0; fi

  child= timer= alarm= beats=
  trap stop TERM
  trap 'pass_on INT; note' INT
  trap 'pass_on USR1' USR1
  trap 'pass_on USR2' USR2
  trap stop ALRM
  if [ "$restarts" -gt 0 ]; then
    : > "beat.$k.a"
    if stands "fenced.$k" > /dev/null; then exit 0; fi
  fi
  if [ -n "$stopped" ] || [ -e cancel ]; then # before anything of yours was started
    stopped=
    note
    finish 143 "$stopped"
  fi
  began=$(date +%s)
  export YURT_RESTARTS=$((k - 1))
  ([ -z "$stopped" ] || exit 143; umask "$mask" && apart "$(command -v bash || command -v sh)" "$run/job.sh" inside) < /dev/null &
  child=$!
  [ -z "$stopped" ] || { sleep 1; stop; }
  if [ "$kind" != slurm ]; then
    echo "$child $(cut -d ' ' -f 22 "/proc/$child/stat" 2> /dev/null)" > "child.$k"
    if [ -n "$limit" ]; then # if this script is gone by then, its number may be another's
      later "$limit" "[ \"\$(cut -d ' ' -f 22 /proc/$$/stat 2> /dev/null)\" = '$born' ] && kill -ALRM $$"
      alarm=$timer
    fi
  fi
  if [ "$restarts" -gt 0 ]; then
    beat &
    beats=$!
  fi

  while :; do # a signal ends the waiting, not the command
    wait "$child"
    status=$?
    kill -0 "$child" 2> /dev/null || break
  done
  wait "$child" 2> /dev/null
  again=$?
  [ "$again" -eq 127 ] || status=$again
  for each in $alarm $timer; do kill -KILL "-$each" 2> /dev/null; done
  if [ -n "$beats" ]; then kill -TERM "$beats" && wait "$beats"; fi 2> /dev/null
  pass_on KILL # what your command left behind

  if stands "fenced.$k" > /dev/null; then exit 0; fi
  cause=
  if [ "$status" -ne 0 ]; then
    cause=$stopped
    ! out_of_memory || cause=out_of_memory
  fi
  finish "$status" "$cause"
}

case ${1-} in
  '') YURT_RESTARTS=0 exec "$(command -v bash || command -v sh)" "$run/job.sh" inside ;;
  inside) inside ;;
  *) outside "$1" ;;
esac
