# Staged files: inputs on the disk of each node before your command starts, and outputs that are copied back after it. On
# each node, a program of yurt keeps them (yurt/node/stage) and reports to the file stage.NODE.
stage_nodes=${SLURM_JOB_NUM_NODES:-1}
stage_begin() { # starts that program on each node; your command waits for its inputs in use_stage
  rm -f @STAGE@*
  stage_python=
  for each in python3 /usr/bin/python3 /usr/libexec/platform-python python; do
    if "$each" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2> /dev/null; then stage_python=$each && break; fi
  done
  [ -n "$stage_python" ] || { echo "no $(uname -n) has no Python 3.6 or newer, which staging needs" > "@STAGE@none" && return; }
  set -- "$stage_python" -I -S -B -c 'import sys; sys.path.insert(0, sys.argv.pop(1)); from yurt.node.stage.__main__ import main; sys.exit(main())' \
    "$imports" "${sweep:-$run}/@RUN@" "$run" "$stage_id${sweep:+.$YURT_TASK_INDEX}" "$k" "$stage_nodes" "$stage_window" "$sweep"
  if [ "$stage_nodes" -gt 1 ]; then
    echo 'wait ' > @STAGE_END@
    set -- srun --quiet --mpi=none --overlap --nodes="$stage_nodes" --ntasks="$stage_nodes" --ntasks-per-node=1 --cpus-per-task=1 --mem=0 "$@"
  fi
  (trap '' TERM INT HUP USR1 USR2 ALRM URG; in_own_session "$@") < /dev/null > /dev/null &
  keeper=$!
  keeper_born=$(born "$keeper")
}
use_stage() { # use_stage [NONCE]: waits until the inputs are on all nodes, and sets YURT_STAGE
  yurt_keeper=${YURT_KEEPER-}
  unset YURT_KEEPER
  while :; do
    yurt_count=0 yurt_path=
    for yurt_each in "$run/@STAGE@"*; do
      { [ "${yurt_each%.aside}" = "$yurt_each" ] && IFS= read -r yurt_line < "$yurt_each"; } 2> /dev/null || continue
      yurt_line=$(printf %s "$yurt_line" | sed 's/ *$//')
      case $yurt_line in
        'no '*) fail "${yurt_line#no }" ;;
        'in '*)
          [ -z "$yurt_path" ] || [ "$yurt_path" = "${yurt_line#in }" ] || fail "its nodes have different disks: $yurt_path and ${yurt_line#in }"
          yurt_path=${yurt_line#in } yurt_count=$((yurt_count + 1)) ;;
      esac
    done
    [ "$yurt_count" -lt "$stage_nodes" ] || break
    if [ -z "${1-}" ]; then
      echo "yurt: the inputs of this run are not on the disk of this node; YURT_STAGE is not set" >&2
      return
    fi
    # shellcheck disable=SC2086 # a process id and a time
    is_process $yurt_keeper || [ -e "$run/@STAGE@$(uname -n | sed 's/[.].*//')" ] || fail "the program that copies its inputs to the disk of $(uname -n) was killed"
    sleep 0.2 2> /dev/null || sleep 1
  done
  export YURT_STAGE="$yurt_path"
  unset yurt_keeper yurt_count yurt_path yurt_line yurt_each
}
stage_hurry() { # after TERM, the job is killed soon: ends your command early enough to copy its outputs
  [ "$kind" = slurm ] && [ -z "$stage_until" ] && [ "$stage_time" -gt 0 ] || return 0
  stage_until=$(($(date +%s) + stage_window + 1))
  [ "$stage_nodes" -gt 1 ] || [ -z "$keeper" ] || kill -TERM "$keeper" 2> /dev/null
  [ -z "$child" ] || run_later "$stage_kill" "kill -KILL -$child"
}
stage_ask() { # says that your command has ended; again, because a program that is just starting ignores the signal
  if [ "$stage_nodes" -gt 1 ]; then
    printf 'end. ' | dd of=@STAGE_END@ conv=notrunc
  else
    kill -USR2 "$keeper"
  fi 2> /dev/null
}
stage_count() { # sets stage_over to how many nodes have copied their outputs, `unstaged` and stage_saved to what they say
  stage_over=0 unstaged='' stage_saved=''
  for each in @STAGE@*; do
    { [ "${each%.aside}" = "$each" ] && IFS= read -r line < "$each"; } 2> /dev/null || continue
    case $line in
      'no '*) stage_over=$stage_nodes ;;
      'out '*)
        stage_over=$((stage_over + 1)) line=${line#out }
        [ "${line%% *}" = 0 ] || stage_saved=yes
        line=$(printf %s "${line#* }" | sed 's/ *$//')
        [ -z "$line" ] || unstaged=${unstaged:+$unstaged; }$line ;;
    esac
  done
  [ "$stage_over" -ge "$stage_nodes" ]
}
stage_end() { # copies the outputs back, as long as there is time; sets `unstaged` to what is left
  [ -n "$keeper" ] || return 0
  until stage_count; do
    if [ -n "$silent" ]; then kill_session "$keeper" && break; fi
    if [ "$stage_nodes" -le 1 ] && ! is_process "$keeper" "$keeper_born"; then stage_count && break; break; fi
    [ -z "$stage_until" ] || [ "$(date +%s)" -lt "$stage_until" ] || break
    stage_ask
    sleep 0.2 2> /dev/null || sleep 1
  done
  if [ "$stage_over" -lt "$stage_nodes" ] && [ "$stage_time" -gt 0 ]; then
    unstaged=${unstaged:+$unstaged; }"outputs were not copied back from the disk of $(uname -n): the job was killed before it was complete"
  fi
  for _try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do # it removes its files
    if [ "$stage_nodes" -gt 1 ] || [ -n "$stage_until" ] || ! is_process "$keeper" "$keeper_born"; then break; fi
    sleep 0.5 2> /dev/null || sleep 1
  done
  rm -f @STAGE@* @STAGE_END@
  [ -z "$unstaged" ] || echo "yurt: $unstaged" >&2
}
