look() { # whether a job of this run is in the queue; exits if the queue cannot be seen
  found=$(timeout 60 squeue -h -u "$(id -un)" -n "yurt-$id" -o %i) || exit 7
  for job in $found; do echo "live $job" && exit 0; done
}
launch() { # launch [OPTION OF SBATCH]...
  case ${SBATCH_EXPORT-ALL},$shares in *ALL*,* | *,) ;; *)
    echo "SBATCH_EXPORT=$SBATCH_EXPORT there keeps the secrets of the run from it" >&2 && exit 8 ;;
  esac
  for each in out.log err.log; do : >> "$each"; done # made here, for the user's eyes only
  said=$(umask "$mask" && sbatch --parsable "$@" job.sh "$nonce" $start < /dev/null) || exit 8
  job=
  for word in $said; do # a site may say more than the id
    case $word in [0-9]*) job=${word%%;*} ;; esac
  done
  echo "$job" >> jobs
  echo "submitted $job"
}
