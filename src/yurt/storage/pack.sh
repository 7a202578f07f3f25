# Receives an archive. arguments: PATH DIGEST BYTES. Prints `there` if it has it; otherwise first `at BYTES`, where to
# continue. The bytes of an archive with this digest are always the same, so that two uploads do no harm to each other.
path=$1 digest=$2 total=$3
export LC_ALL=C
folder=${path%/*}/ name=${path##*/}
mkdir -p -- "$folder" || exit 1
if [ -d "$path" ]; then
  echo "it is a folder" >&2
  exit 1
fi
short=$name
[ ${#name} -le 200 ] || short=yurt-$(printf %s "$name" | cksum | tr ' ' -) # names have at most 255 bytes
mark=$folder.$short.yurt-pack part=$folder.$short.$digest.part
bytes() { if [ -f "$1" ]; then wc -c < "$1" | tr -d ' '; else echo 0; fi; }
if [ "$(cat -- "$mark" 2> /dev/null)" = "$digest" ] && [ "$(bytes "$path")" = "$total" ]; then
  echo there
  exit 0
fi
have=$(bytes "$part")
[ "$have" -le "$total" ] || have=0
blocks=$((have / 1048576))
echo "at $((blocks * 1048576))"
dd ibs=65536 obs=1048576 seek=$blocks conv=notrunc of="$part" || exit 1
[ "$(bytes "$part")" = "$total" ] || exit 45
mv -f -- "$part" "$path" && printf %s "$digest" > "$mark.$$" && mv -f -- "$mark.$$" "$mark"
