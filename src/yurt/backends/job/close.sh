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
  remove_secrets
}
remove_secrets() { # of the run in this folder: no start follows
  for each in @SECRET@*; do
    [ ! -e "$each" ] || { rm -f @SECRET@* && break; }
  done
}
close_sweep() { # close_sweep FOLDER: no task starts from now on; sets winner to cancelled
  umask 077
  mkdir -p "$1" && make_files "$1/@CANCEL@" && winner=cancelled || winner=
  [ -z "$winner" ] || rm -f -- "$1"/@SECRET@* # no start follows
}
close_tasks() { # close_tasks SWEEP-FOLDER: reads tasks from standard input; prints the content of each gate
  # Hundreds may be named: all gates are links to one file, made by one process if there is perl, else by one for each.
  umask 077
  numbers=$(cat)
  mkdir -p "$1/@TASKS@" && cd "$1/@TASKS@" || exit 1
  # shellcheck disable=SC2086 # numbers are words
  set -- "$1" $numbers
  [ $# -gt 1 ] || return 0
  printf '%s\n' "$numbers" | xargs mkdir -p --
  closed=$1/@TASKS@/$2/@WINNER@.cancel.$(uname -n).$$
  [ -e ../@NO_LINKS@ ] || { printf 'cancelled\n' | dd of="$closed" conv=fsync; } 2> /dev/null
  # shellcheck disable=SC2016,SC2086 # perl's variables; numbers are words
  perl -e '$from = shift; -e "$_/@EXIT@" || -e "$_/@EXIT@.d" || -e "$_/@NO_LINKS@" || -e "$_/@WINNER@" || link $from, "$_/@WINNER@" for @ARGV' \
    "$closed" $numbers 2> /dev/null
  for number in $numbers; do
    link_gate "$1/@TASKS@/$number" || close_gate "$1/@TASKS@/$number" < /dev/null
    [ -n "$winner" ] || failed=yes
    printf '%s %s\n' "$number" "$winner"
  done
  rm -f "$closed"
}
link_gate() { # link_gate TASK-FOLDER: does the same as close_gate with a link to `closed`; fails if that is not possible
  [ -s "$closed" ] && cd "$1" 2> /dev/null && [ ! -e @NO_LINKS@ ] || return
  if read_written @EXIT@ > /dev/null; then winner=ended && return; fi
  read_written @WINNER@ > /dev/null || ln "$closed" @WINNER@ 2> /dev/null
  read_written @WINNER@ > /dev/null || return
  winner=$text
  # A task that has just ended has removed its gate.
  if read_written @EXIT@ > /dev/null; then rm -rf @WINNER@ @WINNER@.d && winner=ended && return; fi
  [ "$winner" = cancelled ] || make_files @CANCEL@
  remove_secrets
}
begun_tasks() { # begun_tasks FOLDER: prints the tasks that had passed the gate, separated by commas
  cd "$1/@TASKS@" 2> /dev/null || return
  for each in */@START@1 */@START@1.d */@EXIT@ */@EXIT@.d; do [ ! -e "$each" ] || printf '%s,' "${each%%/*}"; done
}
