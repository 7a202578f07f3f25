# After a sync, on one side: which backups it made, and with good=1 the release of the jobs that waited for it.
# Arguments: good, the folder for backups, the folder of the backups of this sync, the tokens of all passes.
UNISON=${UNISON:-$HOME/.unison}
good=$1 backups=$2
shift 2
case $backups in
'') backups=$UNISON/backup ;;
/*) ;;
*) backups=$HOME/$backups ;;
esac
for each; do
    token=${each##*-}
    [ ! -d "$backups/$each" ] || printf 'backup %s\n' "$backups/$each"
    last=$UNISON/yurt/waiting.$token
done
if [ "$good" = 1 ] && [ -s "$last" ]; then
    home_release "$last"
fi
for each; do
    rm -f -- "$UNISON/yurt/waiting.${each##*-}"
done
