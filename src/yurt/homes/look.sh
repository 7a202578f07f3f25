# Looks at the versions of paths in a home. Changes nothing.
# arguments: ROOT LARGEST [PATH]…. Prints seven values for each path, each followed by NUL: TYPE SIZE TIME MODE LINK DIGEST
# FILES. TYPE is - if there is nothing. DIGEST is empty for files of more than LARGEST bytes, FILES counts those of a folder.
root=$1 largest=$2
shift 2
cd -- "$root" || exit
[ "$(find . -prune -printf . | wc -c | tr -d ' \n')" = 1 ] || exit 1 # without these, every folder would look empty
digest() { { sha256sum || shasum -a 256 || cksum; } < "$1" 2> /dev/null; }
for path; do
  path=./$path
  if [ ! -e "$path" ] && [ ! -h "$path" ]; then
    printf '%s\000\000\000\000\000\000\000' -
    continue
  fi
  find "$path" -prune -printf '%y\0%s\0%T@\0%m\0%l\0' < /dev/null
  if [ -f "$path" ] && [ ! -h "$path" ] && [ "$(wc -c < "$path")" -le "$largest" ]; then printf '%s' "$(digest "$path")"; fi
  printf '\000'
  if [ -d "$path" ] && [ ! -h "$path" ]; then
    find "$path" ! -type d -printf . < /dev/null 2> /dev/null | wc -c | tr -d ' \n'
  fi
  printf '\000'
done
