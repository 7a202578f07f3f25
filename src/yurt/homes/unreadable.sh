# Finds the files and folders that this user cannot read. Changes nothing. Argument: ROOT, absolute or below the home; empty:
# the home. Standard input: lines with paths, a newline in a path as \001. Prints those at or below them, each followed by NUL.
# @IGNORED@ is an expression of find.
case $1 in
  /*) cd -- "$1" ;;
  *) cd -- "$HOME/$1" ;;
esac || exit
while IFS= read -r path; do
  path=$(printf '%s.' "$path" | tr '\001' '\n') # without the dot, newlines at the end would be lost
  path=./${path%.}
  if [ ! -e "$path" ] && [ ! -h "$path" ]; then continue; fi
  # shellcheck disable=SC2016 # for the other sh
  find "$path" @IGNORED@ -prune -o ! -type l -exec sh -c 'for each; do
    if [ -r "$each" ] && { [ ! -d "$each" ] || [ -x "$each" ]; }; then continue; fi
    printf "%s\000" "${each#./}"
  done' sh {} + < /dev/null 2> /dev/null
done | head -c 100000
