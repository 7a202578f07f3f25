# Finds out what runs, files and folders contain, and how full storage tiers are. Needs measure.sh and tier_use.sh.
# arguments: MARK. Input: lines "tier NAME PATH", "run FOLDER" and "place PATH". Each run or place has a section "item N":
# gone, going (it has not finished), or there and its measures: of its outputs, its checkpoints and its working directory.
mark=$1 item=0
can_measure || exit
folder_size() { # folder_size PATH: FILES:BYTES:0; ? if it has too many files, or some cannot be read
  { within 60 find "$1" ! -type d -printf '%s\n' || echo '?'; } 2> /dev/null |
    LC_ALL=C awk '$1 == "?" { hidden = 1 } { files++; bytes += $1 }
      END { if (hidden) print "?"; else printf "%.0f:%.0f:0\n", files, bytes }'
}
while IFS=' ' read -r what path; do
  case $what in tier) tier_use "${path%% *}" "${path#* }" && continue ;; esac
  section "item $item"
  item=$((item + 1))
  if [ ! -e "$path" ]; then
    echo gone
  elif [ "$what" = place ]; then
    echo there
    folder_size "$path" || exit
  elif [ ! -e "$path/@EXIT@" ] && [ ! -e "$path/@EXIT@.d" ] && [ ! -e "$path/@STATUS@" ] && [ ! -e "$path/@STATUS@.d" ]; then
    echo going
  else
    echo there
    measure "$path/@OUTPUTS@" && measure "$path/@CHECKPOINTS@" && measure_work "$path" || exit
  fi
done
user_quotas
