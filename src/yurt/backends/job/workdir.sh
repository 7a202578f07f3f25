# The folders of a start: its working directory, and the folder of a task of a sweep.
link_all() { # link_all FROM TO: links everything in a folder
  mkdir -p "$2" && find "$1" -mindepth 1 -maxdepth 1 -exec sh -c 'ln -s "$@" "$0"' "$2" {} +
}
make_work_folder() { # the working directory: real folders with links to the read-only files of the code; or a copy
  [ ! -d "$run/@WORK@" ] || read_written "$run/@EXIT@" > /dev/null || return 0
  aside=$run/@WORK@.$$
  [ -z "$code" ] || [ -d "$code" ] || fail "the code of this run was removed: $code"
  insist fill_work_folder || fail "cannot create the working directory $run/@WORK@"
  if [ -d "$run/@WORK@" ]; then # run again by hand, after its end
    cp -an "$aside/." "$run/@WORK@/"
    rm -rf "$aside"
  else
    mv -T "$aside" "$run/@WORK@" 2> /dev/null || [ -d "$run/@WORK@" ]
  fi
}
fill_work_folder() {
  rm -rf "$aside" || return
  if [ -z "$code" ]; then
    mkdir "$aside"
  elif [ -n "$copy" ]; then
    mkdir "$aside" && cp -a "$code/." "$aside/" && chmod -R u+w "$aside" && make_files "$run/@COPIED@"
  else
    link_code
  fi
}
link_code() { # few files: all folders are real. Many: those listed with the code, and those that the user writes to
  entries='' listed=''
  { read -r entries && listed=$(cat); } 2> /dev/null < "${code%/*}/.${code##*/}.folders"
  few=200
  [ -z "$sweep" ] || few=50 # for each task
  [ "${entries:-1000}" -gt "$few" ] || { cp -rsT --no-preserve=mode "$code" "$aside" 2> /dev/null && make_writable && return; }
  rm -rf "$aside"
  link_all "$code" "$aside" && make_real "$subfolder" || return
  while IFS= read -r folder; do make_real "$folder" || return; done << end
$listed
end
  make_writable
}
make_real() { # make_real FOLDER: a real folder with links, and so are those above it
  below='' rest=$1
  while [ -n "$rest" ]; do
    below=$below/${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    [ -d "$code$below" ] || return 0
    [ ! -h "$aside$below" ] || { rm -f "$aside$below" && link_all "$code$below" "$aside$below"; } || return
  done
}
make_writable() { # the folders in `writable`, one per line: real, with all folders below them
  while IFS= read -r folder; do
    [ -n "$folder" ] || continue
    make_real "$folder" || return
    if [ -d "$code/$folder" ]; then
      rm -rf "${aside:?}/$folder" && cp -rsT --no-preserve=mode "$code/$folder" "$aside/$folder" || return
    else
      mkdir -p "$aside/$folder" || return
    fi
  done << end
$writable
end
}
make_task_folder() { # the folder of a task, made when it starts; process ids may repeat across nodes
  own=$(uname -n).$$
  [ -e "$run/@SET@" ] && [ -e "$run/@PARAMS@" ] && return
  mkdir -p "$run" && cd "$run" || return
  [ ! -e "$sweep/@NO_LINKS@" ] || make_files @NO_LINKS@ || return
  read -r at size << end
$(tail -c "+$((YURT_TASK_INDEX * 22 + 1))" "$sweep/@OFFSETS@" | head -c 21 | sed 's/\(^\| \)0*\([0-9]\)/\1\2/g')
end
  tail -c "+$((at + 1))" "$sweep/@SETS@" | head -c "$size" > "@SET@.$own" && [ "$(wc -c < "@SET@.$own")" -eq "$size" ] || return
  head -n 1 "@SET@.$own" | cut -c 2- > "@PARAMS@.$own" && mv "@PARAMS@.$own" @PARAMS@ && mv "@SET@.$own" @SET@
}
