# The client side of a sync, after side.sh: on this machine (locked=1: yurt holds the lock), or on the hub's login host.
# Its arguments are those of Unison, after the roots. Set before: link profile server_root.
prepare
if [ -n "$locked" ]; then
    note_owner
else
    take_lock
fi
check_root
list_waiting
find_unison
if [ -n "$link" ]; then
    for each in "$UNISON/yurt"/link.*; do # left by a sync that was killed
        [ ! -e "$each" ] || rm -f -- "$each"
    done
    printf %s "$link" > "$UNISON/yurt/link.$token"
    chmod 700 "$UNISON/yurt/link.$token"
    set -- -sshcmd "$UNISON/yurt/link.$token" -servercmd yurt-serve "$@"
fi
start
root=$(cd -- "$root" && pwd -P) # as -prefer and -force name it
exec "$found" "$profile" "$root" "$server_root" "$@"
