# Refuses folders that another user could have written to. Only definitions: the script that needs them follows.
# Only find runs, once: every operation and every job calls `own`.

own() { # own STORAGE BASE [PATH]…: whether BASE, in STORAGE, and the paths below it are this user's alone
  # A path that does not exist is safe. If one is not, `unsafe` is set to the reason; 40: its mode, 41: its owner.
  own_storage=$1 own_base=$2
  shift
  for own_each; do
    shift
    if [ -h "$own_each" ]; then
      own_link || return 41
    elif [ ! -e "$own_each" ]; then
      continue
    fi
    [ -O "$own_each" ] || { unsafe="$own_each belongs to another user" && return 41; }
    set -- "$@" "$own_each"
  done
  # Others may write to the folder above if it has the sticky bit: they cannot replace what is not theirs.
  own_open=$(find -H "$own_storage/." "$own_base/.." "$@" -maxdepth 0 -perm /022 \
    \( ! -path '*/.' ! -path '*/..' -o ! -perm -1000 \) -print 2> /dev/null)
  [ -z "$own_open" ] || own_modes
}
own_link() { # only BASE may be a link, made by this user
  unsafe="$own_each is a symbolic link"
  [ "$own_each" = "$own_base" ] || return
  [ -n "$(find "$own_base" -maxdepth 0 -user "$(id -un)")" ] || { unsafe="$unsafe of another user" && return 1; }
  [ -d "$own_base" ] || { unsafe="$unsafe to a folder that does not exist" && return 1; }
}
own_modes() { # checks the paths in own_open, one per line, which their groups or others may write to
  own_entered=$(find -H "$own_base" -maxdepth 0 -perm /011 2> /dev/null)
  own_group=$(id -un)
  while IFS= read -r own_each; do
    case $own_each in
      "$own_storage/." | "$own_base/..") unsafe="other users can replace folders in ${own_each%/.}" ;;
      "$own_base") unsafe="other users can write to $own_each" ;;
      # As in a folder with a default ACL: nobody else can get there.
      *) [ -n "$own_entered" ] || continue
        unsafe="other users can write to $own_each" ;;
    esac
    case $(stat -c %A:%G "$own_each") in # a group of this user alone is no other user
      ????????w*) return 40 ;;
      *":$own_group") ;;
      *) return 40 ;;
    esac
  done << own_end
$own_open
own_end
}
