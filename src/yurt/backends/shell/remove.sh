# Measures and removes run folders for `yurt prune`. Needs gate.sh, measure.sh and receive.sh before it.
# A run folder is renamed to runs/.going/ID and then removed, so that it exists or not, and a retry continues.
# The folder of a sweep and its tasks is sweeps/ID, and is removed in the same way. If the disk is too full for a new
# folder, a run folder is renamed to runs/.going.ID; older versions of yurt did so, too.
# The number of processes does not depend on the number of runs, unless the runs have copies of the code. Lists of
# folders are split into lines instead of read, because sh reads byte by byte.
newline='
'

is_run_folder() { # is_run_folder RUN-FOLDER RECORDED: whether it is the folder of the run it is named after, and not a link
  # RECORDED: whether its record has its name, yes or no, as found by `recorded`; empty if not known
  case $1 in */projects/*/runs/* | */projects/*/sweeps/*) ;; *) return 1 ;; esac
  [ -d "$1" ] && [ ! -h "$1" ] && [ ! -h "${1%/*}" ] || return 1
  if [ -e "$1/@RUN@" ]; then
    case $2 in yes) ;; no) return 1 ;; *) holds_id "$1/@RUN@" "${1##*/}" ;; esac
  else # cancelled before the upload
    case $1 in */sweeps/*) [ -e "$1/@CANCEL@" ] ;; *) [ "$(cd "$1" && read_written @WINNER@)" = cancelled ] ;; esac
  fi
}

holds_id() { # holds_id FILE ID
  grep -q -F "\"id\":\"$2\"" "$1" && return
  [ $? -gt 1 ] && [ -r "$1" ] && exit 1 # grep itself failed
  return 1
}
is_task_folder() { # is_task_folder FOLDER: whether it is the folder of a task, and not a link
  case $1 in */@TASKS@/*) [ -d "$1" ] && [ ! -h "$1" ] && [ ! -h "${1%/*}" ] && is_run_folder "${1%/@TASKS@/*}" "" ;; *) false ;; esac
}

measure_run() { # measure_run RUN-FOLDER: its outputs, checkpoints and working directory, as printed by `measure`
  outputs=$(measure "$1/@OUTPUTS@") && saved=$(measure "$1/@CHECKPOINTS@") && work=$(measure_work "$1") &&
    echo "$outputs $saved $work"
}
measure_tasks() ( # measure_tasks SWEEP: a line "+TASK" for each task with results, with the output of measure_run
  cd "$1" 2> /dev/null && [ -d @TASKS@ ] || exit 0
  newer='' reply=hidden
  for copied in @TASKS@/*/@COPIED@; do break; done
  # Two passes for all, unless something cannot be read, or tasks have a copy of the code.
  [ -e "$copied" ] || reply=$({ { find_all 'a %s %T@ %p\0' @TASKS@ && find_written 'w %s %T@ %p\0' @TASKS@; } && printf '=\0'; } 2> /dev/null | tr '\n\0' ' \n' | LC_ALL=C awk '
      $1 == "=" { whole = 1; next }
      { split($4, path, "/"); task = path[2]; part = task " " path[3] }
      path[3] !~ ($1 == "w" ? "^@WORK@$" : "^(@OUTPUTS@|@CHECKPOINTS@)$") { next }
      { tasks[task]; files[part]++; bytes[part] += $2; if ($3 + 0 > newest[part] + 0) newest[part] = $3 }
      function all(part) { return sprintf("%.0f:%.0f:%s", files[part], bytes[part], files[part] ? newest[part] : 0) }
      END {
        if (!whole) print "hidden"
        else for (task in tasks) print "+" task, all(task " @OUTPUTS@"), all(task " @CHECKPOINTS@"), all(task " @WORK@")
      }') || exit
  case $reply in
    hidden*)
      for task in @TASKS@/*; do
        [ ! -d "$task" ] || [ -x "$task" ] || { echo "+${task##*/} ? ? ?" && continue; }
        found=$(measure_run "$task") && echo "+${task##*/} $found" || exit
      done ;;
    ?*) printf '%s\n' "$reply" ;;
  esac
)
recorded() { # recorded RUN-FOLDER…: prints, in order, those whose record has the id they are named after
  for folder; do [ ! -f "$folder/@RUN@" ] || printf '%s\0' "$folder/@RUN@"; done | LC_ALL=C xargs -0 -r awk '
    FNR == 1 { found = 0; many = split(FILENAME, path, "/") }
    !found && index($0, "\"id\":\"" path[many - 1] "\"") {
      found = 1
      print substr(FILENAME, 1, length(FILENAME) - length("/@RUN@"))
    }' 2> /dev/null
}
each_run_folder() { # each_run_folder COMMAND FOLDER…: calls it with each folder, and yes if that is a run folder, else no
  command=$1 other=no
  shift
  known=$(recorded "$@") || known='' other='' # such as one that was just removed: look at each
  IFS=$newline
  set -f
  for next in $known ''; do # each folder up to the next one that is recorded; then the rest
    unset IFS
    set +f
    while [ $# -gt 0 ]; do
      folder=$1 named=$other
      shift
      [ "$folder" != "$next" ] || named=yes
      if is_run_folder "$folder" "$named"; then $command "$folder" yes; else $command "$folder" no; fi
      [ "$named" != yes ] || break
    done
  done
  unset IFS
  set +f
}
print_run_folder() { # print_run_folder FOLDER IS-RUN-FOLDER
  [ "$2" = no ] || printf '%s\n' "$1"
}

measured() { # measured: measures the folders of runs on standard input; prints lines of `measure_all`
  some='' many=0
  given=$(cat) || return
  IFS=$newline
  set -f
  for run in $given; do
    unset IFS
    set +f
    for part in @OUTPUTS@ @CHECKPOINTS@ @WORK@; do
      [ ! -d "$run/$part" ] || { some=$some$run/$part$newline && many=$((many + 1)); }
    done
    [ "$many" -ge 100 ] || continue
    printf '%s' "$some" | measure_all || return # a folder without a line counts as empty
    some='' many=0
  done
  unset IFS
  set +f
  printf '%s' "$some" | measure_all && echo "= end"
}
tasks_if_sweep() { # tasks_if_sweep RUN-FOLDER: a line for each task of a sweep; of another run: adds it to `runs`
  case $1 in
    */sweeps/*) case $1 in */@TASKS@/*) runs=$runs$1$newline ;; *) measure_tasks "$1" || exit ;; esac ;;
    *) runs=$runs$1$newline ;;
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

survey() { # survey FOLDER…: of runs, sweeps or tasks: sizes; a line for each, with its tasks; measures of runs
  can_measure || return
  echo "= sizes"
  [ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 du -sk 2> /dev/null
  echo "= runs"
  runs=
  each_run_folder survey_one "$@"
  echo "= measures"
  printf '%s' "$runs" | measured
}
survey_one() { # survey_one FOLDER IS-RUN-FOLDER
  if [ "$2" = yes ] || is_task_folder "$1"; then # a task is measured, but only removed with its sweep
    echo there
    tasks_if_sweep "$1"
  elif [ -e "$1" ] || [ -h "$1" ]; then
    echo foreign
  elif [ -d "${1%/*}/.going/${1##*/}" ] || [ -d "${1%/*}/.going.${1##*/}" ]; then
    echo going
  else
    echo gone
  fi
}

remove_tree() { # remove_tree FOLDER: removes it; links in it are not followed
  [ -d "$1" ] && [ ! -h "$1" ] || return 1
  rm -rf -- "$1" 2> /dev/null || { find "$1" -type d -exec chmod u+rwx {} + && rm -rf -- "$1"; }
}

finish_removals() { # finish_removals PROJECT: removes the folders that were set aside; prints them
  for aside in "$1"/runs/.going "$1"/sweeps/.going; do
    if [ ! -d "$aside" ] || [ -h "$aside" ]; then continue; fi
    going=$(for each in "$aside"/*; do [ ! -d "$each" ] || printf '%s\n' "$each"; done)
    printf '%s' "${going:+$going$newline}" | tr '\n' '\0' | xargs -0 -r rm -rf -- 2> /dev/null
    (
      IFS=$newline
      set -f
      for each in $going; do
        [ ! -e "$each" ] || remove_tree "$each" || continue
        echo "gone ${each##*/}"
      done
    )
    rmdir "$aside" 2> /dev/null
  done
  for aside in "$1"/runs/.going.* "$1"/sweeps/.going.*; do
    remove_tree "$aside" && echo "gone ${aside##*/.going.}"
  done
}
set_aside() ( # set_aside FOLDER RUN-FOLDERS: renames those of the run folders, one on each line, that are in it
  IFS=$newline
  set -f
  going=$(for each in $2; do [ "${each%/*}" != "$1" ] || printf '%s\n' "$each"; done)
  for each in $going; do
    for old in "$1/.going/${each##*/}" "$1/.going.${each##*/}"; do [ ! -e "$old" ] || remove_tree "$old"; done
  done
  # Another removal may just have removed the folder, which was empty.
  for _try in 1 2 3; do
    [ -z "$going" ] || mkdir -m 700 "$1/.going" 2> /dev/null
    left=$(for each in $going; do [ ! -d "$each" ] || printf '%s\n' "$each"; done)
    [ -n "$left" ] || exit 0
    if [ ! -d "$1/.going" ] || [ -h "$1/.going" ]; then break; fi
    printf '%s\n' "$left" | tr '\n' '\0' | xargs -0 sh -c 'mv -- "$@" "$0"' "$1/.going/." 2> /dev/null
  done
  for each in $left; do
    [ ! -d "$each" ] || mv -T "$each" "$1/.going.${each##*/}"
  done
)
remove() { # remove RUN-FOLDER…: prints the removed ones, including those of interrupted removals
  [ $# -gt 0 ] || return 0
  chosen=$(each_run_folder print_run_folder "$@") || return
  for folder; do printf '%s\n' "${folder%/*}"; done | sort -u | while IFS= read -r parent; do
    set_aside "$parent" "$chosen"
  done
  for folder; do printf '%s\n' "${folder%/*/*}"; done | sort -u | while IFS= read -r project; do
    finish_removals "$project"
    (collect_code "$project" all) < /dev/null > /dev/null 2>&1
  done || return
  printf '%s\n' "$chosen" | while IFS= read -r folder; do
    for left in "$folder" "${folder%/*}/.going/${folder##*/}" "${folder%/*}/.going.${folder##*/}"; do
      if [ -n "$folder" ] && [ -e "$left" ]; then echo "$folder cannot be removed" >&2 && exit 1; fi
    done
  done
}

holdings() { # holdings BASE: sizes, then all runs of all projects
  [ -d "$1/projects" ] && [ ! -h "$1/projects" ] || return 0
  can_measure && [ "$(find / -prune | wc -l)" -eq 1 ] || return 1 # without wc, no sweep would look as if it had ended
  echo "= sizes"
  du -k -d 3 "$1/projects" 2> /dev/null
  echo "= runs"
  runs=
  each_run_folder hold_one "$1"/projects/*/runs/* "$1"/projects/*/sweeps/*
  echo "= measures"
  printf '%s' "$runs" | measured
}
hold_one() { # hold_one FOLDER IS-RUN-FOLDER
  [ "$2" = yes ] || return 0
  if (ended "$1"); then ended=ended; else ended=going; fi
  echo "$ended $1"
  tasks_if_sweep "$1"
}

clear_out() { # clear_out BASE HOME RUN-FOLDER…: removes those, then all other files of yurt; prints what is left
  # HOME is empty, or the folder for environments in the home folder.
  base=$1 home=$2
  shift 2
  remove "$@" || return
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
