# Takes a tar file of code on standard input and unpacks it as one tree, once; for hosts without git.
# arguments: PROJECT-FOLDER TREE SIZE
umask 077
project=$1 tree=$2 size=$3
mkdir -p "$project/snapshots" "$project/incoming" && cd "$project" || exit 1
there=$(pwd)
find incoming -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} + 2> /dev/null # left by a killed one
aside=incoming/$tree.$$.$(date +%s)
mkdir -p "$aside/files" || exit 1
trap 'cd "$there" && find "$aside" -type d -exec chmod u+w {} + 2> /dev/null; rm -rf "$aside"' EXIT
cat > "$aside/tar"
[ "$(wc -c < "$aside/tar")" -eq "$size" ] || exit 45
tar -x -f "$aside/tar" -C "$aside/files" || exit 1
chmod -R a-w "$aside/files"
chmod u+w "$aside/files"
mv -T "$aside/files" "snapshots/$tree" 2> /dev/null || [ -d "snapshots/$tree" ] || exit 1
chmod a-w "snapshots/$tree"
