# The client side of a sync, after side.sh: on this machine (locked=1: yurt holds the lock), or on the hub's login host.
# Its arguments are those of Unison, after the roots. Set before: link profile server_root.
prepare
if [ -n "$locked" ]; then
    note_owner
else
    take_lock
fi
check_root
find_unison
if [ -n "$link" ]; then
    rm -f -- "$UNISON/yurt"/link.*
    printf %s "$link" > "$UNISON/yurt/link.$token"
    chmod 700 "$UNISON/yurt/link.$token"
    set -- -sshcmd "$UNISON/yurt/link.$token" -servercmd yurt-serve "$@"
fi
root=$(cd -- "$root" && pwd -P) # as -prefer and -force name it
start
exec "$found" "$profile" "$root" "$server_root" "$@"
