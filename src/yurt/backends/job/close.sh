close_gate() { # close_gate RUN-FOLDER: nobody passes the gate any more; sets winner to the one who had, or to cancelled
  umask 077
  me=cancel.$(uname -n).$$
  winner=
  for _try in 1 2 3; do # a submission may put its folder in the place of one that is still empty
    mkdir -p "$1" && cd "$1" || exit 1
    case $1 in */tasks/*) [ ! -e ../../no-links ] || : > no-links ;; esac
    winner=$(patience=2 put winner cancelled) && break
  done
  if [ -z "$winner" ]; then
    LC_ALL=C dd if=/dev/zero of="why.$me" bs=4096 count=1 2>&1 | grep -v -e records -e copied >&2 # the reason, in dd's words
    rm -f "why.$me"
  fi
  [ "$winner" = cancelled ] || : > cancel
  rm -f secret.* # no start follows
}
close_sweep() { # close_sweep FOLDER: none of its tasks starts any more; sets winner to cancelled
  umask 077
  mkdir -p "$1" && : > "$1/cancel" && winner=cancelled || winner=
  [ -z "$winner" ] || rm -f -- "$1"/secret.* # no start follows
}
close_tasks() { # close_tasks SWEEP-FOLDER: of the tasks on standard input; says of each what stands in its gate
  while read -r number; do
    close_gate "$1/tasks/$number" < /dev/null
    [ -n "$winner" ] || failed=yes
    printf '%s %s\n' "$number" "$winner"
  done
}
begun_tasks() { # begun_tasks FOLDER: the numbers of tasks that had passed the gate, with commas between
  cd "$1/tasks" 2> /dev/null || return
  for each in */gen.1 */gen.1.d; do [ ! -e "$each" ] || printf '%s,' "${each%%/*}"; done
}
