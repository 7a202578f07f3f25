# Prints `same` if nothing in a home has changed since the last sync of a pair began, and no job waits for a sync. Changes
# nothing; after gate.sh. Arguments: RECORD ROOT HERE TOKEN. TOKEN is that of the last sync that reached its end: if another
# one has begun since, nobody knows how far it came. Set before: margin, in seconds. @IGNORED@ is an expression of find.
# Every change of a file or folder sets a ctime, which no program can set back. What find cannot read, or does not
# understand, counts as a change.
read -r token 2> /dev/null < "${UNISON:-$HOME/.unison}/yurt/began.$1" || exit
[ "$token" = "$4" ] || exit
began=$(find "${UNISON:-$HOME/.unison}/yurt/began.$1" -printf '%C@' 2> /dev/null)
second=${began%%.*}
[ -n "$second" ] || exit
case $2 in
  /*) cd -- "$2" || exit ;;
  *) cd -- "$HOME/$2" || exit ;;
esac
[ -s .yurt-home ] || exit
if [ -z "$3" ]; then
  waiting=$(home_waiting 2> /dev/null) || exit
  [ -z "$waiting" ] || exit
fi
since=@$((second - margin)).${began#*.}
# Only folders and changed files are compared with the rules: `-printf ""` keeps find from trying the many rules first.
changed=$(LC_ALL=C find . -type d -printf '' @IGNORED@ -prune -o \
  -newerct "$since" -printf '' ! \( @IGNORED@ \) -print -quit 2>&1 < /dev/null) || exit
[ -n "$changed" ] || echo same
