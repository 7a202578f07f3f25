find_job() { # a second start is harmless: the gate stops it; exits if the process that passed it still waits to start
  if [ "$start" = 1 ] && kill -0 "${winner#*.}" 2> /dev/null; then echo "started $winner" && exit 0; fi
}
launch() { # launch PYTHON PROGRAM ARGUMENT...: starts the process of the run, which waits for a slot
  python=$1 program=$2
  shift 2
  job=$({ umask "$mask" && "$python" -I -S -c "$program" "$@" "$id" "$nonce" "$start" < /dev/null; } 2>> @ERR_LOG@) || exit 8
  case $start in
    *:*) for group in $start; do echo "$job $group" >> @SENT@ && echo "submitted $job $group"; done ;;
    *) echo "submitted $job" ;;
  esac
}
