find_job() { # whether a job of this run is in the queue; exits if the queue cannot be seen
  case $start in *:*) known=$(timeout 60 squeue -h -u "$(id -un)" -o '%F %k') && return || exit 7 ;; esac
  found=$(timeout 60 squeue -h -u "$(id -un)" -n "yurt-$id" -o %i) || exit 7
  for job in $found; do echo "live $job" && exit 0; done
}
launch() { # launch [OPTION OF SBATCH]...
  known=${known-} narrowed=
  case ${SBATCH_EXPORT-ALL},$shares in *ALL*,* | *,) ;; *)
    echo "SBATCH_EXPORT=$SBATCH_EXPORT there keeps the secrets of the run from it" >&2 && exit 8 ;;
  esac
  case $start in *:*) launch_tasks "$@" && return || exit 8 ;; esac
  for each in @OUT_LOG@ @ERR_LOG@; do : >> "$each"; done # made here, for the user's eyes only
  submit "$@" @JOB@ "$nonce" ${start:+"$start"} || exit 8
  echo "submitted $job"
}
submit() { # submit WORD OF SBATCH...: sets job
  said=$(umask "$mask" && sbatch --parsable "$@" < /dev/null) || return
  job=
  for word in $said; do # a site may say more than the id
    case $word in [0-9]*) job=${word%%;*} ;; esac
  done
  echo "$job" >> "@JOBS@"
}
launch_tasks() { # launch_tasks [OPTION OF SBATCH]...: the groups of $start that are not known to have gone out
  some=
  # Of a sweep with a limit %N, which each array has for itself, only one array runs at a time.
  behind=$(printf '%s\n' "$known" | while read -r number comment; do
    case $comment in "yurt:$id:"*) printf ':%s' "$number" ;; esac
  done)
  for group in $start; do
    comment_of "$group"
    job=$(printf '%s\n' "$known" | while read -r number comment; do
      [ "$comment" != "$mine" ] || { echo "$number" && break; }
    done)
    until [ -n "$job" ] || submit_group "$@"; do
      # Where only so many may be queued, as many as there is room for go out, and the rest later.
      case $words in *[Ll]imit* | *QOSMaxSubmit* | *AssocMaxSubmit*) ;; *) say_no; return ;; esac
      half "$group" || { say_no; return; }
    done
    some=yes behind=$behind:$job
    grep -s -q -x -F -e "$job $group" @SENT@ || echo "$job $group" >> @SENT@ # for yurts on other machines
    echo "submitted $job $group"
    [ -z "$narrowed" ] || return 0
  done
}
say_no() { # nothing more goes out now; a failure only if nothing did
  [ -n "$some" ] || { printf '%s\n' "$words" >&2 && return 1; }
}
comment_of() { # comment_of GROUP: sets mine; Slurm takes no more than a thousand letters
  mine=yurt:$id:$1
  [ ${#mine} -le 200 ] || mine="yurt:$id:$(printf %s "$1" | cksum | tr ' ' -)"
}
submit_group() { # submit_group [OPTION OF SBATCH]...
  rest=${group#*:} first=${group%%:*}
  [ "$first" != 1 ] || first=
  comment_of "$group"
  case $group in *%*) [ -z "$behind" ] || set -- "$@" --dependency="afterany$behind" ;; esac
  words=$(submit "$@" --job-name="yurt-$id+${rest%%:*}" --comment="$mine" --array="${rest#*:}" \
    @JOB@ "$nonce" "$first" "${rest%%:*}" 2>&1 && echo "$job") || return
  job=${words##*[!0-9]}
}
half() { # half START:OFFSET:FIRST-LAST...: sets group to the first half of the first range; fails where there is no half
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
