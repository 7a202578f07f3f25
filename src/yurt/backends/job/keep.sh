# Writes the verdicts of finished runs and sends the files to keep. Needs gate.sh, frames.sh and measure.sh before it.
# arguments: NONCE CONTENT MEASURE BYTES SECONDS LOG METRICS HEAD FILES
# Standard input, two lines for each run: its folder, and the caller's verdict (JSON; may be empty).
# The first verdict written stays, and is sent. Stops after BYTES or SECONDS, with a complete record.
# A file of which all is kept is a piece with the count "tar"; after all records and a line "= tar", these files follow
# in one tar file. So the number of processes does not depend on the number of runs, unless their files are large.
umask 077
me=$1 content=$2 measure=$3 left=$4 until=$(($(date +%s) + $5)) log=$6 most=$7 first=$8 listed=$9
export LC_ALL=C
full='' at=0

settle() { # settle TEXT
  read_written @STATUS@ > /dev/null || [ -z "$1" ] || [ -n "$full" ] || patience=1 write_once @STATUS@ "$1" > /dev/null || full=yes
}
whole_or_end() { # whole_or_end NAME FILE SIZE MOST: the complete file, in the tar file, or its end
  if [ "$3" -eq 0 ] || [ "$3" -gt "$4" ] || [ -z "$tar" ]; then
    piece "$1" "$2" $(($3 ? $4 : 0))
  else
    printf '%s %s tar\n' "$1" "$3"
    printf '%s\n' "$folder/$2" >&5
    left=$((left - $3))
  fi
}
metrics() { # metrics SIZE: the complete file, or its beginning and end
  size=$1
  if [ "$size" -le "$most" ]; then
    whole_or_end metrics @METRICS@ "$size" "$most"
  else
    printf 'metrics %s %s\n' "$size" $((most + 1))
    head -c "$first" @METRICS@
    echo
    tail -c $((most - first)) @METRICS@
    left=$((left - most))
  fi
}
newline='
'
parts() { # prints a line "NAME FILES BYTES" for each part, ? if counting takes too long; then its result files
  found='' results=''
  for name in @OUTPUTS@ @CHECKPOINTS@ @WORK@ @OUT_LOG@ @ERR_LOG@ @METRICS@; do
    if [ -d "$name" ]; then
      newer='' finder=find_all list=$listed
      case $name in
        @WORK@)
          finder=find_written
          [ ! -e @COPIED@ ] || newer=@COPIED@ ;;
        @CHECKPOINTS@) list=0 ;;
      esac
      # In a name, a newline becomes \001. Of very many files, those that are found first are sorted.
      reply=$({ seconds=4 && $finder '%s %P\0' "$name" && printf '=\0'; } 2> /dev/null | tr '\n\0' '\001\n' |
        awk -v part="$name" -v list="$list" '
          BEGIN { sorted = "sort -k 2 | head -n " list }
          $0 == "=" { whole = 1; next }
          { files++; bytes += $1 }
          files <= 20 * list { print $1 " " part "/" substr($0, index($0, " ") + 1) | sorted }
          END { close(sorted); if (whole) printf "%d %.0f", files, bytes; else printf "? ?" }')
      case $reply in *"$newline"*) results=$results${reply%"$newline"*}$newline reply=${reply##*"$newline"} ;; esac
    elif [ -e "$name" ]; then
      size=$(wc -c < "$name") || continue
      reply="1 $((size))"
    else
      continue
    fi
    found="$found$name $reply$newline"
  done
  printf 'parts %s %s\n%s' ${#found} ${#found} "$found"
  printf 'files %s %s\n%s' ${#results} ${#results} "$results"
}

with_sizes() { # reads folders and verdicts; prints before each folder the sizes of the files to keep
  input=$(cat && echo .) # the last line may be empty
  input=${input%.}
  if [ -n "$content" ]; then
    printf '%s' "$input" | awk 'NR % 2' | while IFS= read -r folder; do
      for name in @OUT_LOG@ @ERR_LOG@ @METRICS@; do
        if [ -f "$folder/$name" ] && [ -s "$folder/$name" ]; then printf '%s\0' "$folder/$name"; fi
      done
    done | xargs -0 -r wc -c 2> /dev/null
  fi | { cat && printf '=\n%s' "$input"; } | awk '
    !listed && $0 == "=" { listed = 1; next }
    !listed { at = index($0, "/"); if (at) sizes[substr($0, at)] = $1; next }
    { line++ }
    line % 2 { print sizes[$0 "/@OUT_LOG@"] + 0, sizes[$0 "/@ERR_LOG@"] + 0, sizes[$0 "/@METRICS@"] + 0 }
    { print }'
}
records() {
  while read -r out_size err_size metrics_size && IFS= read -r folder && IFS= read -r verdict; do
    at=$((at + 1))
    [ "$left" -gt 0 ] || break
    [ $((at % 32)) -ne 0 ] || [ "$(date +%s)" -le "$until" ] || break
    printf '= %s\n' "$at"
    if cd "$folder" 2> /dev/null; then
      echo 'there 0 0'
      settle "$verdict"
      note @STATUS@
      note @EXIT@ || piece usage @USAGE@ 60000 # of a job that was killed
      if [ -n "$content" ]; then
        whole_or_end out @OUT_LOG@ "$out_size" "$log"
        whole_or_end err @ERR_LOG@ "$err_size" "$log"
        metrics "$metrics_size"
      fi
      [ -z "$measure" ] || parts
    fi
    echo .
  done
}
exec 4>&1
case $(tar --version 2> /dev/null) in *GNU* | *bsdtar*) tar=yes ;; *) tar= ;; esac # others lack the options below
small=$(with_sizes | records 5>&1 >&4)
if [ -n "$small" ]; then
  echo "= tar"
  printf '%s\n' "$small" | tr '\n' '\0' | tar --null --no-recursion -P -cf - -T - 2> /dev/null
fi
:
