#!/bin/sh
# Stands on a login host before the program of the same name, and counts the steps of the scripts that run there.
# `armed` holds one line "COUNT PROGRAM before|after WHAT [SECONDS]": the COUNT-th call of PROGRAM (any: of each) does WHAT:
# pause: waits for `go`; inner: the shell that called it is killed; all: every shell up to sshd is; self: this step is
# killed after some SECONDS. Each sbatch leaves lines in sbatch.log.
here=/tmp/campaign
name=${0##*/}
real=/usr/bin/$name

shells() { # the shells between this step and sshd
  pid=$PPID
  while [ "$pid" -gt 1 ] && IFS= read -r line < "/proc/$pid/stat"; do
    case $line in *'(sshd'*) return ;; esac
    echo "$pid"
    set -- ${line##*) }
    pid=$2
  done
}
act() {
  case $what in
    pause)
      : > $here/paused
      tries=0
      until [ -e $here/go ] || [ $tries -gt 1500 ]; do
        tries=$((tries + 1))
        /usr/bin/sleep 0.02
      done ;;
    inner) kill -9 $PPID ;;
    all) kill -9 $(shells) ;;
  esac
}
perform() { # the program itself
  if [ "$due" = yes ] && [ "$what" = self ]; then
    exec 3<&0
    "$real" "$@" <&3 3<&- &
    /usr/bin/sleep "$seconds"
    kill -9 $! 2> /dev/null
    wait $!
  else
    "$real" "$@"
  fi
}

due= when= what= seconds=
if read -r count program when what seconds 2> /dev/null < $here/armed; then
  if [ "$program" = any ] || [ "$program" = "$name" ]; then
    echo "$name" >> $here/steps
    if [ "$(/usr/bin/wc -l < $here/steps)" -eq "$count" ]; then
      /usr/bin/mv $here/armed $here/fired 2> /dev/null && due=yes
    fi
  fi
fi
if [ "$due$when" = yesbefore ] && [ "$what" != self ]; then
  act
  [ "$what" = pause ] || exit 137
fi
run=
[ "$name" != sbatch ] || for word; do
  case $word in --job-name=yurt-*) run=${word#--job-name=yurt-} ;; esac
done
if [ -n "$run" ]; then
  echo "called $run" >> $here/sbatch.log
  job=$(perform "$@")
  code=$?
  echo "answered $run $code $job" >> $here/sbatch.log
  [ -z "$job" ] || printf '%s\n' "$job"
elif [ -z "$due" ]; then
  exec "$real" "$@"
else
  perform "$@"
  code=$?
fi
[ "$due$when" != yesafter ] || act
exit $code
