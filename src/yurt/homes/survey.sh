# Measures a home for the first sync. Changes nothing. @IGNORED@ is an expression of find.
# arguments: MARK ROOT. ROOT is absolute or below the home; empty: the home. It may not exist.
# Prints lines FILES BYTES WEIGHT TOP, then after each line "MARK name" the output of df, quota and lfs. TOP is the first
# part of a path; it is empty for files that are directly in ROOT. WEIGHT depends on the names and sizes: folders with
# different weights are different.
mark=$1 root=$2
case $root in
  '') root=$HOME ;;
  /*) ;;
  *) root=$HOME/$root ;;
esac
limited() { if command -v timeout > /dev/null 2>&1; then timeout 20 "$@"; else "$@"; fi; }
export LC_ALL=C
# Without these tools, every home would look empty.
[ "$(find / -prune -printf '%y\0' | tr '\000' '\n' | awk '{ print }')" = d ] || exit 1
if [ -d "$root" ]; then
  cd -- "$root" || exit 1
  find . -mindepth 1 @IGNORED@ -prune -o ! -type d -printf '%s %P\0' < /dev/null | tr '\000\n' '\n?' | awk '
    {
      size = $1
      path = substr($0, length($1) + 2)
      top = index(path, "/") ? substr(path, 1, index(path, "/") - 1) : ""
      files[top]++
      bytes[top] += size
      weight[top] += (size + 1) * length(path)
    }
    END { for (top in files) printf "%d %.0f %.0f %s\n", files[top], bytes[top], weight[top], top }'
  near=.
else
  near=$root
  while [ ! -d "$near" ] && [ -n "$near" ]; do near=${near%/*}; done
  near=${near:-/}
fi
printf '%s blocks\n' "$mark"
limited df -Pk "$near" 2> /dev/null < /dev/null | tail -n 1
printf '%s inodes\n' "$mark"
limited df -Pi "$near" 2> /dev/null < /dev/null | tail -n 1
printf '%s quota\n' "$mark"
if command -v quota > /dev/null 2>&1; then limited quota -w 2> /dev/null < /dev/null | tail -n +3; fi
printf '%s lustre\n' "$mark"
if command -v lfs > /dev/null 2>&1; then limited lfs quota -q -u "$(id -un)" "$near" 2> /dev/null < /dev/null | head -n 3; fi
:
