# measure FOLDER: prints FILES:BYTES:NEWEST; 0:0:0 if it is empty, ? if it cannot be read.
measure() {
  [ -d "$1" ] || { echo 0:0:0 && return; }
  { find "$1" ! -type d -printf '%s %T@\n' 2> /dev/null || echo "? ?"; } |
    LC_ALL=C awk '$1 == "?" { hidden = 1 }
      { files++; bytes += $1; if ($2 + 0 > newest + 0) newest = $2 }
      END { if (hidden) print "?"; else printf "%.0f:%.0f:%s\n", files, bytes, files ? newest : 0 }'
}
# measure_all: prints a line MEASURE FOLDER for each folder on standard input that is not empty. Uses few processes,
# unless something cannot be read.
measure_all() {
  folders=$(cat)
  if found=$(printf '%s\n' "$folders" | tr '\n' '\0' | xargs -0 -r sh -c 'find "$@" ! -type d -printf "%s %T@ %H\n"' sh 2> /dev/null); then
    printf '%s\n' "$found" | LC_ALL=C awk 'NF {
        at = index($0, " /"); folder = substr($0, at + 1)
        files[folder]++; bytes[folder] += $1; if ($2 + 0 > newest[folder] + 0) newest[folder] = $2
      }
      END { for (folder in files) printf "%.0f:%.0f:%s %s\n", files[folder], bytes[folder], newest[folder], folder }'
  else
    printf '%s\n' "$folders" | while IFS= read -r folder; do echo "$(measure "$folder") $folder"; done
  fi
}
