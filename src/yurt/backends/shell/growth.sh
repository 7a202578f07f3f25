# Sends the new bytes of files that grow. Needs nothing but find, awk and tail.
# arguments: NONCE KINDS OVERLAP ROOTS TABLE
# KINDS: some of the words events, metrics, mlflow and usage.
# ROOTS: a line "DEPTH FOLDER" for each folder to search; 0: however deep.
# TABLE: lines "R FOLDER" and "S FOLDER" for runs and sweeps, "P SINCE UNTIL FOLDER" for folders in which runs write that
# are not theirs alone, "T SIZE SEEN PATH" for each file that the caller has, with the size of its copy.
# Output, for each file that has changed: a line "START SEEN PATH", the bytes from START on, a line of NONCE.
[ "$(find / -prune)" = / ] || exit 1 # find does not work here; otherwise, files may just have been deleted
nonce=$1 kinds=" $2 " overlap=$3 roots=$4 table=$5
look() { # look DEPTH: lists files in the folders of this depth: F SEEN SIZE PATH
  depth=$1
  set --
  while read -r each folder; do [ "$each" != "$depth" ] || set -- "$@" "$folder"; done << end
$roots
end
  [ $# -gt 0 ] || return 0
  [ "$depth" -eq 0 ] || set -- "$@" -maxdepth "$depth"
  set -- "$@" -type d \( -name .git -o -name __pycache__ -o -name node_modules -o -name site-packages -o -name wandb \) -prune
  set -- "$@" -o -type f \( -name @EXIT@ -o -path '*/@EXIT@.d/text'
  case $kinds in *' metrics '*) set -- "$@" -o -name 'metrics*.jsonl' ;; esac
  case $kinds in *' usage '*) set -- "$@" -o -name @USAGE@ ;; esac
  case $kinds in *' events '*) set -- "$@" -o -name '*tfevents*' ;; esac
  case $kinds in *' mlflow '*) set -- "$@" -o -path '*/@OUTPUTS@/mlruns/*' ! -path '*/artifacts/*' ;; esac
  find "$@" \) -printf 'F %s:%T@ %s %p\n' 2> /dev/null
}
{
  printf '%s\n' "$table"
  look 0
  look 1
  look 2
} | LC_ALL=C awk -v overlap="$overlap" '
  function above(path) { sub("/[^/]*$", "", path); return path }
  function of_run(folder) { return folder in run || (folder ~ /\/@TASKS@\/[0-9]+$/ && above(above(folder)) in sweep) }
  function elsewhere(path, at) { # whether another run wrote a file of a folder that is not of this run alone
    for (at in since) if (index(path, at "/") == 1) {
      if (!match(path, /tfevents\.[0-9]+/)) return 1
      begun = substr(path, RSTART + 9, RLENGTH - 9) + 0
      if (begun < since[at] || begun > until[at]) return 1
    }
    return 0
  }
  $1 == "R" { run[substr($0, 3)] = 1; next }
  $1 == "S" { sweep[substr($0, 3)] = 1; next }
  $1 == "P" { at = substr($0, length($1 $2 $3) + 4); since[at] = $2 + 0; until[at] = $3 + 0; next }
  $1 == "T" { at = substr($0, length($1 $2 $3) + 4); size[at] = $2; seen[at] = $3; next }
  $1 == "F" {
    path = substr($0, length($1 $2 $3) + 4)
    if (path in done || ((path in seen) && seen[path] == $2)) next
    done[path] = 1
    name = path
    sub(".*/", "", name)
    if (name ~ /^metrics(\.[0-9]+)?\.jsonl$/ || name == "@EXIT@" || name == "@USAGE@") { if (!of_run(above(path))) next }
    else if (path ~ /\/@EXIT@\.d\/text$/) { if (!of_run(above(above(path)))) next }
    else if (name ~ /^metrics.*\.jsonl$/ && name !~ /tfevents/) next
    else if (elsewhere(path)) next
    start = (path in size) && $3 + 0 >= size[path] + 0 ? size[path] - overlap : 0
    if (start < 0) start = 0
    printf "%.0f %s %s\n", start, $2, path
  }
  END { print "." }' | {
  while read -r start seen path; do
    [ "$start" != . ] || exit 0 # the list is complete
    printf '%s %s %s\n' "$start" "$seen" "$path"
    [ ! -r "$path" ] || tail -c "+$((start + 1))" "$path" || exit 1
    printf '\n%s\n' "$nonce"
  done
  exit 1
}
