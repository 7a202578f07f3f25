# Runs each session of the ssh server of a dev node: sets the environment of its job, then starts the shell or command.
here=${0%/*}
folder=${here%/*}
. "$folder/environment"
export SHLVL=1 # bash reads ~/.bashrc for sshd at the first level only; it has done so

time_left() { # prints how long the job may still run; nothing if that is unknown
  { read -r end < "$folder/end"; } 2> /dev/null || [ -n "${end-}" ] || return 0
  end=${end%%.*}
  case $end in '' | *[!0-9]*) return 0 ;; esac
  minutes=$(((end - $(date +%s)) / 60))
  [ "$minutes" -gt 0 ] || minutes=0
  if [ "$minutes" -lt 60 ]; then echo "$minutes min left"; else echo "$((minutes / 60)) h $((minutes % 60)) min left"; fi
}
last_backup() { # prints the age of the last backup; nothing if there is none
  saved=$(sed -n 's/.*"backup": *{[^}]*"time": *\([0-9]*\).*/\1/p' "$YURT_RUN_DIR/dev.json" 2> /dev/null)
  case $saved in '' | *[!0-9]*) return 0 ;; esac
  echo "last backup $((($(date +%s) - saved) / 60)) min ago"
}
greet() {
  line="yurt: $(uname -n)${YURT_CONTEXT:+ of $YURT_CONTEXT}"
  for part in "$(time_left)" "$(last_backup)"; do line=$line${part:+, $part}; done
  printf '%s\n' "$line"
}

shell=${SHELL:-/bin/sh}
if [ -n "${SSH_ORIGINAL_COMMAND+set}" ]; then
  exec "$shell" -c "$SSH_ORIGINAL_COMMAND"
elif ! [ -t 0 ]; then
  exec "$shell"
fi
greet
cd "$YURT_WORKSPACE" || cd || :
unset here folder end minutes saved line part
case $shell in
  */bash) exec "$shell" --rcfile "${0%/*}/bashrc.sh" -i ;;
  */zsh)
    export YURT_ZDOTDIR="${ZDOTDIR-}"
    export ZDOTDIR="${0%/*}"
    exec "$shell" -l ;;
  */fish) exec "$shell" -l -C "source '${0%/*}/prompt.fish'" ;;
  *) exec "$shell" -l ;;
esac
