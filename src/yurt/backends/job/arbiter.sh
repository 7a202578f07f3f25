# What the key of a race may do on the login host of its arbiter, and nothing else; sshd starts it, whatever was typed.
# Needs gate.sh and claim.sh before it. The command that was typed: claim ITEM CANDIDATE, or check.
serve() {
  trap '' HUP PIPE
  umask 077
  cd "$1" || exit 1
  set -f
  # shellcheck disable=SC2086 # only to split it into words: none of them is expanded
  set -- ${SSH_ORIGINAL_COMMAND-}
  case "$#${1-}" in
    1check) echo "yurt-race check" ;;
    3claim)
      case $2 in '' | *[!0-9]*) exit 2 ;; esac
      case $3 in '' | *[!a-z0-9-]*) exit 2 ;; esac
      me=$3.$(uname -n).$$.$(date +%s) patience=10
      holder=$(claim "$2" "$3") && echo "yurt-race $holder" ;;
    *) exit 2 ;;
  esac
}
