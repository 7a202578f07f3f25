# Receives large content in pieces, and continues after an interruption. Code needs unchanged.sh and receive.sh before it.
# incoming/part-DIGEST.NONCE is the beginning of the content with this SHA-256, of one sender; it is kept for a day.
# Its name ends with .closed if its receiver saw the end of the input.

# receive_large PROJECT KIND TREE BASE SIZE DIGEST NONCE RESUME PIECE: as receive_code, from SIZE bytes of standard
# input without what an earlier part contains. With the KIND file: TREE is the path of the file. Reports lines "at BYTES": where to continue if RESUME is set, then after
# each PIECE, which grows on a fast link. 45: the input ended early, and the part is kept; 48: the content is wrong, and the part is removed.
receive_large() (
  set +efu
  unset IFS CDPATH
  umask 077
  size=$5 digest=$6 piece=$9 part=incoming/part-$6.$7 at=0
  mkdir -p "$1/incoming" && cd "$1" || exit 1
  find incoming -mindepth 1 -maxdepth 1 -name 'part-*' -mmin +1440 -exec rm -f {} + 2> /dev/null
  if [ -n "$8" ]; then
    largest=
    for each in incoming/part-"$digest".*; do
      found=$(wc -c < "$each" 2> /dev/null) || continue
      if [ "$found" -gt "$at" ] && [ "$found" -le "$size" ]; then largest=$each at=$found; fi
    done
    # A copy if the earlier receiver may still write to its file: it notices a lost connection late.
    case $largest in *.closed) take="mv" ;; *) take="cp" ;; esac
    if [ -n "$largest" ] && $take "$largest" "$part"; then
      at=$(wc -c < "$part")
    else
      rm -f "$part"
      at=0
    fi
    for each in incoming/part-"$digest".*; do [ "$each" = "$part" ] || rm -f "$each"; done # also empty ones
    echo "at $((at))"
  fi
  exec 5>> "$part"
  pieces=0 since=
  while [ "$at" -lt "$size" ]; do
    next=$((size - at))
    [ "$next" -le "$piece" ] || next=$piece
    head -c "$next" >&5 || {
      [ $? -le 128 ] || break # it was killed; the part is still the beginning of the content
      rm -f "$part" # the disk is full
      exit 1
    }
    at=$((at + next)) pieces=$((pieces + 1))
    echo "at $at"
    [ $((pieces % 16)) -eq 0 ] || continue
    [ "$(wc -c < "$part")" -eq "$at" ] || break # head does not say that the input has ended
    now=$(date +%s)
    if [ "$now" = "$since" ] && [ "$piece" -lt 200000 ]; then piece=$((piece * 2)); fi # fewer processes; never more than the smallest window of a sender
    since=$now
  done
  exec 5>&-
  [ "$(wc -c < "$part")" -eq "$size" ] || { mv "$part" "$part.closed" && exit 45; }
  if command -v sha256sum > /dev/null && [ "$(sha256sum < "$part")" != "$digest  -" ]; then
    rm -f "$part"
    exit 48
  fi
  case $2 in
    file) mkdir -p "${3%/*}" && mv -f "$part" "$3" ;;
    *) receive_code . "$2" "$3" "$4" "$size" < "$part" ;;
  esac
  code=$?
  rm -f "$part"
  exit $code
)
