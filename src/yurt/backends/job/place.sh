# Places one run and has it started, and may be repeated as often as one likes. Before it stand gate.sh,
# receive.sh, and the functions look and launch of the kind of context.
# arguments: PROJECT RUN TREE KIND BASE SIZES NONCE START [OPTION]...
# START is empty, or says which start of a run this is, whose last one is over and left no successor.
# SIZES are those of what comes on standard input: of the code; then of each file, and its name.
# The answer is one line: need (and what code is known) | started WINNER | live JOB | submitted JOB
mask=$(umask)
umask 077
project=$1 id=$2 tree=$3 kind=$4 base=$5 sizes=$6 nonce=$7 start=$8
shift 8
run=$project/runs/$id
me=$nonce

started() { # somebody won already: a job, or the user who cancelled it
  [ -d "$run" ] && winner=$(cd "$run" && stands winner) || return
  if [ -n "$start" ] && [ "$winner" != cancelled ] && (cd "$run" && ! stands exit.json && ! stands "gen.$start") > /dev/null; then
    nonce=${winner%%.*} # all starts of a run have that of the first
  else
    echo "started $winner" && exit 0
  fi
}
make_folder() { # make_folder CODE [SIZE NAME]...: the run folder, whole or not at all
  aside=$project/incoming/$id.$nonce
  mkdir -p "$project/runs" "$aside" || exit 1
  shift
  while [ $# -gt 0 ]; do
    head -c "$1" > "$aside/$2"
    if [ $? -ne 0 ] || [ "$(wc -c < "$aside/$2")" -ne "$1" ]; then # cut off, or the disk is full and head said so
      rm -rf "$aside"
      exit 45
    fi
    shift 2
  done
  printf '%s\n' "$tree" > "$aside/code"
  ln "$aside/code" "$aside/.link" 2> /dev/null && rm "$aside/.link" || : > "$aside/no-links"
  mv -T "$aside" "$run" 2> /dev/null || {
    rm -rf "$aside"
    [ -d "$run" ] || { echo "$run could not be made" >&2 && exit 1; }
  }
}

started
if [ -n "$tree" ]; then
  if [ -n "$kind" ]; then
    receive_code "$project" "$kind" "$tree" "$base" "${sizes%% *}" || exit $?
  elif ! have_code "$project" "$tree"; then
    echo need
    known_code "$project"
    exit 0
  fi
fi
if [ -d "$run" ]; then
  look
elif [ -n "$start" ]; then
  echo "its folder is gone: $run" >&2
  exit 1
else
  make_folder $sizes
fi
started
cd "$run" || exit 1
launch "$@"
[ -z "$kind" ] || (trap '' HUP; collect_code "$project") < /dev/null > /dev/null 2>&1 &
