# Copies versions in a home to names beside them, for conflicts of which both versions are kept.
# arguments: ROOT [PATH STEM END]…. The copy is STEM END, or STEM-2 END and so on if that name is used. Prints each name,
# followed by NUL. A file that has been copied before is not copied again. Unison ignores the name of the temporary file.
# Follows links.sh.
root=$1
shift
cd -- "$root" || exit
while [ $# -gt 0 ]; do
  path=$1 stem=$2 end=$3 number=1
  shift 3
  if leads_away "$path"; then printf '%s is behind a symbolic link\n' "$path" >&2 && exit 1; fi
  name=$stem$end
  while [ -e "./$name" ] || [ -h "./$name" ]; do
    if [ -f "./$path" ] && [ -f "./$name" ] && cmp -s "./$path" "./$name"; then break; fi
    number=$((number + 1))
    name=$stem-$number$end
  done
  if [ ! -e "./$name" ] && [ ! -h "./$name" ]; then
    case $path in */*) part=./${path%/*}/.unison.yurt-$$.unison.tmp ;; *) part=./.unison.yurt-$$.unison.tmp ;; esac
    rm -rf -- "$part"
    if ! cp -RPp -- "./$path" "$part" || ! mv -- "$part" "./$name"; then
      rm -rf -- "$part"
      exit 1
    fi
  fi
  printf '%s\000' "$name"
done
