# The folders of a start: its working directory, and the folder of a task of a sweep.
link_all() { # link_all FROM TO: links everything in a folder
  mkdir -p "$2" && find "$1" -mindepth 1 -maxdepth 1 -exec sh -c 'ln -s "$@" "$0"' "$2" {} +
}
make_work_folder() { # the working directory: links into the shared, read-only code; or a copy of it
  [ -d "$run/@WORK@" ] && return
  aside=$run/@WORK@.$$
  rm -rf "$aside"
  if [ -z "$code" ]; then
    mkdir "$aside"
  elif [ ! -d "$code" ]; then
    fail "the code of this run was removed: $code"
  elif [ -n "$copy" ]; then
    mkdir "$aside" && cp -a "$code/." "$aside/" && chmod -R u+w "$aside"
  else
    link_all "$code" "$aside"
    below='' rest=$subfolder
    while [ -n "$rest" ]; do # the command's start folder must be a real folder too
      below=$below/${rest%%/*}
      case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
      rm -f "$aside$below" && link_all "$code$below" "$aside$below"
    done
  fi || fail "cannot create the working directory $run/@WORK@"
  mv "$aside" "$run/@WORK@" 2> /dev/null || [ -d "$run/@WORK@" ]
}
make_task_folder() { # the folder of a task, made when it starts; process ids may repeat across nodes
  own=$(uname -n).$$
  [ -e "$run/@SET@" ] && [ -e "$run/@PARAMS@" ] && return
  mkdir -p "$run" && cd "$run" || exit 75
  [ ! -e "$sweep/@NO_LINKS@" ] || : > @NO_LINKS@
  read -r at size << end
$(tail -c "+$((YURT_TASK_INDEX * 22 + 1))" "$sweep/@OFFSETS@" | head -c 21 | sed 's/\(^\| \)0*\([0-9]\)/\1\2/g')
end
  tail -c "+$((at + 1))" "$sweep/@SETS@" | head -c "$size" > "@SET@.$own" && [ "$(wc -c < "@SET@.$own")" -eq "$size" ] || exit 75
  head -n 1 "@SET@.$own" | cut -c 2- > "@PARAMS@.$own" && mv "@PARAMS@.$own" @PARAMS@ && mv "@SET@.$own" @SET@ || exit 75
}
