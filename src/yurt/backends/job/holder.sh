# A job that runs no command, but keeps its resources for sessions: terminals and commands that `yurt shell` starts in it.
hold_resources() { # waits for sessions; ends after the last one, or if none begins in time
  umask 077
  cd "$run" || exit 75
  yurt_recorded=$run/@WHY@
  trap 'end_sessions; exit 143' TERM
  save_environment
  half_seconds=0 patience=$first_session
  while :; do
    see_sessions
    [ ! -e @ATTACHED@ ] || patience=$next_session
    if [ -n "$live" ]; then
      half_seconds=0
    elif [ -n "$ended" ]; then
      rm -f @SESSION@*
      exit "$ended"
    elif [ "$half_seconds" -ge $((patience * 2)) ]; then
      [ -e @ATTACHED@ ] || fail "no terminal was opened within $patience s of its start"
      fail "the connection of its terminal was lost, and it was not opened again within $patience s"
    fi
    sleep 0.5 2> /dev/null || { sleep 1 && half_seconds=$((half_seconds + 1)); }
    half_seconds=$((half_seconds + 1))
  done
}
see_sessions() { # sets `live` to the processes of sessions, and `ended` to the exit code of one that ended by itself
  live='' ended=''
  for each in @SESSION@*; do
    { read -r state value birth < "$each"; } 2> /dev/null || continue
    case $state in
      live) ! is_process "$value" "$birth" || live="$live $value" ;;
      ended) ended=$value ;;
    esac
  done
  [ -z "$live" ] || [ -z "$ended" ] || for each in @SESSION@*; do # it does not count when the others are lost later
    case $(cat "$each") in ended*) rm -f "$each" ;; esac
  done
}
end_sessions() { # without a scheduler, nobody else ends them
  see_sessions
  for each in $live; do kill -HUP "$each" && kill -CONT "$each"; done 2> /dev/null
  for _try in 1 2 3 4 5 6 7 8 9 10; do
    see_sessions
    [ -n "$live" ] || return 0
    sleep 0.3 2> /dev/null || sleep 1
  done
  for each in $live; do kill -KILL "$each"; done 2> /dev/null
}
save_environment() { # the variables of the job that a session, which does not descend from it, lacks
  for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case $name in SLURM* | TMPDIR | YURT_RESTARTS | *_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ZE_AFFINITY_MASK) ;; *) continue ;; esac
    eval "printf '%s\n' \"\$$name\"" | sed "s/'/'\\\\''/g; 1s/^/export $name='/; \$s/\$/'/"
  done > "@ENVIRONMENT@.$$"
  mv "@ENVIRONMENT@.$$" @ENVIRONMENT@ || fail "cannot write to $run"
}
run_session() { # runs $YURT_INSTEAD for `yurt shell`, and records its end for the holder
  cd "$run" || exit 75
  until [ -e @ENVIRONMENT@ ]; do # the job is still setting up its environment
    if read_written @EXIT@ > /dev/null; then exit 143; fi
    sleep 0.2 2> /dev/null || sleep 1
  done
  mask=$(umask) lost=
  umask 077
  trap : INT QUIT # they are for the command
  trap 'lost=yes' HUP TERM
  make_files @ATTACHED@
  for name in $(env | sed -n 's/^\(SLURM[A-Za-z0-9_]*\)=.*/\1/p'); do # those of a step: `srun` would use a part of the job
    [ "$name" = SLURM_CONF ] || unset "$name"
  done
  . ./@ENVIRONMENT@
  (umask "$mask" && YURT_SESSION=$run/@SESSION@$$ exec "$(command -v bash || command -v sh)" "$run/@JOB@" session)
  code=$?
  case $code,$YURT_INSTEAD in
    129,*) lost=yes ;;
    *,*'"${SHELL:-/bin/sh}"') set -- 0 ;; # the exit code of a terminal is that of its last command
    *) set -- "$code" ;;
  esac
  if [ -n "$lost" ]; then echo lost; else echo "ended $1"; fi > "@SESSION@$$"
  exit "$code"
}
begin_session() { # the process that becomes the terminal or the command
  (umask 077 && echo "live $$ $(born $$)" > "$YURT_SESSION")
  unset YURT_SESSION
  run_command
}
