# Reports what is at paths, or removes it. arguments: list|measure|remove PATH…
# Each record ends with NUL: "KIND FILES BYTES TIME NAME". `list`: of each entry of the folder PATH; otherwise of PATH.
# Input for `measure` and `remove`: lines "keep FOLDER" and "own FOLDER". A path that is or contains such a folder, or
# that is inside a folder of yurt, is refused: "refused 0 0 0 FOLDER". "left FILES 0 0 PATH": not all could be removed.
export LC_ALL=C
[ "$(find / -prune -print0 | tr '\n\0' '\001\n')" = / ] || exit 1 # without these, every folder would look empty
what=$1
shift
kind() {
  if [ -L "$1" ]; then echo l; elif [ -d "$1" ]; then echo d; elif [ -f "$1" ]; then echo f
  elif [ -e "$1" ]; then echo o; else echo n; fi
}
real() { (cd -P -- "$1" 2> /dev/null && pwd -P) || printf '%s\n' "$1"; }
# Names may contain newlines; awk reads lines. \001 stands for a newline.
# shellcheck disable=SC2016 # awk expands it
sums='{
  name = substr($0, length($1) + length($2) + length($3) + 4)
  slash = index(name, "/")
  top = slash ? substr(name, 1, slash - 1) : name
  if (!slash) kind[top] = $1
  if ($1 != "d") { files[top]++; bytes[top] += $2 }
  if ($3 + 0 > time[top] + 0) time[top] = $3
}
END { for (each in kind) printf "%s %.0f %.0f %s %s\n", kind[each], files[each], bytes[each], time[each], each }'
if [ "$what" = list ]; then
  found=$(kind "$1")
  [ "$found" != l ] || [ ! -d "$1" ] || found=d
  printf '%s 0 0 0 %s\0' "$found" "$1"
  case $found in
    d) if [ ! -r "$1" ] || ! cd -- "$1" 2> /dev/null; then echo "you may not read this folder" >&2 && exit 1; fi ;;
    n) exit 0 ;;
    *) cd -- "${1%/*}/" && set -- "${1##*/}" || exit 1 ;;
  esac
  name=''
  [ "$found" = d ] || name=$(printf '%s' "$1" | sed 's/[%\\]/\\&/g;s/\\%/%%/g') || exit 1
  listed=$(if [ "$found" = d ]; then
    find . -mindepth 1 -printf '%y %s %T@ %P\0'
  else
    find "./$1" -prune -printf "%y %s %T@ $name\\0"
  fi | tr '\n\0' '\001\n' | awk "$sums") || exit 1
  [ -z "$listed" ] || printf '%s\n' "$listed" | tr '\n\001' '\0\n'
  exit
fi
kept=$(cat) || exit 1
for path; do
  folder=$(real "${path%/*}/")
  place=${folder%/}/${path##*/}
  wrong=$(printf '%s\n' "$kept" | while read -r how each; do
    [ -n "$each" ] || continue
    true_each=$(real "$each")
    case $true_each/ in "$place"/*) echo "$each" && break ;; esac
    case $how:$place/ in own:"$true_each"/*) echo "$each" && break ;; esac
  done)
  if [ -n "$wrong" ]; then
    printf 'refused 0 0 0 %s\0' "$wrong"
    exit 0
  fi
done
for path; do
  found=$(kind "$path")
  if [ "$what" = remove ]; then
    name=${path##*/}
    [ ${#name} -le 200 ] || name=yurt-$(printf %s "$name" | cksum | tr ' ' -)
    if ! rm -rf -- "$path" 2> /dev/null; then
      [ -L "$path" ] || find "$path" -type d -user "$(id -u)" ! -perm -0700 -exec chmod u+rwx {} \; 2> /dev/null
      if ! rm -rf -- "$path"; then
        printf 'left %s 0 0 %s\0' "$(find "$path" ! -type d -print0 2> /dev/null | tr -cd '\0' | wc -c | tr -d ' ')" "$path"
        exit 0
      fi
    fi
    rm -f -- "${path%/*}/.$name.yurt-pack" # the digest of an archive goes with it
    printf '%s 0 0 0 %s\0' "$found" "$path"
  elif [ "$found" = n ]; then
    printf 'n 0 0 0 %s\0' "$path"
  else
    find "$path" -printf '%y %s %T@\n' | awk -v kind="$found" '
      { if ($1 != "d") { files++; bytes += $2 } if ($3 + 0 > time + 0) time = $3 }
      END { printf "%s %.0f %.0f %s ", kind, files, bytes, time }' || exit 1
    printf '%s\0' "$path"
  fi
done
