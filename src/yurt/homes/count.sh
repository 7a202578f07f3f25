# Counts the files that a deletion would remove from a home. Changes nothing. Argument: ROOT, absolute or below the home;
# empty: the home. Standard input: lines with paths, a newline in a path as \001. Prints a number for each path, then that of
# the files in the home, at most 1001. @IGNORED@ is an expression of find.
# Without these tools, every folder would look empty, and a deletion small.
[ "$(find / -prune -exec printf '%.0s.' {} + 2> /dev/null | tr . , | head -c 9 | wc -c)" -eq 1 ] 2> /dev/null ||
  { echo "find, tr, head or wc does not work" >&2 && exit 1; }
case $1 in
  /*) cd -- "$1" ;;
  *) cd -- "$HOME/$1" ;;
esac || exit
while IFS= read -r path; do
  path=$(printf '%s.' "$path" | tr '\001' '\n') # without the dot, newlines at the end would be lost
  path=./${path%.}
  if [ -d "$path" ] && [ ! -h "$path" ]; then
    number=$(find "$path" ! -type d -exec printf '%.0s.' {} + < /dev/null 2> /dev/null | wc -c)
    echo $((number > 0 ? number : 1)) # an empty folder counts as a file
  elif [ -e "$path" ] || [ -h "$path" ]; then
    echo 1
  else
    echo 0
  fi
done
find . -mindepth 1 @IGNORED@ -prune -o ! -type d -exec printf '%.0s.' {} + < /dev/null 2> /dev/null | head -c 1001 | wc -c
