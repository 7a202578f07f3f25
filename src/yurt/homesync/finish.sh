# After a sync, on one side: prints which backups it made, and with good=1 releases the jobs that waited for it.
# Arguments: good, the folder for backups, the token of the list of waiting jobs, the folders STAMP-TOKEN of all passes.
UNISON=${UNISON:-$HOME/.unison}
good=$1 backups=$2 list=$UNISON/yurt/waiting.$3
shift 3
case $backups in
'') backups=$UNISON/backup ;;
/*) ;;
*) backups=$HOME/$backups ;;
esac
for each; do
    [ ! -d "$backups/$each" ] || printf 'backup %s\n' "$backups/$each"
    [ "$UNISON/yurt/waiting.${each##*-}" = "$list" ] || rm -f -- "$UNISON/yurt/waiting.${each##*-}"
done
if [ "$good" = 1 ]; then
    home_release "$list"
else
    rm -f -- "$list"
fi
