# The folders of a start: its working directory, and the folder of a task of a sweep.
link_all() { # link_all FROM TO: links everything in a folder
  mkdir -p "$2" && find "$1" -mindepth 1 -maxdepth 1 -exec sh -c 'ln -s "$@" "$0"' "$2" {} +
}
make_work_folder() { # the working directory: a copy of the code if it is small, else links to its read-only files
  [ ! -d "$run/@WORK@" ] || read_written "$run/@EXIT@" > /dev/null || return 0
  aside=$run/@WORK@.$$
  [ -z "$code" ] || [ -d "$code" ] || fail "the code of this run was removed: $code"
  insist fill_work_folder || fail "cannot create the working directory $run/@WORK@"
  if [ -d "$run/@WORK@" ]; then # run again by hand, after its end
    cp -an "$aside/." "$run/@WORK@/"
    rm -rf "$aside"
  else
    rename_folder "$aside" "$run/@WORK@" 2> /dev/null || [ -d "$run/@WORK@" ]
  fi
}
fill_work_folder() {
  [ ! -e "$aside" ] || rm -rf "$aside" || return
  if [ -z "$code" ]; then
    mkdir "$aside"
    return
  fi
  entries='' bytes=''
  { read -r entries bytes; } 2> /dev/null < "${code%/*}/.${code##*/}.folders"
  few=200 most=10000000
  [ -z "$sweep" ] || few=50 most=2000000 # for each task
  # Root can write to read-only files, which other runs use too.
  if [ -n "$copy" ] || code_is_small || { few=100000 most=200000000 && code_is_small && [ "$(id -u)" -eq 0 ]; }; then
    copy_folder '' && make_writable && stamp_copied
  else
    link_code
  fi
}
code_is_small() {
  [ "${entries:-1000000}" -le "$few" ] && [ "${bytes:-1000000000}" -le "$most" ]
}
copy_folder() { # copy_folder FOLDER: copies a folder of the code
  mkdir -p "$aside/$1" && cp -a "$code/$1/." "$aside/$1/" && chmod -R u+w "$aside/$1"
}
stamp_copied() { # what your command writes is newer than this stamp, however coarse the times of this disk are
  make_files "$run/@COPIED@" || return
  for _try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    touch "$run/@COPIED@.now"
    [ -z "$(find "$run/@COPIED@.now" -newer "$run/@COPIED@")" ] || break
    sleep 0.01 2> /dev/null || sleep 1
    [ "$_try" -lt 10 ] || sleep 0.2 2> /dev/null
  done
  rm -f "$run/@COPIED@.now"
}
link_code() { # few files: all folders are real. Many: those listed with the code, and those that the user writes to
  few=200
  [ -z "$sweep" ] || few=50
  [ "${entries:-1000}" -gt "$few" ] || { cp -rsT --no-preserve=mode "$code" "$aside" 2> /dev/null && make_writable && return; }
  rm -rf "$aside"
  link_all "$code" "$aside" && make_real "$subfolder" || return
  while IFS= read -r folder; do make_real "$folder" || return; done << end
$(tail -n +2 "${code%/*}/.${code##*/}.folders" 2> /dev/null)
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
make_writable() { # the folders in `writable`, one per line: copies
  some=
  while IFS= read -r folder; do
    [ -n "$folder" ] || continue
    make_real "$folder" || return
    if [ -d "$code/$folder" ]; then
      rm -rf "${aside:?}/$folder" && copy_folder "$folder" || return
      some=yes
    else
      mkdir -p "$aside/$folder" || return
    fi
  done << end
$writable
end
  [ -z "$some" ] || stamp_copied
}
make_task_folder() { # the folder of a task, made when it starts; process ids may repeat across nodes
  own=$(uname -n).$$
  [ -e "$run/@SET@" ] && [ -e "$run/@PARAMS@" ] && return
  mkdir -p "$run" && cd "$run" || return
  if [ ! -s "$sweep/@OFFSETS@" ] || [ ! -s "$sweep/@SETS@" ]; then return 0; fi # check_parts ends the task
  [ ! -e "$sweep/@NO_LINKS@" ] || make_files @NO_LINKS@ || return
  read -r at size << end
$(tail -c "+$((YURT_TASK_INDEX * 22 + 1))" "$sweep/@OFFSETS@" | head -c 21 | sed -e 's/^0*\([0-9]\)/\1/' -e 's/ 0*\([0-9]\)/ \1/g')
end
  [ "$(wc -c < "$sweep/@SETS@")" -ge $((at + size)) ] || return 0 # it is damaged, as above
  tail -c "+$((at + 1))" "$sweep/@SETS@" | head -c "$size" > "@SET@.$own" && [ "$(wc -c < "@SET@.$own")" -eq "$size" ] || return
  head -n 1 "@SET@.$own" | cut -c 2- > "@PARAMS@.$own" && mv "@PARAMS@.$own" @PARAMS@ && mv "@SET@.$own" @SET@
}
