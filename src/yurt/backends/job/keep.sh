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
[ -z "$measure" ] || can_measure 2> /dev/null || measure='' # no sizes, instead of sizes of 0

newline='
'
said='' small=''
print_said() { # prints the lines of records, and on descriptor 5 the files for the tar file; few writes for many runs
  printf '%s' "$said"
  [ -z "$small" ] || printf '%s' "$small" >&5
  said='' small=''
}
in_tar() { # in_tar NAME FILE SIZE: sends the complete file in the tar file
  said="$said$1 $3 tar$newline" small="$small$folder/$2$newline"
  left=$((left - $3))
}
settle() { # settle TEXT
  { [ -f @STATUS@ ] && [ -s @STATUS@ ]; } || read_written @STATUS@ > /dev/null || [ -z "$1" ] || [ -n "$full" ] ||
    patience=1 write_once @STATUS@ "$1" > /dev/null || full=yes
}
written() { # written NAME: sends the text written under a name, if any
  if [ -n "$tar" ] && [ -f "$1" ] && [ -s "$1" ] && [ ! -h "$1" ]; then in_tar "$1" "$1" 0; else print_said && note "$1"; fi
}
whole_or_end() { # whole_or_end NAME FILE SIZE MOST: the complete file, or its end
  if [ "$3" -eq 0 ]; then
    said="$said$1 0 0$newline"
  elif [ "$3" -gt "$4" ] || [ -z "$tar" ]; then
    print_said
    piece "$1" "$2" "$4"
  else
    in_tar "$1" "$2" "$3"
  fi
}
metrics() { # metrics SIZE: the complete file, or its beginning and end
  size=$1
  if [ "$size" -le "$most" ]; then
    whole_or_end metrics @METRICS@ "$size" "$most"
  else
    print_said
    printf 'metrics %s %s\n' "$size" $((most + 1))
    head -c "$first" @METRICS@
    echo
    tail -c $((most - first)) @METRICS@
    left=$((left - most))
  fi
}
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
          BEGIN { sorted = "all=$(sort -k 2) && printf \"%s\\n\" \"$all\" | head -n " list }
          $0 == "=" { whole = 1; next }
          { files++; bytes += $1 }
          files <= 20 * list { print $1 " " part "/" substr($0, index($0, " ") + 1) | sorted }
          END { if (files && list > 0 && close(sorted)) whole = 0; if (whole) printf "%d %.0f", files, bytes; else printf "? ?" }') || reply='? ?'
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

with_sizes() { # reads folders and verdicts; prints the same, with the sizes of the files to keep before each folder
  input=$(awk 'NR % 2 { print; next } { print "v" $0 }') || return # a verdict may be empty
  logs='' sizes=''
  if [ -n "$content" ]; then
    IFS=$newline
    set -f
    for line in $input; do
      case $line in v*) continue ;; esac
      for name in @OUT_LOG@ @ERR_LOG@ @METRICS@; do
        if [ -f "$line/$name" ] && [ -s "$line/$name" ] && [ -r "$line/$name" ]; then logs=$logs$line/$name$newline; fi
      done
    done
    sizes=$(printf '%s' "$logs" | tr '\n' '\0' | xargs -0 -r wc -c 2> /dev/null)
    [ -z "$logs" ] || [ -n "$sizes" ] || return # one may just have been deleted, but not all
  fi
  printf '%s\n=\n%s\n' "$sizes" "$input" | awk '
    !listed && $0 == "=" { listed = 1; next }
    !listed { at = index($0, "/"); if (at) sizes[substr($0, at)] = $1; next }
    /^v/ { print; next }
    { print sizes[$0 "/@OUT_LOG@"] + 0, sizes[$0 "/@ERR_LOG@"] + 0, sizes[$0 "/@METRICS@"] + 0, $0 }'
}
records() {
  lines=$(with_sizes) || exit
  IFS=$newline
  set -f
  # shellcheck disable=SC2086 # split into lines: sh reads byte by byte, so a loop with `read` is slow
  set -- $lines
  unset IFS
  set +f
  for line; do
    case $line in v*) record "${line#v}" || break ;; *) run=$line ;; esac
  done
  print_said
}
record() { # record VERDICT: of the run in `run`; fails if no more may be sent
  at=$((at + 1))
  [ "$left" -gt 0 ] || return
  if [ $((at % 32)) -eq 0 ]; then
    print_said
    [ "$(date +%s)" -le "$until" ] || return
  fi
  out_size=${run%% *} run=${run#* }
  err_size=${run%% *} run=${run#* }
  metrics_size=${run%% *} folder=${run#* }
  said="$said= $at$newline"
  if cd "$folder" 2> /dev/null; then
    said="${said}there 0 0$newline"
    settle "$1"
    written @STATUS@
    if ! written @EXIT@; then print_said && piece usage @USAGE@ 60000; fi # of a job that was killed
    if [ -n "$content" ]; then
      whole_or_end out @OUT_LOG@ "$out_size" "$log"
      whole_or_end err @ERR_LOG@ "$err_size" "$log"
      metrics "$metrics_size"
    fi
    [ -z "$measure" ] || { print_said && parts; }
  fi
  said="$said.$newline"
}
exec 4>&1
case $(tar --version 2> /dev/null) in *GNU* | *bsdtar*) tar=yes ;; *) tar= ;; esac # others lack the options below
small=$(records 5>&1 >&4) || exit
if [ -n "$small" ]; then
  echo "= tar"
  printf '%s\n' "$small" | tr '\n' '\0' | tar --null --no-recursion -P -cf - -T - 2> /dev/null
fi
:
