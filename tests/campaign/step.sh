#!/bin/sh
# Wraps a program of the same name on a login host and counts the steps of the scripts that run there.
# `armed` contains one line "COUNT PROGRAM before|after WHAT AMOUNT": the COUNT-th call of PROGRAM ("any": of any program)
# does WHAT, before or after the program. pause: wait for the file `go`; inner: kill the calling shell; all: kill all
# shells up to sshd; self: kill this step after AMOUNT seconds; short: `head -c` reads only AMOUNT percent of its bytes
# and the rest is lost. Each sbatch appends lines to sbatch.log.
here=/tmp/campaign
name=${0##*/}
real=/usr/bin/$name

shells() { # the shells between this step and sshd
  pid=$PPID
  while [ "$pid" -gt 1 ] && IFS= read -r line < "/proc/$pid/stat"; do
    case $line in *'(sshd'*) return ;; esac
    echo "$pid"
    # shellcheck disable=SC2086 # numbers and a letter
    set -- ${line##*) }
    pid=$2
  done
}
act() {
  # shellcheck disable=SC2046 # the numbers of shells are words
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
    /usr/bin/sleep "$amount"
    kill -9 $! 2> /dev/null
    wait $!
  elif [ "$due" = yes ] && [ "$what" = short ] && [ "$1" = -c ]; then
    "$real" -c $(($2 * ${amount%.*} / 100))
    /usr/bin/cat > /dev/null
  else
    "$real" "$@"
  fi
}

due='' when='' what='' amount=''
if read -r count program when what amount 2> /dev/null < $here/armed; then
  if [ "$program" = any ] || [ "$program" = "$name" ]; then
    echo "$name" >> $here/steps
    if [ "$(/usr/bin/wc -l < $here/steps)" -ge "$count" ]; then
      /usr/bin/mv $here/armed $here/fired 2> /dev/null && due=yes
    fi
  fi
fi
case $due$when,$what in
  yesbefore,pause) act ;;
  yesbefore,inner | yesbefore,all)
    act
    exit 137 ;;
esac
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
exit "$code"
