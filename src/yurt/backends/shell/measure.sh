# Measures the results of runs: outputs, checkpoints, and what the run wrote into its working directory, which also has
# links to the code, or a copy of it, and caches. Only definitions: the script that needs them follows, and calls
# can_measure first.

can_measure() { # whether find, cat and awk print: without output, each folder would look empty, and prune would remove it
  top=$(find / -prune) || return 0 # a find that fails is noticed for each folder
  [ "$(printf '%s\n' "$top" | cat | LC_ALL=C awk '{ print }')" = / ] ||
    { echo "find, cat or awk does not work on this host" >&2 && return 1; }
}

# find_all FORMAT FOLDER...: prints each file. With `seconds` set: fails after so long.
find_all() {
  format=$1
  shift
  ${seconds:+timeout "$seconds"} find "$@" ! -type d -printf "$format"
}
# find_written FORMAT FOLDER...: prints the files in working directories that runs wrote. With `newer` set: only files that
# changed after that one.
find_written() {
  format=$1
  shift
  ${seconds:+timeout "$seconds"} find "$@" -type d \( -name __pycache__ -o -name .ipynb_checkpoints -o -name .pytest_cache \
    -o -name .mypy_cache -o -name .ruff_cache \) -prune \
    -o ! -type d ! \( -type l -lname '*/projects/*/snapshots/*' \) ${newer:+-cnewer "$newer"} -printf "$format"
}
# not_results RUN-FOLDER: prints the other files in its working directory, each followed by NUL; then those that have the
# same name as a file in its outputs, or are in a folder of that name, as ./NAME. With `only_links` set: only links to
# the code.
not_results() (
  cd "$1" 2> /dev/null && [ -d @WORK@ ] || exit 0
  [ "$(find . -prune)" = . ] || exit 1 # find does not work here; otherwise, files may just have been deleted
  [ -z "${only_links-}" ] || { find @WORK@ -type l -lname '*/projects/*/snapshots/*' -print0 && exit; }
  find @WORK@ -type d \( -name __pycache__ -o -name .ipynb_checkpoints -o -name .pytest_cache -o -name .mypy_cache \
    -o -name .ruff_cache \) -prune -print0 -o -type l -lname '*/projects/*/snapshots/*' -print0
  newer=
  if [ -e @COPIED@ ]; then newer=@COPIED@ && find @WORK@ ! -type d ! -cnewer @COPIED@ -print0; fi
  [ ! -d @OUTPUTS@ ] || find_written './%P\0' @WORK@ |
    xargs -0 -r sh -c 'for each; do
      at=$each
      until [ "$at" = . ] || [ -e "@OUTPUTS@/$at" ] || [ -h "@OUTPUTS@/$at" ]; do at=${at%/*}; done
      if [ "$at" = "$each" ] || [ -h "@OUTPUTS@/$at" ] || [ ! -d "@OUTPUTS@/$at" ]; then printf "%s\0" "$each"; fi
    done' sh
)
# measure FOLDER: prints FILES:BYTES:NEWEST; 0:0:0 if it is empty, ? if it cannot be read. Fails without a result.
measure() {
  [ -d "$1" ] || { echo 0:0:0 && return; }
  case $1 in */@WORK@) finder=find_written ;; *) finder=find_all ;; esac
  { $finder '%s %T@\n' "$1" || echo "? ?"; } 2> /dev/null |
    LC_ALL=C awk '$1 == "?" { hidden = 1 }
      { files++; bytes += $1; if ($2 + 0 > newest + 0) newest = $2 }
      END { if (hidden) print "?"; else printf "%.0f:%.0f:%s\n", files, bytes, files ? newest : 0 }'
}
# measure_work RUN-FOLDER: the same for its working directory.
measure_work() {
  newer=
  [ ! -e "$1/@COPIED@" ] || newer=$1/@COPIED@
  measure "$1/@WORK@" || return
  newer=
}
# measure_all: prints a line MEASURE FOLDER for each folder on standard input that is not empty. Uses few processes,
# unless something cannot be read. Fails if one has no measure: no line means that it is empty.
measure_all() {
  folders=$(cat) || return
  newer=''
  set --
  while IFS= read -r folder; do
    case $folder in
      */@WORK@)
        if [ -e "${folder%/*}/@COPIED@" ]; then
          found=$(measure_work "${folder%/*}") || return
          echo "$found $folder" && continue
        fi ;;
      '') continue ;;
    esac
    set -- "$@" "$folder"
  done << end
$folders
end
  measure_part all "$@" && measure_part written "$@"
}
measure_part() { # measure_part all|written FOLDER…: measures the working directories among them, or the others
  part=$1
  shift
  for folder; do
    shift
    case $part,$folder in
      written,*/@WORK@ | all,*/@OUTPUTS@ | all,*/@CHECKPOINTS@) set -- "$@" "$folder" ;;
      *) continue ;;
    esac
  done
  finder=find_$part
  [ $# -eq 0 ] || measure_some "$@"
}
measure_some() {
  if [ $# -eq 1 ]; then # without its name on each line: a third less work
    found=$(measure "$1") || return
    [ "$found" != '?' ] || found=$(measure "$1") || return # a job that ends may just have deleted something in it
    case $found in 0:*) ;; *) echo "$found $1" ;; esac
    return
  fi
  { $finder '%s %T@ %H\n' "$@" || echo "? ?"; } 2> /dev/null | LC_ALL=C awk '
      $1 == "?" { hidden = 1 }
      {
        at = index($0, " /"); folder = substr($0, at + 1)
        files[folder]++; bytes[folder] += $1; if ($2 + 0 > newest[folder] + 0) newest[folder] = $2
      }
      END {
        if (hidden) exit 1
        for (folder in files) printf "%.0f:%.0f:%s %s\n", files[folder], bytes[folder], newest[folder], folder
      }' || for each; do found=$(measure "$each") && echo "$found $each" || return; done
}
