# What is looked at and removed by `yurt prune`. Before it stand gate.sh, measure.sh and receive.sh.
# A run folder is renamed to runs/.going.ID and then removed: it is there or not there, and whoever comes next goes on.
# That of a sweep, with all its tasks, is sweeps/ID, and goes in the same way.

yurts() { # yurts RUN-FOLDER: whether it is the folder of the run it is named after, and no link to somewhere else
  case $1 in */projects/*/runs/* | */projects/*/sweeps/*) ;; *) return 1 ;; esac
  [ -d "$1" ] && [ ! -h "$1" ] && [ ! -h "${1%/*}" ] || return 1
  if [ -e "$1/@RUN@" ]; then
    grep -q -F "\"id\":\"${1##*/}\"" "$1/@RUN@"
  else # cancelled before it arrived
    case $1 in */sweeps/*) [ -e "$1/@CANCEL@" ] ;; *) [ "$(cd "$1" && read_written @WINNER@)" = cancelled ] ;; esac
  fi
}

measure_tasks() ( # measure_tasks SWEEP: a line "+TASK OUTPUTS CHECKPOINTS" for each that has results, as `measure` says it
  cd "$1" 2> /dev/null && [ -d @TASKS@ ] || exit 0
  # One find for all. What it cannot see is told by what comes after it, which fails on a folder that is not there.
  said=$({ { find @TASKS@ -mindepth 2 -maxdepth 2 ! -type f \( -name @OUTPUTS@ -o -name @CHECKPOINTS@ \) -print0 ||
    printf '@TASKS@/unseen\0'; } | xargs -0 -r sh -c 'exec find "$@" ! -type d -printf "%s %T@ %p\\0"' yurt ||
    printf '? ? ?\0'; } 2> /dev/null | tr '\n\0' ' \n' | LC_ALL=C awk '
      $1 == "?" { hidden = 1; exit }
      { split($3, path, "/"); task = path[2]; part = task " " path[3]
        tasks[task]; files[part]++; bytes[part] += $1; if ($2 + 0 > newest[part] + 0) newest[part] = $2 }
      function all(part) { return sprintf("%.0f:%.0f:%s", files[part], bytes[part], files[part] ? newest[part] : 0) }
      END { if (hidden) print "hidden"; else for (task in tasks) print "+" task, all(task " @OUTPUTS@"), all(task " @CHECKPOINTS@") }')
  case $said in
    hidden*)
      for task in @TASKS@/*; do
        [ ! -d "$task" ] || [ -x "$task" ] || { echo "+${task##*/} ? ?" && continue; }
        echo "+${task##*/} $(measure "$task/@OUTPUTS@") $(measure "$task/@CHECKPOINTS@")"
      done ;;
    ?*) printf '%s\n' "$said" ;;
  esac
)
results() { # results RUN-FOLDER: what it measures, then a line for each task
  case $1 in
    */sweeps/*) echo 0:0:0 0:0:0 && measure_tasks "$1" ;;
    *) echo "$(measure "$1/@OUTPUTS@") $(measure "$1/@CHECKPOINTS@")" ;;
  esac
}
ended() { # ended RUN-FOLDER: whether that can be told from the folder alone; of a sweep, whether all its tasks have
  cd "$1" || exit 1
  case $1 in
    */sweeps/*)
      if read_written @STATUS@ > /dev/null; then exit 0; fi
      over=$(find @TASKS@ -mindepth 2 -maxdepth 2 \( -name @EXIT@ -o -name @EXIT@.d \) 2> /dev/null | wc -l)
      if [ -e @CANCEL@ ]; then begun=$(find @TASKS@ -mindepth 1 -maxdepth 1 2> /dev/null | wc -l); else begun=$(wc -l < @OFFSETS@); fi
      [ "$over" -ge "$begun" ] ;;
    *) [ -e @EXIT@ ] || [ -e @EXIT@.d ] || [ "$(read_written @WINNER@)" = cancelled ] ;;
  esac
}

survey() { # survey RUN-FOLDER…: sizes, then a line for each
  echo "= sizes"
  [ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 du -sk 2> /dev/null
  echo "= runs"
  for folder; do
    if yurts "$folder"; then
      echo "there $(results "$folder")"
    elif [ -e "$folder" ] || [ -h "$folder" ]; then
      echo foreign
    elif [ -d "${folder%/*}/.going.${folder##*/}" ]; then
      echo going
    else
      echo gone
    fi
  done
}

vanish() { # vanish FOLDER: links in it are removed, not followed
  [ -d "$1" ] && [ ! -h "$1" ] || return 1
  rm -rf -- "$1" 2> /dev/null || { find "$1" -type d -exec chmod u+rwx {} + && rm -rf -- "$1"; }
}

finish_going() { # finish_going PROJECT: what is on its way goes
  for aside in "$1"/runs/.going.* "$1"/sweeps/.going.*; do
    vanish "$aside" && echo "gone ${aside##*/.going.}"
  done
}
remove() { # remove RUN-FOLDER…: says which are gone; what an earlier one left half-done goes too
  last=
  for folder; do
    project=${folder%/*/*} aside=${folder%/*}/.going.${folder##*/}
    if yurts "$folder"; then
      [ ! -e "$aside" ] || vanish "$aside"
      mv -T "$folder" "$aside"
    fi
    [ "$project" = "$last" ] || projects="$projects${projects:+$newline}$project"
    last=$project
  done
  [ -n "$projects" ] || return 0
  printf '%s\n' "$projects" | sort -u | while IFS= read -r project; do
    finish_going "$project"
    (collect_code "$project") < /dev/null > /dev/null 2>&1
  done
}
newline='
'
projects=

holdings() { # holdings BASE: sizes, then every run there is of any project
  [ -d "$1/projects" ] && [ ! -h "$1/projects" ] || return 0
  echo "= sizes"
  du -k -d 3 "$1/projects" 2> /dev/null
  echo "= runs"
  for folder in "$1"/projects/*/runs/* "$1"/projects/*/sweeps/*; do
    yurts "$folder" || continue
    if (ended "$folder"); then ended=ended; else ended=going; fi
    echo "$ended $folder"
    results "$folder"
  done
}

clear_out() { # clear_out BASE RUN-FOLDER…: those, then whatever yurt has beside them; says what is left
  base=$1
  shift
  remove "$@"
  for project in "$base"/projects/*; do
    if [ ! -d "$project" ] || [ -h "$project" ]; then continue; fi
    finish_going "$project"
    left=
    for name in runs sweeps; do # while there is a run its code is needed
      [ ! -d "$project/$name" ] || rmdir "$project/$name" 2> /dev/null || { echo "left $project/$name" && left=yes; }
    done
    [ -z "$left" ] || continue
    for name in snapshots incoming code.git; do
      [ ! -e "$project/$name" ] || vanish "$project/$name"
    done
    rmdir "$project" 2> /dev/null || echo "left $project"
  done
  rmdir "$base/projects" 2> /dev/null || return 0
  # The module for scripts: while there is a run it is needed.
  if [ -d "$base/node" ] && [ ! -h "$base/node" ]; then vanish "$base/node"; fi
  rmdir "$base" 2> /dev/null
  :
}
