# Examines Slurm for `yurt doctor`. Follows doctor.sh of the package shell. `scheduler` has one line: the options of sbatch
# that the context sets, as words without spaces.
section sinfo
if ! command -v sinfo > /dev/null 2>&1 || ! command -v sbatch > /dev/null 2>&1; then
  echo missing
elif ! said=$(limited sinfo -h -o 'partition %R %a' 2>&1 < /dev/null); then # the other commands would wait as long
  printf 'silent %s\n' "$said"
else
  printf '%s\n' "$said"
  section version
  limited sinfo --version 2> /dev/null
  section accounts
  limited sacctmgr -nP show assoc where user="$(id -un)" format=account 2> /dev/null < /dev/null | sort -u
  section submit
  cd "$nearest" 2> /dev/null || cd /
  # shellcheck disable=SC2086 # words
  limited sbatch --test-only --time=1 $scheduler --output=/dev/null --wrap=true 2>&1 < /dev/null && echo taken
fi
