# measure FOLDER: what is in it, as FILES:BYTES:NEWEST; 0:0:0 if nothing, ? if it cannot be seen.
measure() {
  [ -d "$1" ] || { echo 0:0:0 && return; }
  { find "$1" ! -type d -printf '%s %T@\n' 2> /dev/null || echo "? ?"; } |
    LC_ALL=C awk '$1 == "?" { hidden = 1 }
      { files++; bytes += $1; if ($2 + 0 > newest + 0) newest = $2 }
      END { if (hidden) print "?"; else printf "%.0f:%.0f:%s\n", files, bytes, files ? newest : 0 }'
}
