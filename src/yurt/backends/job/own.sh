# Refuses folders that another user could have written to or can replace. Only definitions: the script that needs them
# follows. Only find runs in the usual case, once: every operation and every job calls `own`.

own() { # own STORAGE BASE [PATH]…: whether BASE, in STORAGE, and the paths below it are this user's alone
  # A path that does not exist is safe. If one is not, `unsafe` is set to the reason; 40: this user can change its mode
  # with chmod; 41: not.
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
  own_above=$own_storage
  while [ -n "$own_above" ]; do # a link of another user can be replaced, or lead elsewhere later
    [ ! -h "$own_above" ] || own_is_trusted "$own_above" || { unsafe="$own_above is a symbolic link of another user" && return 41; }
    own_above=${own_above%/*}
  done
  # Their owner can replace what is in them: this user, or root for a disk that all users share.
  for own_each in "$own_storage" "$own_base/.."; do
    [ ! -e "$own_each" ] || [ -O "$own_each" ] || own_is_trusted "$own_each/." ||
      { unsafe="$own_each belongs to another user, who can replace folders in it" && return 41; }
  done
  own_above=$(cd -P "$own_storage" 2> /dev/null && pwd) || own_above=$own_storage
  while [ -n "$own_above" ]; do
    set -- "$own_above/." "$@"
    own_above=${own_above%/*}
  done
  # The first ten characters: macOS appends a mark to modes.
  own_open=$(find -H "$own_base/.." "$@" -prune \( -perm -020 -o -perm -002 \) -exec sh -c 'for each; do
    mode=$(LC_ALL=C ls -ldH "$each") && printf "%.10s %s\n" "$mode" "$each"
  done' yurt {} + 2> /dev/null)
  [ -z "$own_open" ] || own_modes
}
own_is_trusted() { # own_is_trusted PATH: whether this user or root owns it; of a link, the link itself
  [ -n "$(find "$1" -prune \( -user root -o -user "$(id -un)" \) 2> /dev/null)" ]
}
own_link() { # only BASE may be a link, made by this user
  unsafe="$own_each is a symbolic link"
  [ "$own_each" = "$own_base" ] || return
  [ -n "$(find "$own_base" -prune -user "$(id -un)")" ] || { unsafe="$unsafe of another user" && return 1; }
  [ -d "$own_base" ] || { unsafe="$unsafe to a folder that does not exist" && return 1; }
}
own_modes() { # checks the lines MODE PATH in own_open: their groups, or all users, may write to these paths
  own_entered=$(find -H "$own_base" -prune \( -perm -010 -o -perm -001 \) 2> /dev/null)
  own_real=$(cd -P "$own_storage" 2> /dev/null && pwd)
  while IFS= read -r own_each; do
    own_mode=${own_each%% *} own_each=${own_each#* }
    case $own_each,$own_mode in
      # In a folder with the sticky bit, others can replace only what is theirs; its owner can replace everything.
      */.,????????w[tT] | */..,????????w[tT]) own_is_trusted "$own_each" && continue ;;
      "$own_base/..",?????????[tT] | "$own_real/.",?????????[tT]) continue ;;
      "$own_base/..",* | "$own_real/.",*) ;;
      */.,????????-?) continue ;; # further up: the members of a group trust each other, or choose another folder
      */.,*) ;;
      "$own_base",*) ;;
      *) [ -n "$own_entered" ] || continue ;; # as in a folder with a default ACL: nobody else can get there
    esac
    own_unread=
    case $own_mode in ????????w*) ;; *) ! own_writers_are_mine || continue ;; esac
    unsafe="other users can write to $own_each"
    case $own_each in */. | */..) unsafe="other users can replace folders in $(cd -P "$own_each" && pwd)" ;; esac
    [ -z "$own_unread" ] || unsafe="this host has no getfacl or nfs4_getfacl to tell who can ${unsafe#other users can }"
    if [ -O "$own_each" ]; then return 40; else return 41; fi
  done << own_end
$own_open
own_end
}
own_writers_are_mine() { # whether the bit of the group, or what it is the mask of, lets only this user write to own_each
  read -r own_marks _links _owner own_group _rest << own_end
$(LC_ALL=C ls -ldH "$own_each")
own_end
  own_list=$(LC_ALL=C getfacl -cEnp -- "$own_each" 2> /dev/null)
  case $own_list in
    *mask::* | *default:*) ;;
    *) # no list of POSIX; getfacl makes one of the mode then
      own_list=$(LC_ALL=C nfs4_getfacl "$own_each" 2> /dev/null)
      case $own_list,$own_marks in
        ,??????????+*) own_unread=yes && return 1 ;;
        ,*) own_list=group::w ;;
      esac
      ;;
  esac
  own_number=$(id -u)
  while IFS=: read -r own_kind own_who own_rights own_nfs; do
    case $own_kind:$own_who in
      user: | user:0 | user:"$own_number") ;;
      user:*) case $own_rights in *w*) return 1 ;; esac ;;
      group:*) case $own_rights in *w*) own_group_is_private "${own_who:-$own_group}" || return 1 ;; esac ;;
      A:*i*) ;; # NFSv4: only for what is created below
      A:*)
        case $own_rights:$own_nfs in
          OWNER@:*) ;;
          GROUP@:*[waDCo]*) own_group_is_private "$own_group" || return 1 ;;
          *:*[waDCo]*) return 1 ;;
        esac
        ;;
    esac
  done << own_end
$own_list
own_end
}
own_group_is_private() { # own_group_is_private GROUP: whether a group, by name or number, is this user's alone
  own_name=$(id -un)
  case $(getent group "$1") in "$own_name":*: | "$own_name":*:"$own_name") ;; *) return 1 ;; esac
}
