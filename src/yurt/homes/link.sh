#!/bin/sh
# Connects Unison to the other side of a sync. Written by yurt for one sync; Unison calls it instead of ssh.
# Set before: script mark token place direct. `reach` runs ssh with this remote command.
exec 9>&-
while [ $# -gt 0 ] && [ "$1" != yurt-serve ]; do
    shift
done
shift
exec 3<&0
# The other side reads its script by its length; the rest of the input is Unison's.
{
    printf %s "$script"
    exec cat <&3
} | reach "$@" 3<&- | {
    # `read` takes single bytes from a pipe, so it leaves everything after the line to cat.
    while IFS= read -r line; do
        [ "$line" = "$mark" ] || continue
        # Unison also accepts the protocol before 2.52, whose values it loads without checking them.
        IFS= read -r line || exit
        [ "$line" != 'Unison RPC' ] || { printf '%s\n' "$line" && exec cat; }
        if [ -n "$direct" ]; then
            printf '%s has no Unison 2.52 or newer: its protocol is too old\n' "$place" >&2
        else
            printf '\nyurt-side %s %s old-protocol \n' "$token" "$place" >&2
        fi
        break
    done
} 3<&- &
# Unison sees the end of the connection only if nobody else holds its pipes.
exec 3<&- < /dev/null > /dev/null
rm -f -- "$0"
wait
