# Reports how full storage tiers are.
# arguments: MARK REPORT. Input: lines "NAME PATH". Each section follows a line "MARK KIND NAME". REPORT is a command of
# the user that prints the site's own report; it may be empty.
mark=$1 report=$2
export LC_ALL=C
within() { # within SECONDS COMMAND…: a file system that hangs must not stop the others
  if command -v timeout > /dev/null 2>&1; then timeout -k 2 "$@"; else shift && "$@"; fi
}
section() { printf '\n%s %s\n' "$mark" "$1"; }
me=$(id -un)
while IFS=' ' read -r name path; do
  section "tier $name"
  within 10 test -d "$path" || continue
  echo there
  ! within 10 test -w "$path" || echo writable
  section "df $name"
  within 10 df -Pk "$path" 2> /dev/null
  section "files $name"
  within 10 df -Pi "$path" 2> /dev/null
  section "type $name"
  kind=$(within 10 stat -f -c %T "$path" 2> /dev/null) && echo "$kind"
  case $kind in
    lustre)
      section "lfs $name"
      within 20 lfs quota -q -u "$me" "$path" 2> /dev/null < /dev/null ;;
  esac
done
section quota
! command -v quota > /dev/null 2>&1 || within 20 quota -w 2> /dev/null < /dev/null
if [ -n "$report" ]; then
  section report
  within 60 sh -c "$report" 2>&1 < /dev/null
  code=$?
  section reported
  echo $code
fi
