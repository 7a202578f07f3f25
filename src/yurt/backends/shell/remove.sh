# Measures and removes run folders for `yurt prune`. Needs gate.sh, measure.sh and receive.sh before it.
# A run folder is renamed to runs/.going.ID and then removed, so that it exists or not, and a retry continues.
# The folder of a sweep and its tasks is sweeps/ID, and is removed in the same way.

is_run_folder() { # is_run_folder RUN-FOLDER: whether it is the folder of the run it is named after, and not a link
  case $1 in */projects/*/runs/* | */projects/*/sweeps/*) ;; *) return 1 ;; esac
  [ -d "$1" ] && [ ! -h "$1" ] && [ ! -h "${1%/*}" ] || return 1
  if [ -e "$1/@RUN@" ]; then
    grep -q -F "\"id\":\"${1##*/}\"" "$1/@RUN@"
  else # cancelled before the upload
    case $1 in */sweeps/*) [ -e "$1/@CANCEL@" ] ;; *) [ "$(cd "$1" && read_written @WINNER@)" = cancelled ] ;; esac
  fi
}

is_task_folder() { # is_task_folder FOLDER: whether it is the folder of a task, and not a link
  case $1 in */@TASKS@/*) [ -d "$1" ] && [ ! -h "$1" ] && [ ! -h "${1%/*}" ] && is_run_folder "${1%/@TASKS@/*}" ;; *) false ;; esac
}

measure_run() { # measure_run RUN-FOLDER: its outputs, checkpoints and working directory, as printed by `measure`
  echo "$(measure "$1/@OUTPUTS@") $(measure "$1/@CHECKPOINTS@") $(measure_work "$1")"
}
measure_tasks() ( # measure_tasks SWEEP: a line "+TASK" for each task with results, with the output of measure_run
  cd "$1" 2> /dev/null && [ -d @TASKS@ ] || exit 0
  newer='' reply=hidden
  for copied in @TASKS@/*/@COPIED@; do break; done
  # Two passes for all, unless something cannot be read, or tasks have a copy of the code.
  [ -e "$copied" ] || reply=$({ { find_all 'a %s %T@ %p\0' @TASKS@ && find_written 'w %s %T@ %p\0' @TASKS@; } || printf '? ? ? ?\0'; } 2> /dev/null | tr '\n\0' ' \n' | LC_ALL=C awk '
      $1 == "?" { hidden = 1; exit }
      { split($4, path, "/"); task = path[2]; part = task " " path[3] }
      path[3] !~ ($1 == "w" ? "^@WORK@$" : "^(@OUTPUTS@|@CHECKPOINTS@)$") { next }
      { tasks[task]; files[part]++; bytes[part] += $2; if ($3 + 0 > newest[part] + 0) newest[part] = $3 }
      function all(part) { return sprintf("%.0f:%.0f:%s", files[part], bytes[part], files[part] ? newest[part] : 0) }
      END {
        if (hidden) print "hidden"
        else for (task in tasks) print "+" task, all(task " @OUTPUTS@"), all(task " @CHECKPOINTS@"), all(task " @WORK@")
      }')
  case $reply in
    hidden*)
      for task in @TASKS@/*; do
        [ ! -d "$task" ] || [ -x "$task" ] || { echo "+${task##*/} ? ? ?" && continue; }
        echo "+${task##*/} $(measure_run "$task")"
      done ;;
    ?*) printf '%s\n' "$reply" ;;
  esac
)
results() { # results RUN-FOLDER: its measures, then a line for each task
  case $1 in
    */sweeps/*) echo 0:0:0 0:0:0 0:0:0 && measure_tasks "$1" ;;
    *) measure_run "$1" ;;
  esac
}
ended() { # ended RUN-FOLDER: whether its files show that it has finished; for a sweep, that all its tasks have
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

survey() { # survey FOLDER…: of runs, sweeps or tasks: sizes, then a line for each
  echo "= sizes"
  [ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 du -sk 2> /dev/null
  echo "= runs"
  for folder; do
    if is_run_folder "$folder"; then
      echo "there $(results "$folder")"
    elif is_task_folder "$folder"; then # a task is measured, but only removed with its sweep
      echo "there $(measure_run "$folder")"
    elif [ -e "$folder" ] || [ -h "$folder" ]; then
      echo foreign
    elif [ -d "${folder%/*}/.going.${folder##*/}" ]; then
      echo going
    else
      echo gone
    fi
  done
}

remove_tree() { # remove_tree FOLDER: removes it; links in it are not followed
  [ -d "$1" ] && [ ! -h "$1" ] || return 1
  rm -rf -- "$1" 2> /dev/null || { find "$1" -type d -exec chmod u+rwx {} + && rm -rf -- "$1"; }
}

finish_removals() { # finish_removals PROJECT: completes interrupted removals
  for aside in "$1"/runs/.going.* "$1"/sweeps/.going.*; do
    remove_tree "$aside" && echo "gone ${aside##*/.going.}"
  done
}
remove() { # remove RUN-FOLDER…: prints the removed ones, including those of interrupted removals
  last=
  for folder; do
    project=${folder%/*/*} aside=${folder%/*}/.going.${folder##*/}
    if is_run_folder "$folder"; then
      [ ! -e "$aside" ] || remove_tree "$aside"
      mv -T "$folder" "$aside"
    fi
    [ "$project" = "$last" ] || projects="$projects${projects:+$newline}$project"
    last=$project
  done
  [ -n "$projects" ] || return 0
  printf '%s\n' "$projects" | sort -u | while IFS= read -r project; do
    finish_removals "$project"
    (collect_code "$project" all) < /dev/null > /dev/null 2>&1
  done
}
newline='
'
projects=

holdings() { # holdings BASE: sizes, then all runs of all projects
  [ -d "$1/projects" ] && [ ! -h "$1/projects" ] || return 0
  echo "= sizes"
  du -k -d 3 "$1/projects" 2> /dev/null
  echo "= runs"
  for folder in "$1"/projects/*/runs/* "$1"/projects/*/sweeps/*; do
    is_run_folder "$folder" || continue
    if (ended "$folder"); then ended=ended; else ended=going; fi
    echo "$ended $folder"
    results "$folder"
  done
}

clear_out() { # clear_out BASE HOME RUN-FOLDER…: removes those, then all other files of yurt; prints what is left
  # HOME is empty, or the folder for environments in the home folder.
  base=$1 home=$2
  shift 2
  remove "$@"
  for project in "$base"/projects/*; do
    if [ ! -d "$project" ] || [ -h "$project" ]; then continue; fi
    finish_removals "$project"
    left=
    for name in runs sweeps; do # a run needs its code
      [ ! -d "$project/$name" ] || rmdir "$project/$name" 2> /dev/null || { echo "left $project/$name" && left=yes; }
    done
    [ -z "$left" ] || continue
    for name in snapshots incoming code.git; do
      [ ! -e "$project/$name" ] || remove_tree "$project/$name"
    done
    rmdir "$project" 2> /dev/null || echo "left $project"
  done
  rmdir "$base/projects" 2> /dev/null || return 0
  for name in node envs wheels tools incoming; do # runs need them: the modules for scripts, environments
    if [ -d "$base/$name" ] && [ ! -h "$base/$name" ]; then remove_tree "$base/$name"; fi
  done
  # The backups of dev nodes are the only copy of their workspaces.
  [ ! -d "$base/workspaces" ] || rmdir "$base"/workspaces/* "$base/workspaces" 2> /dev/null || echo "left $base/workspaces"
  rmdir "$base" 2> /dev/null
  for name in ${home:+envs wheels tools incoming}; do
    if [ -d "$home/$name" ] && [ ! -h "$home/$name" ]; then remove_tree "$home/$name"; fi
  done
  [ -z "$home" ] || rmdir "$home" 2> /dev/null
  scripts=${XDG_CACHE_HOME:-$HOME/.cache}/yurt/scripts
  if [ -d "$scripts" ] && [ ! -h "$scripts" ]; then rm -rf "$scripts" && rmdir "${scripts%/*}" 2> /dev/null; fi
  :
}
