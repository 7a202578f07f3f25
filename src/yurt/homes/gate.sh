# Jobs that wait for a home sync. A sync lists them when it starts, and releases those when it has ended well. So no
# clocks are compared: a job that is submitted during a sync waits for the next one. Only definitions; POSIX sh.
# A job waits if it is this user's, pending and held by the user, and its comment is `home_sync`, or begins with it and
# a space. A good sync changes the word to `home_synced`, and then releases the job, unless it also waits for its
# environment: the builder of that removes wait.JOB, and then reads the comment. So the later of the two releases it.
home_jobs() { # prints JOB|SUBMITTED|REASON|PRIORITY|COMMENT of the pending jobs of this user
  (export LC_ALL=C TZ=UTC && queue -t PENDING -u "$(id -un)" -o '%F|%V|%r|%Q|%k')
}
home_is_held() { # home_is_held REASON PRIORITY: whether the user holds a job; one that depends on another has that reason
  case $1 in *Admin*) return 1 ;; esac
  [ "$1" = JobHeldUser ] || [ "$2" = 0 ]
}
home_waiting() { # prints JOB SUBMITTED for each job that waits for a sync; an array is one job; fails if it cannot know
  command -v squeue > /dev/null 2>&1 || return 0
  home_finish
  home_rows=$(home_jobs 2>&1) || { # other lines have no comment
    case $home_rows in *'not establish a configuration source'*) return 0 ;; esac # Slurm's commands, and no cluster: no jobs
    printf '%s\n' "$home_rows" >&2 && return 1
  }
  printf '%s\n' "$home_rows" | while IFS='|' read -r job submitted reason priority comment; do
    case $comment in home_sync | 'home_sync '*) ;; *) continue ;; esac
    if home_is_held "$reason" "$priority"; then echo "$job $submitted"; fi
  done | sort -u
}
home_release() { # home_release FILE: releases the jobs that home_waiting listed, and removes FILE
  [ -e "$1" ] || return 0
  command -v squeue > /dev/null 2>&1 || { rm -f "$1" && return; }
  home_good=${1%/*}/synced.${1##*.}
  [ "$1" = "$home_good" ] || mv -f "$1" "$home_good" || return # from here on, the next sync does it if this one is killed
  [ -s "$home_good" ] || { rm -f "$home_good" && return; }
  if [ "$(cat "$home_good")" = '?' ]; then echo unlisted && rm -f "$home_good" && return; fi # see list_waiting
  home_queue=$(home_jobs) || { sed 's/^\([^ ]*\).*/left \1 the queue cannot be read/' "$home_good" && return 1; }
  home_failed=
  while read -r job submitted; do
    home_release_one "$job" "$submitted" || home_failed=yes
  done < "$home_good"
  [ -n "$home_failed" ] || rm -f "$home_good"
}
home_release_one() { # home_release_one JOB SUBMITTED: prints what happened; fails if the next sync has to repeat it
  home_row=$(printf '%s\n' "$home_queue" | awk -F'|' -v job="$1" -v submitted="$2" '
    $1 == job && $2 == submitted && (row == "" || $3 == "JobHeldUser") { row = $0 } # a part of an array may be released
    END { print row }') || { echo "left $1 the queue cannot be read" && return 1; }
  [ -n "$home_row" ] || { echo "left $1 it is no longer in the queue" && return; }
  IFS='|' read -r _job _submitted reason priority comment << end
$home_row
end
  home_is_held "$reason" "$priority" || { echo "left $1 it is not held" && return; }
  case $comment in
    home_sync | 'home_sync '*)
      home_reply=$(timeout 60 scontrol update "jobid=$1" "comment=home_synced${comment#home_sync}" 2>&1 < /dev/null) || { echo "left $1 $home_reply" && return 1; } ;;
    home_synced | 'home_synced '*) ;; # a sync was killed before it released it, or it waits for its environment
    *) echo "left $1 it no longer waits for a sync" && return ;;
  esac
  home_folder=$(queue -j "$1" -o %Z) || { echo "left $1 its folder cannot be read" && return 1; }
  if home_needs_env "$1"; then echo "left $1 it waits for its environment" && return; fi
  home_reply=$(timeout 60 scontrol release "$1" 2>&1 < /dev/null) || { echo "left $1 $home_reply" && return 1; }
  echo "released $1"
}
home_needs_env() { # home_needs_env JOB: whether a job of yurt in home_folder is held until its environment is built
  home_folder=${home_folder%%"
"*}
  IFS= read -r home_env 2> /dev/null < "$home_folder/@ENV_WAIT@" && [ -e "$home_env/wait.$1" ]
}
home_finish() { # releases the jobs of good syncs that were killed before they did it, and forgets failed syncs
  for home_each in "${UNISON:-$HOME/.unison}"/yurt/synced.*; do
    [ ! -e "$home_each" ] || home_release "$home_each" > /dev/null
  done
  for home_each in "${UNISON:-$HOME/.unison}"/yurt/waiting.*; do
    [ ! -e "$home_each" ] || find "$home_each" -mtime +1 -exec rm -f {} + 2> /dev/null
  done
}
