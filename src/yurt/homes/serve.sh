# The server side of a sync, on the login host of a place; after side.sh. Its arguments are those of Unison.
prepare
take_lock
check_root
list_waiting
find_unison
start
# Everything before this line is output of dotfiles; what follows is Unison's protocol.
printf '\n%s\n' "$mark"
exec "$found" "$@"
