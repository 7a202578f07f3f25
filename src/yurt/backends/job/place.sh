# Makes a run folder and submits its job; safe to retry. Needs gate.sh, unchanged.sh, receive.sh, env_state.sh and the
# functions find_job and launch of the kind of context, and job_rest, before it.
# arguments: PROJECT FOLDER TREE KIND BASE SIZES NONCE START SHARES ENV [OPTION]...
# START is empty, or the number of a later start, if the last one finished without a successor. It becomes 1 if a job
# has passed the gate, but has not started anything.
# For a sweep: the tasks to submit, in groups START:OFFSET:TASKS, TASKS as in sbatch --array.
# SIZES describes standard input: the size of the code, then size and name of each file. Of @JOB@, it contains the
# head; the function job_rest prints the rest. Files with = before the size come before the others, and not on standard
# input: the function yurt_file prints them, which saves a program for each.
# The shares of the run's secrets come before that: SHARES is the size of the folder's share and of the
# environment's; empty if there are none.
# ENV is the folder of the environment that the run needs, after `check:`, after `pack:` if it must be packed, or after
# `hold:` if its build has just begun.
# Output is one line: need (then the trees on the site) | started WINNER | live JOB | submitted JOB | need-env CHANGES
# A line `building` before it: the job is held until the environment is built.
# Before it may be lines of have_code: changed COUNT FILE.
# For a sweep, a line for each submitted group: submitted JOB START:OFFSET:TASKS
mask=$(umask)
umask 077
project=$1 id=${2##*/} folder=$2 tree=$3 kind=$4 base=$5 sizes=$6 nonce=$7 start=$8 shares=$9 secret=@SECRET@$7
shift 9
env=${1#*:} env_mode=${1%%:*} hold=
shift
run=$project/$folder
me=$nonce aside='' checking=''

receive_shares() { # receive_shares SIZES: the folder's share and the job's; never both in files, never in arguments
  for_folder=$(head -c "$1") for_job=$(head -c "$2") # without the final newline
  [ "${#for_folder}" -eq $(($1 - 1)) ] && [ "${#for_job}" -eq $(($2 - 1)) ] || exit 45
}
place_shares() { # place_shares NAME SHARE…: exports the job's shares to what is launched after this
  printf '%s\n' "$for_folder" > "$secret.aside"
  [ "$(wc -c < "$secret.aside")" -eq $((${#for_folder} + 1)) ] && mv -f "$secret.aside" "$secret" || exit 1
  export "YURT_SHARE=$secret"
  while [ $# -gt 0 ]; do
    unset "$1" # if the site sets this variable, the scheduler would record it
    export "YURT_SHARE_$1=$2"
    shift 2
  done
}
started() { # reports a closed gate: a job has won, or the user has cancelled the run
  case $start in *:*) if [ -e "$run/@CANCEL@" ]; then echo "started cancelled" && exit 0; fi ;; esac
  [ -e "$run/@WINNER@" ] || [ -e "$run/@WINNER@.d" ] || return 1 # no process for an open gate
  winner=$(cd "$run" && read_written @WINNER@) || return
  # Without a record of the start, the job that won may be lost: whether it still comes is decided by the first to write that.
  if [ "$winner" != cancelled ] && (cd "$run" && ! read_written @EXIT@ && ! read_written "@START@${start:-1}") > /dev/null; then
    nonce=${winner%%.*} start=${start:-1} # all starts of a run have the nonce of the first
  else
    echo "started $winner" && exit 0
  fi
}
list_of() { # list_of FOLDER: the list of a folder's files, next to it
  printf '%s\n' "${1%/*}/list-${1##*/}"
}
same_modules() { # same_modules FOLDER: whether its files are as in its list. Python adds __pycache__ when a run imports one
  left_out=__pycache__
  is_unchanged "$1" "$(list_of "$1")"
  set -- $?
  left_out=
  return "$1"
}
make_module() { # make_module FOLDER SIZE: the modules for Python in a run, complete or not at all
  if same_modules "$1" || ! command -v gzip > /dev/null; then return 0; fi
  purged=
  # Without a list, it may be one that another submission is making.
  [ ! -d "$1" ] || { [ ! -e "$(list_of "$1")" ] && [ -z "$(find "$1" -maxdepth 0 -mmin +10)" ]; } || purged=yes
  find "${1%/*}" -mindepth 1 -maxdepth 1 -name '*.*' -mmin +1440 -exec rm -rf {} + 2> /dev/null # left by a killed upload
  if unpack "$1.$nonce" "$2"; then
    [ -z "$purged" ] || mv -T "$1" "$1.$nonce.old" 2> /dev/null
    if mv -T "$1.$nonce" "$1" 2> /dev/null; then
      save_list "$1" "$(list_of "$1")"
    else # another submission was first
      [ -d "$1" ] || echo "cannot create $1" >&2
    fi
  else
    rm -rf "$aside"
  fi
  rm -rf "$1.$nonce" "$1.$nonce.old"
  [ -d "$1" ] || exit 45
}
unpack() ( # unpack FOLDER SIZE: each file follows a line with its size and path
  mkdir -p "$1" && cd "$1" && head -c "$2" > parcel && [ "$(wc -c < parcel)" -eq "$2" ] && gzip -dc < parcel > all || exit 1
  while read -r size name; do
    mkdir -p "./${name%/*}" && head -c "$size" > "$name" && [ "$(wc -c < "$name")" -eq "$size" ] || exit 1
    dd if=/dev/null of="$name" conv=notrunc,fsync 2> /dev/null # flush: it is never written again
  done < all
  rm parcel all
)
incomplete() {
  rm -rf "$aside"
  exit 45
}
write_file() { # write_file SIZE NAME
  case $1 in =*) yurt_file "$2" ;; *) head -c "$1" ;; esac
}
wait_for_code() { # exits, and leaves nothing behind, if the site does not have the code
  [ -z "$checking" ] || wait "$checking" || {
    [ -z "$aside" ] || rm -rf "$aside"
    echo need
    known_code "$project"
    exit 0
  }
  checking=
}
make_folder() { # make_folder CODE [SIZE NAME]...: the run folder, complete or not at all
  aside=$project/incoming/$id.$nonce
  mkdir -p "${run%/*}" "$aside" || exit 1
  names='' total=0
  shift
  while [ $# -gt 0 ]; do
    case $2 in node/*) make_module "${project%/projects/*}/$2" "$1" && break ;; esac # comes last: it may stay unread
    write_file "$1" "$2" > "$aside/$2" || incomplete # the disk is full
    case $1 in =*) ;; *) names="$names $2" total=$((total + $1)) ;; esac
    shift 2
  done
  if [ -n "$names" ]; then
    # shellcheck disable=SC2046,SC2086 # names and sizes are words
    set -- $(cd "$aside" && wc -c $names) # one call: the total is last
    while [ $# -gt 2 ]; do shift; done
    [ "$1" -eq "$total" ] || incomplete # interrupted
  fi
  job_rest >> "$aside/@JOB@" || incomplete
  printf '%s\n' "$tree" > "$aside/@CODE@" || incomplete
  link=$project/incoming/.link # whether this disk has hard links; stays for a day or longer
  [ -e "$link" ] || ln "$aside/@CODE@" "$link" 2> /dev/null || [ -e "$link" ] || : > "$aside/@NO_LINKS@"
  wait_for_code
  mv -T "$aside" "$run" 2> /dev/null || {
    fill_folder
    rm -rf "$aside"
    [ -d "$run" ] || { echo "cannot create $run" >&2 && exit 1; }
  }
}
is_complete() { # is_complete [SIZE NAME]...
  while [ $# -gt 0 ]; do
    case $2 in
      node/*) same_modules "${project%/projects/*}/$2" || return ;;
      *) [ -e "$run/$2" ] || return ;;
    esac
    shift 2
  done
}
mend_folder() { # mend_folder CODE [SIZE NAME]...: writes the files of the run folder again that a purge removed
  shift
  if is_complete "$@"; then return; fi
  while [ $# -gt 0 ]; do
    case $2 in node/*) make_module "${project%/projects/*}/$2" "$1" && break ;; esac
    if [ -e "$run/$2" ]; then
      write_file "$1" "$2" > /dev/null
    else
      write_file "$1" "$2" > "$run/$2.$nonce" && [ "$(wc -c < "$run/$2.$nonce")" -eq "${1#=}" ] || exit 45
      if [ "$2" = @JOB@ ]; then job_rest >> "$run/$2.$nonce" || exit 45; fi
      mv -f "$run/$2.$nonce" "$run/$2" || exit 45
    fi
    shift 2
  done
}
fill_folder() { # a task of the sweep was cancelled before the upload: add the files, job.sh last
  case $start in *:*) [ -d "$run/@TASKS@" ] && [ ! -e "$run/@JOB@" ] || return ;; *) return ;; esac
  for each in "$aside"/*; do [ "${each##*/}" = @JOB@ ] || mv -f "$each" "$run/" || return; done
  mv -f "$aside/@JOB@" "$run/"
}

# shellcheck disable=SC2086 # two numbers
[ -z "$shares" ] || receive_shares $shares
started
if [ "$env_mode" = hold ]; then
  hold=yes
elif [ -n "$env" ]; then
  touch -c "$env/used" 2> /dev/null # before the look: a removal that has just renamed the folder puts it back
  if ! { env_is_whole "$env" && { [ "$env_mode" != pack ] || env_is_packed "$env"; }; }; then
    if ! env_is_building "$env"; then
      changes=$(env_changes "$yurt_env_path")
      echo "need-env ${changes:-$(env_edits "$yurt_env_path")}" && exit 0
    fi
    hold=yes
  fi
fi
own_hold='' sync=''
for each; do
  case $each in --hold) own_hold=yes ;; --comment=home_sync | '--comment=home_sync '*) sync=yes ;; esac
done
if [ -n "$own_hold" ] && [ -z "$sync" ]; then hold=; fi # the user releases it; then it waits for its environment itself
[ -z "$hold" ] || echo building
if [ -n "$tree" ]; then
  if [ -n "$kind" ]; then
    receive_code "$project" "$kind" "$tree" "$base" "${sizes%% *}" || exit $?
  else
    have_code "$project" "$tree" & # reads all names of the code, while this shell writes the files of the run
    checking=$!
  fi
fi
if [ -e "$run/@JOB@" ]; then
  wait_for_code
  find_job
  # shellcheck disable=SC2086 # sizes and names, which are words
  mend_folder $sizes
elif [ -n "$start" ] && case $start in 1:*) false ;; esac; then
  wait_for_code
  echo "run folder not found: $run" >&2
  exit 1
else
  # shellcheck disable=SC2086 # sizes and names, which are words
  make_folder $sizes
fi
# From here on its run folder keeps the code. A removal may have been faster.
[ -z "$tree" ] || [ -d "$project/snapshots/$tree" ] || { echo need && known_code "$project" && exit 0; }
started
cd "$run" || exit 1
# shellcheck disable=SC2086 # names and shares, which are words
[ -z "$shares" ] || place_shares $for_job
launch "$@"
[ -z "$kind" ] || (trap '' HUP; collect_code "$project") < /dev/null > /dev/null 2>&1 &
