# Lists, finds and expires the backups of a home. Only definitions, after links.sh:
# the script that needs them follows.
# A dated folder, such as 20261117T035512Z-k3x, contains the versions that one sync replaced or deleted, under their paths.

backups_enter() { # backups_enter FOLDER: enters the folder with the dated folders; 44: there is none, 41: not this user's
  case $1 in
    '') backups=${UNISON:-$HOME/.unison}/backup ;;
    /*) backups=$1 ;;
    *) backups=$HOME/$1 ;;
  esac
  [ -d "$backups" ] || return 44
  [ -O "$backups" ] || { printf '%s belongs to another user\n' "$backups" >&2 && return 41; }
  cd -- "$backups" || return
}
backups_dated() { # backups_dated UNTIL: prints the dated folders up to a time, as 20261117035512, newest first
  # shellcheck disable=SC2012 # other names than those of dated folders do not matter
  names=$(LC_ALL=C ls -r) || return
  printf '%s\n' "$names" | while IFS= read -r dated; do
    case $dated in
      *[!A-Za-z0-9-]*) continue ;;
      [0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]Z-*) ;;
      *) continue ;;
    esac
    if [ ! -d "$dated" ] || [ -h "$dated" ] || [ ! -O "$dated" ]; then continue; fi
    number=${dated%%Z*}
    [ "${number%T*}${number#*T}" -gt "$1" ] || printf '%s\n' "$dated"
  done
}
backups_has() { # backups_has DATED/PATH: whether it is a backup: what is behind a link is not
  { [ -e "$1" ] || [ -h "$1" ]; } && ! leads_away "$1"
}
backups_list() { # backups_list UNTIL MOST [PATH]…: prints lines TYPE SIZE TIME DATED/PATH, a newline in a path as \001
  until=$1 left=$2
  shift 2
  [ $# -gt 0 ] || set -- .
  # Without these tools, there would seem to be no backups.
  [ "$(find . -prune -printf '%y\0' | tr '\000\n' '\n\001' | head -n 1 | wc -c)" -eq 2 ] || return 1
  some=$(backups_dated "$until") || return
  for dated in $some; do
    for path; do
      backups_has "$dated/$path" || continue
      number=$(find "$dated/$path" ! -type d -printf . 2> /dev/null < /dev/null | wc -c)
      find "$dated/$path" ! -type d -printf '%y %s %T@ %p\0' 2> /dev/null < /dev/null | tr '\000\n' '\n\001' |
        head -n "$left"
      left=$((left - number))
      [ "$left" -gt 0 ] || return 0
    done
  done
}
backups_find() { # backups_find UNTIL PATH: prints the newest dated folder that contains a path; 44: there is none
  some=$(backups_dated "$1") || return
  for dated in $some; do
    if backups_has "$dated/$2"; then printf '%s\n' "$dated" && return; fi
  done
  return 44
}
backups_expire() { # backups_expire UNTIL: removes the dated folders up to a time, once a day; prints their names
  if [ -z "$(find . -maxdepth 1 -name .expired -mtime -1 2> /dev/null)" ]; then
    : > .expired || return
    for dated in $(backups_dated "$1"); do
      # Moved aside first: a folder that is removed in part is not a backup.
      mv -- "$dated" ".expired-$dated" && printf '%s\n' "$dated"
    done
  fi
  for dated in .expired-*; do # also those that a removal left that was killed
    [ -d "$dated" ] || continue
    find "$dated" -type d ! -perm -700 -exec chmod u+rwx {} \; 2> /dev/null
    rm -rf -- "$dated"
  done
}
