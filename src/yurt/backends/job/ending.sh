# Records how a start finished, for yurt and for the next start.
out_of_memory() { # whether the kernel's OOM killer, or Slurm without control groups, killed a process of this job
  [ "$kind" = slurm ] || return 1
  tail -q -c 2000 @ERR_LOG@ ${sweep:+"$sweep/@SLURM_ERRORS@$job"} 2> /dev/null | grep -q -i -E '^(slurmstepd[^ ]*:|\[[^]]*\]) error:.* exceeded .*memory limit' && return
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
explain_denied() { # if your command could not write to a file of the code, says how it can
  [ -n "$code" ] && [ -z "$copy" ] || return 0
  for log in @ERR_LOG@ @OUT_LOG@; do # both streams may go to one file
    tail -c 4000 "$log" 2> /dev/null | grep 'Permission denied' | tail -n 3 | tr ": '\"\`,()" '\n' | (
      while IFS= read -r word; do
        case $word in /*) ;; ?*) word=$run/@WORK@/${subfolder:+$subfolder/}$word ;; *) continue ;; esac
        case $(readlink -f "$word" 2> /dev/null) in "$code"/*) ;; *) continue ;; esac
        echo "yurt: files of the code are read-only in a run; use \`--copy\`, or list the folder under \`writable:\` in yurt.yaml" >> "$log"
        exit 0
      done
      exit 1
    ) && return
  done
}
container_failed() { # says why Apptainer or Singularity could not start your command, if so; both exit with 255 then
  fatal=$(for each in @OUT_LOG@ @ERR_LOG@; do tail -n 20 "$each"; done 2> /dev/null | sed -n 's/^FATAL:  *//p' | tail -n 1)
  case $fatal in
    '') return ;;
    '"'*'": executable file not found'*) fatal=${fatal#?} && echo "command '${fatal%%'"'*}' not found in container image $container" ;;
    'stat '*': no such file or directory') fatal=${fatal#stat } && echo "command '${fatal%%: no such*}' not found in container image $container" ;;
    *'could not open image'*'no such file or directory') echo "container image $container not found" ;;
    *'could not open image'*'not recognized') echo "$container is not a container image" ;;
    *' uri: '*'dial tcp'* | *' uri: '*'timeout'* | *' uri: '*'no such host'*) echo "the registry of container image $container is unreachable from this node" ;;
    *) echo "the container did not start: $fatal" ;;
  esac
}
pyxis_failed() { # says why Pyxis could not start the container, or your command in it, if so
  said=$(for each in @OUT_LOG@ @ERR_LOG@; do tail -n 60 "$each"; done 2> /dev/null |
    sed -n -E -e 's/^[^:]*: (error: )?(pyxis|spank|execve\(\)|unrecognized option)/\2/p' -e '/^pyxis: /p')
  case $said in
    *"couldn't start container"* | *spank_pyxis.so* | *'execve(): '* | *"unrecognized option '--container-image"*) ;;
    *) return ;;
  esac
  case $said in
    *"unrecognized option '--container-image"*) echo "srun on this node has no Pyxis, which starts container image $container" ;;
    *'returned error code: 40'[134]*) echo "the registry has no container image $container, or does not allow you to use it" ;;
    *'Could not resolve host'* | *'curl: ('[67]')'* | *'curl: (28)'* | *'Failed to connect'* | *'timed out'*) echo "the registry of container image $container is unreachable from this node" ;;
    *'[ERROR] No such file or directory: /'*) echo "container image $container not found" ;;
    *'[ERROR] Invalid image format'*) echo "$container is not a container image" ;;
    *'execve(): '*': No such file or directory'*) said=${said#*'execve(): '} && echo "command '${said%%: No such*}' not found in container image $container" ;;
    *) printf 'the container did not start: %s\n' "$(printf '%s\n' "$said" | sed -n -E 's/^pyxis: +(\[ERROR\] )?//p' | grep -v -E "^(couldn't start|printing|if the image|import|child |\[INFO\])" | tail -n 1)" ;;
  esac
}
newline='
'
tidy() { # removes what nobody needs after the end: links to the code, unchanged copies of it, and empty folders
  [ -z "$code" ] || find @WORK@ -type l -lname '*/projects/*/snapshots/*' -delete
  if [ -e @COPIED@ ] && { [ -z "$copy" ] || [ -n "$first_session" ]; } && [ -d "$code" ] && command -v cmp > /dev/null; then
    # By their content: the clocks of several nodes may differ. First most files, in few processes; then each that is
    # left: links, and names that sha256sum would escape. Results are not read: they may have terabytes.
    work=$PWD/@WORK@
    (cd "$code" && find . -type f ! -path '*\\*' ! -path "*$newline*" -exec sh -c 'for each; do
      if [ -f "$0/$each" ] && [ ! -h "$0/$each" ]; then printf "%s\0" "$each"; fi
    done' "$work" {} + | xargs -0 -r sha256sum) |
      (cd @WORK@ && LC_ALL=C sha256sum -c) | sed -n 's/: OK$//p' | tr '\n' '\000' | (cd @WORK@ && xargs -0 rm -f)
    find @WORK@ \( -type f -o -type l \) -exec sh -c 'for each; do
      same=$0/${each#*/}
      if [ -h "$each" ] || [ -h "$same" ]; then
        [ "$(readlink "$each")" = "$(readlink "$same")" ] || continue
      else
        [ -e "$same" ] && cmp -s "$each" "$same" || continue
      fi
      rm -f "$each"
    done' "$code" {} + && rm -f @COPIED@
  fi
  find @WORK@ -depth -type d -empty -delete
  rmdir @OUTPUTS@ @CHECKPOINTS@
} 2> /dev/null
record_use() { # adds the last sample of this start to the file; sets `usage` to a field for exit.json
  usage=$(used)
  case $usage in *"$newline"*) ;; *) usage='' && return ;; esac
  [ -n "$sweep" ] && [ -z "$reason" ] || [ -z "${usage%%"$newline"*}" ] || echo "${usage%%"$newline"*}" >> @USAGE@
  usage=${usage#*"$newline"}
} 2> /dev/null
fold() { # after the end of a task, only exit.json, logs and results stay: a sweep may have thousands of tasks
  [ -n "$sweep" ] || return 0
  rm -f "$sweep/@SLURM_ERRORS@$job"
  rm -rf @WINNER@ @WINNER@.d @START@* @END@* @STOPPED@* @BEAT@* @CHILD@* @SET@ @PARAMS@ @USAGE@ @USAGE@.new
  for each in @OUT_LOG@ @ERR_LOG@; do [ -s "$each" ] || rm -f "$each"; done
}
plain_text() { # plain_text TEXT LENGTH: prints a text without what JSON would escape
  printf %s "$1" | LC_ALL=C tr '\042\134' '\047/' | LC_ALL=C tr -c ' -~' ' ' | cut -c "1-$2"
}
is_empty() { # is_empty FOLDER: whether it contains nothing, or does not exist
  for name in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    if [ -e "$name" ] || [ -h "$name" ]; then return 1; fi
  done
}
measured() { # prints fields for exit.json: what the results take; nothing if that takes too long, or time is short
  [ -z "$cause" ] && command -v timeout > /dev/null 2>&1 || return 0
  set --
  for each in @OUTPUTS@ @CHECKPOINTS@ @WORK@; do is_empty "$each" || set -- "$@" "$each"; done
  [ $# -gt 0 ] || { echo ',"kb":0,"files":0' && return; }
  kb=0 all=$#
  while read -r size _folder; do
    kb=$((kb + ${size:-0})) all=$((all - 1))
  done << end
$(timeout -k 2 20 du -sk "$@" 2> /dev/null)
end
  [ "$all" -eq 0 ] || return 0
  newer=
  [ ! -e @COPIED@ ] || newer=@COPIED@ # copies of the code are no results
  count=$({
    for each; do
      if [ "$each" = @WORK@ ]; then
        timeout -k 2 20 find @WORK@ -type d -name __pycache__ -prune -o -type f ${newer:+-cnewer "$newer"} -print
      else
        timeout -k 2 20 find "$each" -type f
      fi 2> /dev/null || exit
    done
    echo .
  } | awk '{ last = $0 } END { if (last == ".") print NR - 1 }')
  [ -z "$count" ] || printf ',"kb":%s,"files":%s' "$kb" "$count"
}
preempted() { # whether Slurm ends this job for another one
  [ "$kind" = slurm ] || return 1
  case $(plainly timeout 5 squeue -h -t all -j "$job" -O 'PreemptTime:.30' 2> /dev/null) in *[0-9]T[0-9]*) ;; *) return 1 ;; esac
}
finish() { # finish STATUS CAUSE: finishes this start; and the run, unless it is restarted
  trap : TERM INT USR1 USR2 ALRM URG
  now=$(date +%s) reply=''
  patient=20
  [ -z "$stage_until" ] || patient=3 # there is little time left
  if [ "$2" = stopped ] && [ "$kind" = slurm ] && [ $((requeues + retries)) -gt 0 ]; then
    reply=$(plainly timeout "$patient" squeue -h -t all -j "$job" -o '%T %r' 2> /dev/null) # a job that is being preempted is RUNNING
    case $reply in
      *' TimeLimit') set -- "$1" timeout ;; # the limit was lowered
      NODE_FAIL*) [ "$1" -eq 0 ] || set -- 137 lost ;; # an administrator took the node down
    esac
  fi
  if decide_restart "$1" "$2"; then
    case $reason,$reply in stopped,RUNNING*) reason=preempted ;; esac
    record_use
    write_once "@END@$k" "$1 $reason $began $now $(saved)" > /dev/null
    drop_copy "$local_env"
    [ "$reason" = stopped ] || restart
    exit "$1"
  fi
  if [ "$cause" = stopped ] && preempted; then cause=preempted; fi
  signal=0 seconds=$((now - began)) first=$began each=1
  [ "$1" -le 128 ] || [ "$1" -gt 192 ] || signal=$(($1 - 128)) # no signal is above 64
  while [ "$each" -lt "$k" ]; do # a start that left no record was killed: it counts until its last heartbeat
    read -r _status _reason from to _rest << end
$(read_written "@END@$each" || { read_written "@FENCED@$each" || echo none; } | sed 's/[^ ]*/137 lost/') 0 0
end
    [ "$each" -gt 1 ] || [ "$from" -eq 0 ] || first=$from
    seconds=$((seconds + to - from)) each=$((each + 1))
  done
  [ "$1" -eq 0 ] || explain_denied
  record_use
  why=
  case $1,$cause in
    78,*) why=$(cat @WHY@ 2> /dev/null) ;;
    0,* | *,?*) ;;
    *) if [ -n "$pyxis" ]; then why=$(pyxis_failed); elif [ "$1" -eq 255 ] && [ -n "$container" ]; then why=$(container_failed); fi ;;
  esac
  [ -z "$why" ] || why=$(plain_text "$why" 300)
  said=
  [ ! -e @SAID@ ] || said=$(plain_text "$(cat @SAID@)" 300)
  [ -z "$unstaged" ] || unstaged=$(plain_text "$unstaged" 700)
  patience=600 # without it, the end is not known; a full disk may have room soon
  write_once @EXIT@ "{\"code\":$1,\"signal\":$signal,\"cause\":\"$cause\",\"started\":$first,\"ended\":$now,\"seconds\":$seconds,\"node\":\"$node\",\"job\":\"$job\",\"restarts\":$((k - 1))${why:+,\"why\":\"$why\"}${said:+,\"said\":\"$said\"}${unstaged:+,\"unstaged\":\"$unstaged\"}$usage$(measured)}" > /dev/null
  patience=
  [ -n "$sweep" ] || write_once "@END@$k" "$1 done $began $now" > /dev/null
  drop_shares
  for each in @WHY@ @SAID@; do [ ! -e "$each" ] || rm -f "$each"; done
  drop_copy "$local_env"
  tidy
  if read_written @EXIT@ > /dev/null; then fold; fi
  exit "$1"
}
