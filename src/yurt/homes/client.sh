# The client side of a sync, after side.sh: on this machine (locked=1: yurt holds the lock), or on the hub's login host.
# Its arguments are those of Unison, after the roots. Set before: link profile server_root, keep=1 to copy no deletions,
# and refilling=1 if one of the sides has lost everything and is filled again.
prepare
if [ -n "$locked" ]; then
    note_owner
else
    take_lock
fi
# Before the empty root is accepted: until such a sync has reached its end, what is missing must not count as deleted.
# finish.sh removes the mark.
[ -z "$refilling" ] || true > "$UNISON/yurt/refill.$record" || refuse folder "$UNISON/yurt"
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
[ ! -e "$UNISON/yurt/refill.$record" ] || set -- -ignorearchives "$@"
[ -z "$keep" ] || set -- -nodeletion "$root" -nodeletion "$server_root" "$@"
exec "$found" "$profile" "$root" "$server_root" "$@"
