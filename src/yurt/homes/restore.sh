# Restores a path of a home from a dated folder. Follows backups.sh.
# arguments: FOLDER ROOT FROM PATH NEW. FROM is a dated folder; what is replaced goes to the dated folder NEW.
# Prints the number of restored files, and `saved` if something was replaced. 44: the backup does not exist; 45: a folder
# above PATH is a link, which leads elsewhere. Unison ignores the name of the temporary file.
folder=$1 root=$2 from=$3 wanted=$4 new=$5 backups=''
exists() { [ -e "$1" ] || [ -h "$1" ]; }
is_folder() { [ -d "$1" ] && [ ! -h "$1" ]; }
space() { # space PATH: creates the folder for a path in the new dated folder
  case $1 in */*) set -- "$new/${1%/*}" ;; *) set -- "$new" ;; esac
  (umask 077 && mkdir -p -- "$backups/$1")
}
save() { # save PATH: moves a path to the new dated folder; of a file, leaves a copy, so that its name always exists
  space "$1" || return
  if [ -f "./$1" ] && [ ! -h "./$1" ]; then
    ln -- "./$1" "$backups/$new/$1" 2> /dev/null || cp -Pp -- "./$1" "$backups/$new/$1"
  else
    mv -- "./$1" "$backups/$new/$1"
  fi
}
restore() ( # restore PATH: a folder that exists keeps the files that the backup does not have
  path=$1 source=$backups/$from/$1
  if is_folder "$source" && is_folder "./$path"; then
    for each in "$source"/* "$source"/.[!.]* "$source"/..?*; do
      ! exists "$each" || restore "$path/${each##*/}" || exit
    done
    exit 0
  fi
  case $path in */*) part=./${path%/*}/.unison.yurt-$$.unison.tmp ;; *) part=./.unison.yurt-$$.unison.tmp ;; esac
  rm -rf -- "$part"
  if cp -RPp -- "$source" "$part" && { ! exists "./$path" || save "$path"; } &&
    { ! is_folder "$part" || [ ! -f "./$path" ] || rm -f -- "./$path"; } && mv -f -- "$part" "./$path"; then
    exit 0
  fi
  rm -rf -- "$part"
  exit 1
)

backups_enter "$folder" || exit
[ "$(find . -prune -printf . | wc -c)" -eq 1 ] || exit # before anything changes: they count what was restored
backups_has "$from/$wanted" || exit 44
cd -- "$root" || exit
rest=$wanted above=''
while [ "$rest" != "${rest#*/}" ]; do
  above=${above:+$above/}${rest%%/*}
  rest=${rest#*/}
  if [ -h "./$above" ]; then printf '%s is a symbolic link\n' "$above" >&2 && exit 45; fi
  if [ -f "./$above" ]; then save "$above" && rm -f -- "./$above" || exit; fi
  [ -d "./$above" ] || mkdir -- "./$above" || exit
done
restore "$wanted" || exit
find "$backups/$from/$wanted" ! -type d -printf . < /dev/null | wc -c
[ ! -d "$backups/$new" ] || echo saved
