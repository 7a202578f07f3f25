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

inside() { # inside [NONCE]: your command, in the environment you asked for
  bring_secrets "${1-}"
  make_work
  mkdir -p "$run/outputs" "$run/checkpoints"
  [ -z "${YURT_INSTEAD-}" ] || launcher=
  # Once your variables are set none of this script's is used or changed: they may have the same names.
  set -- "$imports" "${place:-$run/work${subfolder:+/$subfolder}}" $launcher
  if [ -n "$container" ]; then
    set -- "$@" sh -c "$engine" yurt exec ${gpus:+--nv} --bind "$run" ${code:+--bind "$code"}
    [ ! -d "$imports" ] || set -- "$@" --bind "$imports"
    set -- "$@" --pwd "$2" "$container"
  fi
  YURT_KEEP=$#
  set -- "$secrets" "$@"
  [ -z "$sweep" ] || make_task
  . "${sweep:-$run}/data" # sets your variables, and adds your command to "$@"
  eval "give_secrets $1" && shift
  environment
  export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$1"
  cd "$2" || fail "there is no folder $2"
  if [ -n "${YURT_INSTEAD-}" ]; then # yurt shell: another command in the place of yours
    set -- $(($# - YURT_KEEP)) "$@"
    while [ "$YURT_KEEP" -gt 0 ]; do
      set -- "$@" "$2"
      YURT_KEEP=$((YURT_KEEP - 1)) yurt_first=$1
      shift 2
      set -- "$yurt_first" "$@"
    done
    shift $(($1 + 1))
    set -- "$@" sh -c "$YURT_INSTEAD"
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

apart() { # apart COMMAND…: in a session of its own, so that all of it can be signalled
  if command -v setsid > /dev/null 2>&1; then exec setsid "$@"; else exec perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@"; fi
}
note() { # note WHY: on a signal to stop, write down why, while there is time
  if is_cancelled; then set -- cancelled; fi
  [ -z "$stopped" ] || [ "$1" = cancelled ] || return
  stopped=$1 # first: another signal may come while it is written
  (patience=3 && put "stopped.$k" "$1") > /dev/null
}
pass_on() { # pass_on SIGNAL: to your command and everything it started
  [ -n "$child" ] && { kill "-$1" "-$child" || kill "-$1" "$child"; } 2> /dev/null
}
stop() { # your command is told to end; where no scheduler sees to it, it is killed if it has not by then
  pass_on TERM
  if [ -n "$limit" ] && [ "$(date +%s)" -ge $((came + limit - 5)) ]; then note timeout; else note stopped; fi
  # A signal that comes while a shell is being forked is lost with its traps: the first one may have been.
  [ "$(date +%s)" -gt $((began + 2)) ] || pass_on TERM
  [ "$kind" = slurm ] || [ -z "$child" ] || later "$grace" "kill -KILL -$child"
}
time_left() { # seconds until the limit, as the scheduler has it; nothing if it does not say
  timeout 10 squeue -h -j "$job" -o %L 2> /dev/null | awk -F: '/^[0-9:-]+$/ {
    if (split($1, days, "-") == 2) $1 = days[2]; else days[1] = 0
    for (at = 1; at <= NF; at++) seconds = seconds * 60 + $at
    print days[1] * 86400 + seconds }'
}
ring() { # ring SECONDS: have an ALRM then. If this script is gone by that time, its number may be another's
  later "$1" "[ \"\$(cut -d ' ' -f 22 /proc/$$/stat 2> /dev/null)\" = '$born' ] && kill -ALRM $$"
}
hint() { # USR1 from outside: of the limit, for which there is a clock here; of preemption, if there is a grace; or yours
  if [ "$kind" = slurm ] && [ "$requeues" -gt 0 ]; then
    [ -n "$child" ] && [ -z "$stopped" ] || return
    case $(timeout 10 squeue -h -j "$job" -O PreemptTime:30 2> /dev/null) in
      [0-9]*) note stopped ;;
      *)
        told=$(time_left) # by now it may be another than it was
        [ -n "$told" ] || [ -z "$limit" ] || told=$((due - $(date +%s)))
        if [ "${told:-86400}" -le $((before + 90)) ]; then
          due=$(($(date +%s) + told)) asked=
          [ -n "$limit" ] || before=$told
          no_more
          set_alarm
          return
        fi ;;
    esac
  fi
  pass_on USR1
}
set_alarm() { # for when it is time to save; or a while before, to ask whether the limit still is what it was
  wake=$((due - before - $(date +%s))) ask=
  if [ "$kind" = slurm ] && [ "$wake" -gt 60 ]; then
    ask=yes wake=$((wake - 30))
  elif [ "$kind" = slurm ] && [ "$wake" -gt 14 ] && [ -z "$asked" ]; then
    ask=yes wake=$((wake - 12))
  fi
  [ "$wake" -gt 0 ] || wake=0
  ring "$wake"
}
near_limit() { # your command is told to save, and killed in time for what comes after it
  [ -z "$stopped" ] || return
  timers= # the only one there was has rung
  if [ -n "$ask" ]; then
    asked=yes told=$(time_left)
    [ -z "$told" ] || due=$(($(date +%s) + told))
  fi
  remain=$((due - $(date +%s)))
  if [ "$remain" -gt $((before + 1)) ]; then
    set_alarm
  elif [ "$requeues" -eq 0 ]; then
    stop
  else
    pass_on USR1
    note timeout
    spare=$((before / 3))
    [ "$spare" -lt 10 ] || spare=10
    [ "$remain" -gt $((spare + 1)) ] || remain=$((spare + 1))
    later $((remain - spare)) "kill -KILL -$child"
  fi
}
later() { # later SECONDS COMMAND; all of them end with: no_more
  (trap '' USR1 USR2 HUP; apart sh -c 'sleep "$1"; eval "$2"' yurt-timer "$1" "$2") > /dev/null 2>&1 &
  timers="$timers $!"
}
no_more() { # of those that were started by later
  for each in $timers; do end_apart "$each"; done
  timers=
}
end_apart() { # end_apart PID: of what was started by apart, also if it has not come to be apart yet
  kill -KILL "-$1" 2> /dev/null || kill -KILL "$1" 2> /dev/null
}
beat() { # beat K CHILD JOB BORN: shows every sixth of the lease that this start lives; ends it if fenced off, or it cannot tell
  trap '' USR1 USR2 HUP # a signal to all of the job is none to this
  # JOB, this script, is told why. Nothing here touches a disk, and only builtins are used: the disk may hang at any time.
  give_up="{ read -r line < /proc/$3/stat; } 2> /dev/null && set -- \${line##*) } && [ \"\${20-}\" = '$4' ] && kill -URG $3; kill -KILL -$2"
  watcher= now=a next=b
  watch
  while :; do
    sleep $((lease / 6))
    mv -f "beat.$1.$now" "beat.$1.$next" 2> /dev/null || [ -e "beat.$1.$next" ] || break
    earlier=$watcher
    watch
    kill -KILL "$earlier"
    swap=$now now=$next next=$swap
  done
  eval "$give_up"
}
uptime='{ read -r up _rest < /proc/uptime; } 2> /dev/null && up=${up%.*} || up=0'
watch() { # gives up after half a lease; if all this was stopped for a while, as Slurm does when it suspends, beat comes first
  sh -c 'eval "$1"; from=$up
    sleep "$2"
    eval "$1"
    [ $((up - from)) -le $(($2 + 1)) ] || sleep "$3"
    eval "$4"' yurt-timer "$uptime" $((lease / 2)) $(((lease + 11) / 12)) "$give_up" > /dev/null 2>&1 &
  watcher=$!
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
pieces() { # pieces WORD...: how many of the starts until now ended for such a reason; a start without an end is lost
  found=0 each=1
  while [ "$each" -lt "$k" ]; do
    read -r _status reason _rest << end
$(stands "end.$each" || echo "0 lost")
end
    for word in "$@"; do [ "$reason" != "$word" ] || found=$((found + 1)); done
    each=$((each + 1))
  done
  echo "$found"
}
saved() { # prints "saved" if this start wrote a file that the next one can use
  since=gen.$k
  [ -e "$since" ] || since=$since.d
  [ -z "$(find checkpoints outputs work metrics.jsonl -type f -newer "$since" 2> /dev/null | head -n 1)" ] || echo saved
}
may_fail() { # whether a start may follow one more that was lost, or failed
  allowed=$retries
  [ "$requeues" -eq 0 ] || [ "$allowed" -ge 3 ] || allowed=3 # what breaks node after node is not to go on for ever
  [ "$(pieces lost error)" -lt $((allowed + ${1:-0})) ]
}
goes_on() { # goes_on STATUS CAUSE: why the run is to be started again, in `reason`; or else, in `cause`, why not
  reason= cause=$2
  case $1,$2 in
    0,* | *,cancelled | *,out_of_memory) return 1 ;;
    137,lost) # its disk was silent for too long
      reason=lost cause=node_failed
      may_fail
      return ;;
    85,stopped | 13[78],stopped | 143,stopped) reason=stopped ;;
    85,* | 13[78],timeout | 143,timeout) reason=limit ;;
  esac
  if [ "$requeues" -eq 0 ] || [ -z "$reason" ]; then
    [ -n "$errors" ] && [ -z "$2" ] && [ "$(pieces lost error)" -lt "$retries" ] || return 1
    reason=error
  elif [ "$reason" = limit ]; then
    if [ "$(pieces limit)" -ge "$requeues" ]; then
      cause=requeues
      return 1
    fi
    if [ -z "$(saved)" ] && case $(stands "end.$((k - 1))") in *" limit "*" saved" | '') false ;; *" limit "*) ;; *) false ;; esac; then
      cause=idle
      return 1
    fi
  fi
}
finish() { # finish STATUS CAUSE: how the run ended, for good unless it is to be started again
  trap : TERM INT USR1 USR2 ALRM URG
  now=$(date +%s) said=
  if [ "$2" = stopped ] && [ "$kind" = slurm ] && [ "$requeues" -gt 0 ]; then
    # While a job is preempted its queue has it as running; one that was cancelled there, or requeued, it has not.
    said=$(timeout 20 squeue -h -j "$job" -o '%T %r' 2> /dev/null)
    case $said in *' TimeLimit') set -- "$1" timeout ;; esac # a limit that somebody made shorter
  fi
  if goes_on "$1" "$2"; then
    case $reason,$said in stopped,RUNNING*) reason=preempted ;; esac
    put "end.$k" "$1 $reason $began $now $(saved)" > /dev/null
    [ "$reason" = stopped ] || again
    exit "$1"
  fi
  signal=0 seconds=$((now - began)) first=$began each=1
  [ "$1" -le 128 ] || signal=$(($1 - 128))
  while [ "$each" -lt "$k" ]; do
    read -r _status _reason from to _rest << end
$(stands "end.$each" || echo "0 lost 0 0")
end
    [ "$each" -gt 1 ] || [ "$from" -eq 0 ] || first=$from
    seconds=$((seconds + to - from)) each=$((each + 1))
  done
  put exit.json "{\"code\":$1,\"signal\":$signal,\"cause\":\"$cause\",\"started\":$first,\"ended\":$now,\"seconds\":$seconds,\"node\":\"$(uname -n)\",\"job\":\"$job\",\"restarts\":$((k - 1))}" > /dev/null
  put "end.$k" "$1 done $began $now" > /dev/null
  drop_shares
  exit "$1"
}
again() { # the next start: this job once more, or another one after it; failing that, the next yurt that looks sees to it
  [ "$kind" = slurm ] || with_shares exec sh "${sweep:-$run}/job.sh" "$nonce" $((k + 1)) ${sweep:+"$YURT_TASK_INDEX"}
  for _try in 1 2 3 4 5 6 7 8 9 10 11 12; do
    if is_cancelled; then exit 143; fi
    if [ -z "$follow" ]; then
      said=$(timeout 30 scontrol requeue "$job" 2>&1) && exit 0
      case $said in *isabled* | *nvalid* | *denied* | *ermission*) follow=yes ;; esac
    fi
    if [ -n "$follow" ] && said=$(next_job $((k + 1))); then
      for word in $said; do # a site may say more than the id
        case $word in [0-9]*) echo "${word%%;*}" >> jobs && is_cancelled && scancel "${word%%;*}" ;; esac
      done
      exit 0
    fi
    sleep 5
  done
}
next_job() ( # next_job K: submits a job for start K, with the environment this one was submitted in
  for name in $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p'); do
    [ "$name" = SLURM_CONF ] || unset "$name"
  done
  umask "$mask"
  if [ -n "$sweep" ]; then # an array of one, so that its number can be told from its name
    with_shares submit --dependency="afterany:$job" --job-name="yurt-${sweep##*/}+$YURT_TASK_INDEX" --array=0 \
      --comment="yurt:${sweep##*/}:$1:$YURT_TASK_INDEX:0" job.sh "$nonce" "$1" "$YURT_TASK_INDEX" < /dev/null
  else
    with_shares submit --dependency="afterany:$job" job.sh "$nonce" "$1" < /dev/null
  fi
)

completed() { # completed FOLDER...: whether runs completed, as far as they are still there to be seen
  for each in "$@"; do
    for _try in 1 2 3 4 5 6; do # what was written on another node may take its time to be seen here
      [ -d "$each" ] || continue 2
      case $(cd "$each" && stands exit.json) in '{"code":0,'*) continue 2 ;; ?*) return 1 ;; esac
      sleep 2
    done
    return 1
  done
}

make_task() { # the folder of one task of a sweep, made when it starts; nodes may have processes of the same number
  own=$(uname -n).$$
  [ -e "$run/set" ] && [ -e "$run/params.json" ] && return
  mkdir -p "$run" && cd "$run" || exit 75
  [ ! -e "$sweep/no-links" ] || : > no-links
  read -r at size << end
$(tail -c "+$((YURT_TASK_INDEX * 22 + 1))" "$sweep/offsets" | head -c 21 | sed 's/\(^\| \)0*\([0-9]\)/\1\2/g')
end
  tail -c "+$((at + 1))" "$sweep/sets" | head -c "$size" > "set.$own" && [ "$(wc -c < "set.$own")" -eq "$size" ] || exit 75
  head -n 1 "set.$own" | cut -c 2- > "params.$own" && mv "params.$own" params.json && mv "set.$own" set || exit 75
}
is_cancelled() { # whether you wanted this ended, alone or with the sweep it belongs to
  [ -e cancel ] || { [ -n "$sweep" ] && [ -e "$sweep/cancel" ]; }
}

outside() { # outside NONCE [K]: the gate, then your command, then how it ended. With a K it may be start K only
  mask=$(umask)
  umask 077
  nonce=$1 only=${2-} patience=
  stopped=
  trap 'stopped=early' TERM
  trap '' USR1 USR2
  [ -z "$sweep" ] || make_task
  cd "$run" || exit 75
  [ -z "$sweep" ] || exec >> out.log 2>> err.log
  hide_shares
  job=$$
  [ "$kind" != slurm ] || job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
  born=$(cut -d ' ' -f 22 "/proc/$$/stat" 2> /dev/null)
  read -r boot 2> /dev/null < /proc/sys/kernel/random/boot_id
  came=$(date +%s) began=$came
  due=$((came + ${limit:-0})) asked=

  me=$nonce.$job.$$
  # The gate: of all submissions one wins; it, and those that it or yurt sends after it, make one start after the other.
  owner=$(put winner "$nonce.$job") || exit 75
  [ -z "$only" ] || [ "$owner" = cancelled ] || nonce=${owner%%.*} # whoever sent it for a start that is due
  me=$nonce.$job.${SLURM_RESTART_COUNT:-0}${only:+-$only}.$(uname -n).$$.${born:-0}.${boot:-0}
  [ "${owner%%.*}" = "$nonce" ] || { drop_shares "$share"; exit 0; }
  [ "$owner" = "$nonce.$job" ] || [ -n "$only" ] || exit 0
  k=${only:-1}
  while :; do
    if stands exit.json > /dev/null; then exit 0; fi
    [ "$k" -eq 1 ] || [ "$requeues" -gt 0 ] || [ "$retries" -gt 0 ] || exit 0
    owner=$(put "gen.$k" "$me") || exit 75
    [ "$owner" != "$me" ] || break
    case $owner in "$nonce.$job."*) k=$((k + 1)) ;; *) exit 0 ;; esac # only this job, requeued, comes after itself
  done
  if [ "$k" -gt 1 ] && ! stands "end.$((k - 1))" > /dev/null; then fence $((k - 1)); fi
  if stands exit.json > /dev/null; then exit 0; fi

  child= timers= beats= silent=
  [ "$k" -eq 1 ] || may_fail 1 || finish 1 node_failed
  trap stop TERM
  trap 'pass_on INT; note stopped' INT
  trap hint USR1
  trap 'pass_on USR2' USR2
  trap near_limit ALRM
  trap 'silent=lost' URG # from beat, which ends your command then
  if [ "$requeues" -gt 0 ] || [ "$retries" -gt 0 ]; then
    : > "beat.$k.a"
    if stands "fenced.$k" > /dev/null; then exit 0; fi
  fi
  if [ -n "$stopped" ] || is_cancelled; then # before anything of yours was started
    stopped=
    note stopped
    finish 143 "$stopped"
  fi
  if [ "$k" -eq 1 ] && type in_turn > /dev/null 2>&1 && ! in_turn; then finish 1 after; fi # a run that follows others
  began=$(date +%s)
  [ "$kind" = slurm ] || came=$began
  export YURT_RESTARTS=$((k - 1))
  ([ -z "$stopped" ] || exit 143; umask "$mask" && with_shares apart "$(command -v bash || command -v sh)" "${sweep:-$run}/job.sh" inside "$nonce") < /dev/null &
  child=$!
  [ -z "$stopped" ] || { sleep 1; stop; }
  [ "$kind" = slurm ] || echo "$child $(cut -d ' ' -f 22 "/proc/$child/stat" 2> /dev/null)" > "child.$k"
  [ "$kind" = slurm ] || due=$((came + ${limit:-0}))
  if [ -n "$limit" ] && { [ "$kind" != slurm ] || [ "$requeues" -gt 0 ]; }; then set_alarm; fi
  if [ "$requeues" -gt 0 ] || [ "$retries" -gt 0 ]; then
    (apart sh "${sweep:-$run}/job.sh" beats "$k" "$child" $$ "$born") < /dev/null > /dev/null 2>&1 &
    beats=$!
  fi

  while :; do # a signal ends the waiting, not the command
    wait "$child"
    status=$?
    kill -0 "$child" 2> /dev/null || break
  done
  wait "$child" 2> /dev/null
  once_more=$?
  [ "$once_more" -eq 127 ] || status=$once_more
  if [ "$requeues" -gt 0 ] && [ -n "$stopped" ] && [ "$stopped" != cancelled ]; then # others of it may still be saving
    until=$(($(date +%s) + (before > 30 ? before : 30)))
    while kill -0 "-$child" 2> /dev/null && [ "$(date +%s)" -lt "$until" ]; do sleep 1; done
  fi
  no_more
  # KILL: any other signal is lost if it comes while a shell is being forked, and then this would wait for ever.
  if [ -n "$beats" ]; then end_apart "$beats" && wait "$beats"; fi 2> /dev/null
  pass_on KILL # what your command left behind

  if stands "fenced.$k" > /dev/null; then exit 0; fi
  cause=
  if [ "$status" -ne 0 ]; then
    cause=${stopped:-$silent}
    case $cause,$status in # the signal may have reached your command, and not this script
      ,13[07] | ,143) ! is_cancelled || cause=cancelled ;;
    esac
    ! out_of_memory || cause=out_of_memory
  fi
  finish "$status" "$cause"
}

case ${1-} in
  '') YURT_RESTARTS=0 exec "$(command -v bash || command -v sh)" "${sweep:-$run}/job.sh" inside ;;
  inside) inside "${2-}" ;;
  beats) shift && beat "$@" ;;
  *) outside "$@" ;;
esac
