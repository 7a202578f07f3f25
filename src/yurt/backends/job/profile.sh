# The environment of your login shell, which `sbatch` in a terminal passes to a job. A job reads it on its node: so no
# value of it is on a shared disk or in the records of Slurm.
read_profile() { # sets yurt_profile to the definitions of your login shell that differ from those of this job
  yurt_profile=
  [ -n "$profile" ] && [ -n "${BASH_VERSION-}" ] && [ -r /proc/self/environ ] || return 0
  eval "$profile_reader" || {
    yurt_profile=
    echo "yurt: the profile of your login shell did not finish on $(uname -n) within $profile s, so it has no effect; \`login_profile: false\` in the context does not read it" >&2
    return 0
  }
  yurt_names=${yurt_profile%%"
"*}
  yurt_profile=${yurt_profile#*"
"}
  yurt_file=${sweep:-$run}/@PROFILE@
  if [ ! -e "$yurt_file" ]; then
    yurt_each=$(printf '%s' "$yurt_profile" | sha256sum 2> /dev/null)
    (umask 077 && echo "{\"sha256\":\"${yurt_each%% *}\",\"names\":[$yurt_names]}" > "$yurt_file.$$" && mv "$yurt_file.$$" "$yurt_file") 2> /dev/null
  fi
  unset yurt_names yurt_file yurt_each
}
# For bash. It reads up to a NUL, not to the end: a process that the profile leaves running may keep the pipe open.
profile_reader='IFS= read -r -d "" yurt_profile < <(
  export YURT_FUNCTIONS=" $(compgen -A function | tr "\n" " ")"
  timeout -k 2 "$profile" bash -lc "$profile_writer" 3>&1 < /dev/null > /dev/null 2>&1
)'
# For a login bash, after its profile. Prints the changed names in a line, as in JSON; their definitions, without the
# functions of job.sh; and NUL.
# shellcheck disable=SC2034 # profile_reader uses it
profile_writer='
  declare -A yurt_before
  while IFS= read -r -d "" yurt_each; do yurt_before[${yurt_each%%=*}]=${yurt_each#*=}; done < /proc/$$/environ
  yurt_names= yurt_text=
  printf -v yurt_end "\n"
  for yurt_each in $(compgen -e); do
    case $yurt_each in # of this job, or of this shell
      SLURM* | SBATCH_* | SRUN_* | YURT_* | *_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ZE_AFFINITY_MASK) continue ;;
      PWD | OLDPWD | SHLVL | _ | HOSTNAME | BASH_ENV | ENV) continue ;;
      TMPDIR) [ -z "${yurt_before[TMPDIR]-}" ] || continue ;;
    esac
    if [ -n "${yurt_before[$yurt_each]+set}" ] && [ "${yurt_before[$yurt_each]}" = "${!yurt_each}" ]; then continue; fi
    yurt_names+=,\"$yurt_each\"
    printf -v yurt_line "export %s=%q\n" "$yurt_each" "${!yurt_each}"
    yurt_text+=$yurt_line
  done
  while read -r _declare _flags yurt_each; do
    case $YURT_FUNCTIONS in *" $yurt_each "*) continue ;; esac
    yurt_names+=,\"$yurt_each\"
    yurt_text+=$(declare -f "$yurt_each" && echo "export -f $yurt_each")$yurt_end
  done < <(declare -Fx)
  printf "%s\n%s\0" "${yurt_names#,}" "$yurt_text" >&3
'
