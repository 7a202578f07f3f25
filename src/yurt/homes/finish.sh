# After a sync, on one side: prints which backups it made and whether it is unsure of files, and with good=1 releases the
# jobs that waited for it. Then removes old backups. Arguments: good, the folder for backups, the time up to which they
# expire, the token of the list of waiting jobs, the folders STAMP-TOKEN of all passes in one word, the root, and for each
# pair its record and the paths that were copied, see sure_save.
UNISON=${UNISON:-$HOME/.unison}
good=$1 folder=$2 until=$3 list=$UNISON/yurt/waiting.$4 folders=$5 root=$6
shift 6
while [ $# -gt 0 ]; do
    rm -f -- "$UNISON/yurt/refill.$1"
    sure_save "$1" "$root" "$2"
    shift 2
done
# So that a home that loses all its files before the next sync is not synced, see check_root; nor is one refused that a
# sync has emptied.
(
    sure_enter "$root" && [ -r . ] && [ -e .yurt-home ] || exit
    set -- *
    if [ ! -e "$1" ] && [ ! -h "$1" ]; then : > .yurt-home; elif [ ! -s .yurt-home ]; then echo files > .yurt-home; fi
)
backups_enter "$folder" || backups=''
for each in $folders; do
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
