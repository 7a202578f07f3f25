find_job() { # exits if a job of this run is in the queue, or if the queue cannot be read
  case $start in *:*)
    known=$(queue -u "$(id -un)" -o '%F %k') || exit 7
    # The comments of groups that wait, or waited, for a home sync begin with that word; those of held races with another.
    known=$(printf '%s\n' "$known" | sed -e 's/^\([0-9]*\) home_sync[ed]* /\1 /' -e 's/^\([0-9]*\) race_wait /\1 /') && return || exit 7 ;;
  esac
  found=$(queue -u "$(id -un)" -n "yurt-$id" -o %i) || exit 7
  for job in $found; do echo "live $job" && exit 0; done
}
launch() { # launch [SBATCH-OPTION]...
  known=${known-} narrowed=
  drop_rivals "$@"
  case $start in *:*) launch_tasks "$@" && return || exit $? ;; esac
  for each in @OUT_LOG@ @ERR_LOG@; do : >> "$each"; done # private: created under this umask
  submit "$@" @JOB@ "$nonce" ${start:+"$start"} || exit $?
  if read_written @WINNER@ > /dev/null && [ "$text" = cancelled ]; then scancel "$job"; fi # cancelled during sbatch
  echo "submitted $job"
}
submit() { # submit SBATCH-ARGUMENT...: sets job; 8: it was rejected, 6: sbatch failed, but may have submitted it
  [ -z "$hold" ] || [ -z "$sync" ] || printf '%s\n' "$env" > @ENV_WAIT@ # before the sync that lists it can end
  reply=$(umask "$mask" && timeout "${yurt_patience:-60}" sbatch --parsable ${hold:+--hold} "$@" < /dev/null) || {
    if was_rejected $?; then return 8; else return 6; fi
  }
  job=$(job_id "$reply")
  echo "$job" >> "@JOBS@"
  [ -z "$hold" ] || release_when_built || : # the job exists; the next yurt command releases it
}
was_rejected() { # was_rejected CODE: whether sbatch, which failed with it and printed $reply, has surely not submitted a job
  # A site's sbatch may be a script, and fail after its job is submitted.
  [ -z "$(job_id "$reply")" ] || return
  case $1 in
    124 | 129 | 1[3-9]?) return 1 ;; # it was killed, such as by timeout
    126 | 127) ! command -v sbatch > /dev/null ;;
  esac
}
release_when_built() { # the builder of the environment releases the job, if it is registered early enough
  printf %s "$sync" > "$env/wait.$job"
  ! env_is_idle "$env" || release_built "$env" "$job"
}
launch_tasks() { # launch_tasks [SBATCH-OPTION]...: submits the groups of $start that are not in the queue
  some=
  # With a limit %N, which applies to each array, only one array of the sweep runs at a time.
  behind=$(printf '%s\n' "$known" | while read -r number comment; do
    case $comment in "yurt:$id:"*) printf ':%s' "$number" ;; esac
  done)
  for group in $start; do
    comment_of "$group"
    job=$(printf '%s\n' "$known" | while read -r number comment; do
      [ "$comment" != "$mine" ] || { echo "$number" && break; }
    done)
    until [ -n "$job" ] || submit_group "$@"; do
      code=$?
      [ "$code" -eq 8 ] || { stop_submitting; return; }
      # At a job limit, submit as many as it allows now, and the rest later.
      case $reply in *[Ll]imit* | *QOSMaxSubmit* | *AssocMaxSubmit*) ;; *) stop_submitting; return ;; esac
      half "$group" || { stop_submitting; return; }
    done
    some=yes behind=$behind:$job
    grep -s -q -x -F -e "$job $group" @SENT@ || echo "$job $group" >> @SENT@ # for yurt on other machines
    echo "submitted $job $group"
    [ -z "$narrowed" ] || return 0
  done
}
stop_submitting() { # stops submitting; fails only if nothing was submitted
  [ -n "$some" ] || { printf '%s\n' "$reply" >&2 && return "$code"; }
}
comment_of() { # comment_of GROUP: sets mine; Slurm limits comments to 1000 characters
  mine=yurt:$id:$1
  [ ${#mine} -le 200 ] || mine="yurt:$id:$(printf %s "$1" | cksum | tr ' ' -)"
}
submit_group() { # submit_group [SBATCH-OPTION]...
  rest=${group#*:} first=${group%%:*}
  [ "$first" != 1 ] || first=
  comment_of "$group"
  depends=
  for word; do case $word in --dependency=*) depends=${word#*=}, ;; esac; done # sbatch takes the last one only
  if [ -n "$sync" ] && [ -z "$first" ]; then
    mine="home_sync $mine"
  elif [ -n "$sync" ]; then # a later start does not wait again
    for word; do shift && case $word in --hold) ;; *) set -- "$@" "$word" ;; esac; done
  fi
  case $group in *%*) [ -z "$behind" ] || set -- "$@" --dependency="${depends}afterany$behind" ;; esac
  reply=$(submit "$@" --job-name="yurt-$id+${rest%%:*}" --comment="$mine" --array="${rest#*:}" \
    @JOB@ "$nonce" "$first" "${rest%%:*}" 2>&1 && echo "$job") || return
  job=${reply##*[!0-9]}
}
half() { # half START:OFFSET:FIRST-LAST...: sets group to the first half of the first range; fails if it is one task
  limit='' narrowed=yes
  case $1 in *%*) limit=%${1##*%} ;; esac
  range=${1##*:} range=${range%%[,%]*}
  case $range in
    *-*) [ "${range%-*}" -lt "${range#*-}" ] || return ;;
    *) case $1 in *,*) ;; *) return 1 ;; esac ;;
  esac
  last=$(((${range%-*} + ${range#*-}) / 2))
  group=${1%:*}:${range%-*}
  [ "$last" -eq "${range%-*}" ] || group=$group-$last
  group=$group$limit
}
