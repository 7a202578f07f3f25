# Reports how full storage tiers are. Only definitions: the script that needs them follows. Each section of the output
# follows a line "MARK KIND NAME"; `mark` is set before.
within() { # within SECONDS COMMAND…: a file system that hangs must not stop the others
  if command -v timeout > /dev/null 2>&1; then timeout -k 2 "$@"; else shift && "$@"; fi
}
section() { printf '\n%s %s\n' "$mark" "$1"; }
tier_use() { # tier_use NAME PATH
  section "tier $1"
  within 10 test -d "$2" || [ $? -ne 1 ] || [ -d "$2" ] || return 0 # not if it took too long
  echo there
  if within 10 test -w "$2"; then echo writable; fi
  section "df $1"
  LC_ALL=C within 10 df -Pk "$2" 2> /dev/null < /dev/null
  section "files $1"
  LC_ALL=C within 10 df -Pi "$2" 2> /dev/null < /dev/null
  section "type $1"
  fs=$(within 10 stat -f -c %T "$2" 2> /dev/null) && echo "$fs"
  case $fs in
    lustre)
      section "lfs $1"
      LC_ALL=C within 20 lfs quota -q -u "$(id -un)" "$2" 2> /dev/null < /dev/null ;;
  esac
  return 0
}
user_quotas() { # of other file systems
  section quota
  ! command -v quota > /dev/null 2>&1 || LC_ALL=C within 20 quota -w 2> /dev/null < /dev/null
  return 0
}
