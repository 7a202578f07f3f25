# After a sync, on one side: prints which backups it made, and with good=1 releases the jobs that waited for it.
# Then removes old backups. Arguments: good, the folder for backups, the time up to which they expire, the token of the
# list of waiting jobs, the folders STAMP-TOKEN of all passes.
UNISON=${UNISON:-$HOME/.unison}
good=$1 until=$3 list=$UNISON/yurt/waiting.$4
backups_enter "$2" || backups=''
shift 4
for each; do
    [ ! -d "$backups/$each" ] || printf 'backup %s\n' "$backups/$each"
    [ "$UNISON/yurt/waiting.${each##*-}" = "$list" ] || rm -f -- "$UNISON/yurt/waiting.${each##*-}"
done
if [ "$good" = 1 ]; then
    home_release "$list"
else
    rm -f -- "$list"
fi
# In the background: a large backup takes long to remove.
if [ -n "$backups" ]; then
    backups_expire "$until" < /dev/null > /dev/null 2>&1 &
fi
