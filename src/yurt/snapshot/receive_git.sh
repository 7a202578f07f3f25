# Takes a pack of code on standard input and checks one tree out of it, once.
# arguments: PROJECT-FOLDER TREE BASE SIZE; BASE is a tree checked out here already, or empty.
umask 077
project=$1 tree=$2 base=$3 size=$4
command -v git > /dev/null 2>&1 || exit 46
mkdir -p "$project/snapshots" "$project/incoming" && cd "$project" || exit 1
there=$(pwd)
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent LC_ALL=C
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
find incoming -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} + 2> /dev/null # left by a killed one
aside=incoming/$tree.$$.$(date +%s)
mkdir "$aside" || exit 1
# Folders only: a file may be one and the same with that of another checkout.
trap 'cd "$there" && find "$aside" -type d -exec chmod u+w {} + 2> /dev/null; rm -rf "$aside"' EXIT
cat > "$aside/pack"
[ "$(wc -c < "$aside/pack")" -eq "$size" ] || exit 45

if [ ! -e code.git/HEAD ]; then
  git init -q --bare "$aside/code.git" || exit 1
  printf '%s\n' '* -text -filter -ident -export-subst -export-ignore -working-tree-encoding -eol' > "$aside/code.git/info/attributes"
  mv -T "$aside/code.git" code.git 2> /dev/null || [ -e code.git/HEAD ] || exit 1
fi
plain='-c core.autocrlf=false -c core.symlinks=true -c core.protectNTFS=false -c core.protectHFS=false -c gc.auto=0'
git $plain --git-dir=code.git index-pack --stdin --fix-thin < "$aside/pack" > /dev/null || exit 1
rm "$aside/pack"
[ -d "snapshots/$tree" ] && exit 0

mkdir "$aside/files" || exit 1
export GIT_INDEX_FILE="$there/$aside/index"
run() { git $plain --git-dir=code.git --work-tree="$aside/files" "$@"; }
run read-tree "$tree" || exit 1
if [ -n "$base" ] && cp -al "snapshots/$base/." "$aside/files/" 2> /dev/null; then
  # Unchanged files are links to those of the last checkout; the others are taken away and written anew.
  find "$aside/files" -type d -exec chmod u+w {} +
  compare() { git $plain --git-dir=code.git diff-tree -r -z --no-renames --name-only "$@" "$base" "$tree"; }
  compare > "$aside/gone" && compare --diff-filter=d > "$aside/new" || exit 1
  (cd "$aside/files" && xargs -0 -r rm -rf -- < ../gone) || exit 1
  find "$aside/files" -mindepth 1 -depth -type d -empty -delete
  run checkout-index -z --stdin < "$aside/new" || exit 1
else
  rm -rf "$aside/files" && mkdir "$aside/files"
  run checkout-index --all || exit 1
fi
chmod -R a-w "$aside/files"
chmod u+w "$aside/files"
mv -T "$aside/files" "snapshots/$tree" 2> /dev/null || [ -d "snapshots/$tree" ] || exit 1
chmod a-w "snapshots/$tree"
