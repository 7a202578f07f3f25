# What is looked at and removed by `yurt prune`. Before it stand gate.sh, measure.sh and receive.sh.
# A run folder is renamed to runs/.going.ID and then removed: it is there or not there, and whoever comes next goes on.

yurts() { # yurts RUN-FOLDER: whether it is the folder of the run it is named after, and no link to somewhere else
  case $1 in */projects/*/runs/*) [ -d "$1" ] && [ ! -h "$1" ] && [ ! -h "${1%/*}" ] || return 1 ;; *) return 1 ;; esac
  if [ -e "$1/run.json" ]; then
    grep -q -F "\"id\":\"${1##*/}\"" "$1/run.json"
  else # cancelled before it arrived
    [ "$(cd "$1" && stands winner)" = cancelled ]
  fi
}

survey() { # survey RUN-FOLDER…: sizes, then a line for each
  echo "= sizes"
  [ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 du -sk 2> /dev/null
  echo "= runs"
  for folder; do
    if yurts "$folder"; then
      echo "there $(measure "$folder/outputs") $(measure "$folder/checkpoints")"
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

remove() { # remove RUN-FOLDER…: says which are gone; what an earlier one left half-done goes too
  last=
  for folder; do
    project=${folder%/runs/*} aside=${folder%/*}/.going.${folder##*/}
    if yurts "$folder"; then
      [ ! -e "$aside" ] || vanish "$aside"
      mv -T "$folder" "$aside"
    fi
    [ "$project" = "$last" ] || projects="$projects${projects:+$newline}$project"
    last=$project
  done
  [ -n "$projects" ] || return 0
  printf '%s\n' "$projects" | sort -u | while IFS= read -r project; do
    for aside in "$project"/runs/.going.*; do
      vanish "$aside" && echo "gone ${aside##*/.going.}"
    done
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
  for folder in "$1"/projects/*/runs/*; do
    yurts "$folder" || continue
    ended=going
    if [ -e "$folder/exit.json" ] || [ -e "$folder/exit.json.d" ]; then ended=ended; fi
    if [ "$(cd "$folder" && stands winner)" = cancelled ]; then ended=ended; fi
    echo "$ended $(measure "$folder/outputs") $(measure "$folder/checkpoints") $folder"
  done
}

clear_out() { # clear_out BASE RUN-FOLDER…: those, then whatever yurt has beside them; says what is left
  base=$1
  shift
  remove "$@"
  for project in "$base"/projects/*; do
    [ -d "$project" ] && [ ! -h "$project" ] || continue
    for aside in "$project"/runs/.going.*; do
      vanish "$aside" && echo "gone ${aside##*/.going.}"
    done
    # While there is a run its code is needed.
    [ ! -d "$project/runs" ] || rmdir "$project/runs" 2> /dev/null || { echo "left $project/runs" && continue; }
    # What sweeps left is not looked into yet: it stays, with the code it needs.
    [ ! -d "$project/sweeps" ] || rmdir "$project/sweeps" 2> /dev/null || { echo "left $project/sweeps" && continue; }
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
