find_job() { # a second start is harmless: the gate stops it
  :
}
launch() { # launch PYTHON WAITER SLOTS CPUS GPUS
  python=$1 waiter=$2
  shift 2
  job=$({ umask "$mask" && "$python" -I -S "$waiter" "$@" "$id" "$nonce" "$start" < /dev/null; } 2>> @ERR_LOG@) || exit 8
  case $start in
    *:*) for group in $start; do echo "$job $group" >> @SENT@ && echo "submitted $job $group"; done ;;
    *) echo "submitted $job" ;;
  esac
}
