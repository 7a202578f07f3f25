close_gate() { # close_gate RUN-FOLDER: no job passes the gate from now on; sets winner to the one that did, to cancelled, or to ended
  umask 077
  me=cancel.$(uname -n).$$
  winner=
  for _try in 1 2 3; do # a submission may replace a folder that is still empty
    mkdir -p "$1" && cd "$1" || exit 1
    case $1 in */@TASKS@/*)
      [ ! -e ../../@NO_LINKS@ ] || make_files @NO_LINKS@
      if read_written @EXIT@ > /dev/null; then winner=ended && return; fi ;;
    esac
    winner=$(patience=2 write_once @WINNER@ cancelled) && break
  done
  case $1 in */@TASKS@/*) # a task that has just ended has removed its gate
    if read_written @EXIT@ > /dev/null; then rm -rf @WINNER@ @WINNER@.d && winner=ended && return; fi ;;
  esac
  if [ -z "$winner" ]; then
    LC_ALL=C dd if=/dev/zero of="why.$me" bs=4096 count=1 2>&1 | grep -v -e records -e copied >&2 # dd prints the reason
    rm -f "why.$me"
  fi
  [ "$winner" = cancelled ] || make_files @CANCEL@
  rm -f @SECRET@* # no start follows
}
close_sweep() { # close_sweep FOLDER: no task starts from now on; sets winner to cancelled
  umask 077
  mkdir -p "$1" && make_files "$1/@CANCEL@" && winner=cancelled || winner=
  [ -z "$winner" ] || rm -f -- "$1"/@SECRET@* # no start follows
}
close_tasks() { # close_tasks SWEEP-FOLDER: reads tasks from standard input; prints the content of each gate
  while read -r number; do
    close_gate "$1/@TASKS@/$number" < /dev/null
    [ -n "$winner" ] || failed=yes
    printf '%s %s\n' "$number" "$winner"
  done
}
begun_tasks() { # begun_tasks FOLDER: prints the tasks that had passed the gate, separated by commas
  cd "$1/@TASKS@" 2> /dev/null || return
  for each in */@START@1 */@START@1.d */@EXIT@ */@EXIT@.d; do [ ! -e "$each" ] || printf '%s,' "${each%%/*}"; done
}
