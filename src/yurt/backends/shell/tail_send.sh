# Sends parts of a log, for tail.sh and tail_many.sh, which begin with it.
# They set last, of and limit. `of`: what each header begins with, `K ` for the K-th of many runs.
# `limit`, if not empty: send at most so many bytes of a log, then `more 0`, and end the script.
send() { # send NAME FILE OFFSET SIZE: sends a log from the offset on; sets offset
  offset=$3
  while [ "$offset" -lt "$4" ]; do
    part=$(($4 - offset))
    [ "$part" -le 1048576 ] || part=1048576
    printf '%s %s\n' "$of$1" "$part"
    part_of "$2" "$offset" "$part" || exit 1
    offset=$((offset + part)) busy=1
    [ "$offset" -lt "$4" ] || break
    if [ -n "$limit" ] && [ "$((offset - $3))" -ge "$limit" ]; then echo "more 0" && exit 0; fi
  done
}
part_of() { # part_of FILE OFFSET COUNT
  if [ "$2" -eq 0 ]; then head -c "$3" "$1"; else tail -c "+$(($2 + 1))" "$1" | head -c "$3"; fi
}
begin() { # begin NAME FILE SIZE: sets offset to the start of the last lines; later if they are long
  offset=0 most_of_all=$((1000000 + last * 4096))
  if [ "$3" -gt 0 ]; then
    from=$(($3 > most_of_all ? $3 - most_of_all : 0))
    shown=$(part_of "$2" "$from" "$(($3 - from))" | tail -n "$last" | wc -c) || exit 1
    [ "$shown" -gt 0 ] || exit 1
    offset=$(($3 - shown))
    [ "$shown" -lt "$most_of_all" ] || printf '%s %s\n' "${of}cut-$1" "$shown"
  fi
  printf '%s %s\n' "${of}skip-$1" "$offset"
}
