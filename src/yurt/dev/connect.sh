# Runs the program of ssh's ProxyCommand: says what takes long, hides lines that say nothing to the user, and if the
# program fails, lets yurt say why. Arguments: PIPE WHERE PROGRAM [WORD]...
# The far end prints `yurt: here` on standard error before the ssh server of the dev node speaks.

pipe=$1 where=$2
shift 2

slow() {
  sleep 3 5>&-
  echo "yurt: waiting for $where to respond" >&5
}

# Prints the lines of standard error up to `yurt: end`; 0 if the far end was reached. A shared connection that has no
# free session lets ssh open one of its own; a connection through another one ends after the line with its reason.
show() {
  reached=1
  while IFS= read -r line; do
    case $line in
      'yurt: here'*) reached=0 && kill "$1" ;;
      'yurt: end') return "$reached" ;;
      'mux_client_request_session: '*' refused by peer'* | 'stdio forwarding failed'*) ;;
      'kex_exchange_identification: '* | 'Connection timed out during banner'* | *'UNKNOWN port 65535'*) ;;
      *) printf '%s\n' "$line" >&5 ;;
    esac
  done
}

exec 3<&0 4>&1 5>&2
slow < /dev/null > /dev/null 2>&1 3<&- 4>&- &
slow=$!
mkfifo -m 600 "$pipe" || exit
show "$slow" < "$pipe" > /dev/null 2>&1 3<&- 4>&- &
show=$!
exec 6> "$pipe"
rm -f "$pipe"
"$@" <&3 >&4 2>&6 3<&- 4>&- 5>&- 6>&- &
program=$!
trap 'kill "$program" "$slow" "$show" 2> /dev/null; exit 1' HUP TERM
exec 3<&- 4>&-
wait "$program" 2> /dev/null && code=0 || code=$?
trap - HUP TERM
kill "$slow" 2> /dev/null
echo 'yurt: end' >&6
wait "$show" && reached=1 || reached=0
[ "$code" -ne 0 ] || exit 0
yurt_lost
[ "$reached" -eq 0 ] || exit
