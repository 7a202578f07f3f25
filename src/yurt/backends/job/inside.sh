# The process of your command needs nothing of what follows: a shell does not read it then.
case ${1-} in
  inside) if [ -z "$first_session" ] || [ -z "${YURT_INSTEAD-}" ]; then run_command "${2-}"; fi ;;
esac
