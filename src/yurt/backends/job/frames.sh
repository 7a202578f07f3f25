# Output is records: a line "= NAME", pieces, a line ".". A piece is a line "NAME SIZE COUNT" and COUNT bytes of the
# file; its SIZE may be larger.
piece() { # piece NAME FILE MOST: prints the last bytes of a file
  size=0
  if [ -f "$2" ] && [ -s "$2" ] && [ -r "$2" ]; then size=$(wc -c < "$2") || exit 1; fi
  size=$((size))
  count=$((size <= $3 ? size : $3))
  printf '%s %s %s\n' "$1" "$size" "$count"
  [ "$count" -eq 0 ] || tail -c "$count" "$2" || exit 1
  left=$((left - count))
}
note() { # note NAME: prints the text written under a name, if any
  read_written "$1" > /dev/null && printf '%s %s %s\n%s' "$1" ${#text} ${#text} "$text"
}
