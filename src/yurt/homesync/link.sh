#!/bin/sh
# Connects Unison to the other side of a sync. Written by yurt for one sync; Unison calls it instead of ssh.
# Set before: script mark. `reach` runs ssh with this remote command.
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
        [ "$line" != "$mark" ] || exec cat
    done
} 3<&- &
# Unison sees the end of the connection only if nobody else holds its pipes.
exec 3<&- < /dev/null > /dev/null
rm -f -- "$0"
wait
