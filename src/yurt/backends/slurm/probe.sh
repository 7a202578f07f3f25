# Collects all facts about a site on its login node.
# arguments: MARK. Each section follows a line "MARK name".
mark=$1
section() { printf '\n%s %s\n' "$mark" "$1"; }
limited() { if command -v timeout > /dev/null 2>&1; then timeout 20 "$@"; else "$@"; fi; }
login_shell() { # variables and modules are often set only in login shells
  if command -v bash > /dev/null 2>&1; then limited bash -lc "$1"; else limited sh -lc "$1"; fi
}
export LC_ALL=C

section who
id -un
hostname
echo "$SHELL"

section variables
all=$(login_shell env 2> /dev/null < /dev/null)
vars=$(printf '%s\n' "$all" | sed -n '/^[A-Za-z_][A-Za-z0-9_]*=\/[^:]*$/p; /^\(USER\|LOGNAME\)=/p')
printf '%s\n' "$vars"

section sbatch # of the session in which yurt calls sbatch; those that yurt does not use are cleared
env | sed -n '/^SBATCH_/p'

section marks # by which yurt recognises the profile of a site
printf '%s\n' "$all" | sed -n '/^CC_CLUSTER=/p'
[ -d /slurm/scripts ] && echo slurm_gcp=yes

section tiers
printf '%s\n' "$vars" | grep -E '^([A-Z_]*_)?(HOME|SCRATCH|PROJECT|WORK|ARCHIVE)=/' | while IFS='=' read -r name path; do
  [ -d "$path" ] || continue
  if [ -w "$path" ]; then writable=1; else writable=0; fi
  space=$(limited df -Pk "$path" 2> /dev/null | awk 'END { print $2, $4 }')
  printf '%s %s %s %s\n' "$name" "$writable" "${space:-- -}" "$path"
done

section modules
login_shell 'type module > /dev/null 2>&1 && echo "${LMOD_VERSION:+lmod} ${LMOD_PKG:-${MODULESHOME:-}}"' 2> /dev/null < /dev/null | tail -n 1

section tools
for tool in python3 python conda mamba uv git rsync unison zstd lz4 sshd tmux tar apptainer singularity; do
  found=$(command -v "$tool" 2> /dev/null || { [ -x "/usr/sbin/$tool" ] && echo "/usr/sbin/$tool"; }) || continue
  [ -n "$found" ] && printf '%s %s\n' "$tool" "$found"
done
if limited srun --help 2> /dev/null < /dev/null | grep -q -e '--container-image'; then printf 'pyxis %s\n' "$(command -v srun)"; fi

section pythons # the first one is that of `python3`
# shellcheck disable=SC2016 # the login shell expands it
login_shell 'python3 -V
IFS=:
for folder in $PATH; do
  for each in "$folder"/python3.[0-9] "$folder"/python3.[0-9][0-9]; do [ -x "$each" ] && "$each" -V; done
done' 2> /dev/null < /dev/null

command -v scontrol > /dev/null 2>&1 || exit 0
section config
timeout "${yurt_patience:-20}" scontrol show config || exit 7
section partitions
limited scontrol -o show partition || exit 7
section nodes
limited sinfo -h -e -o '%R|%D|%c|%m|%G|%f' || exit 7
me=$(id -un)
section associations
limited sacctmgr -nP show assoc where user="$me" format=account,partition,qos,defaultqos,maxsubmit 2> /dev/null || accounting=silent
section qos
limited sacctmgr -nP show qos format=name,maxsubmitpu,maxjobspu,maxwall 2> /dev/null
section accounting
echo "${accounting:-answered}"
section default-account
limited sacctmgr -nP show user "$me" format=defaultaccount 2> /dev/null

# Test the site's submission rules with sbatch --test-only, without submitting.
there=/tmp
for path in $(printf '%s\n' "$vars" | sed -n '/^[A-Z_]*\(SCRATCH\|WORK\|PROJECT\)=/s/^[^=]*=//p') /tmp; do
  if [ -d "$path" ] && [ -w "$path" ]; then there=$path && break; fi
done
try() { # try FOLDER [OPTION]
  cd "$1" 2> /dev/null || cd /
  shift
  reply=$(limited sbatch --test-only "$@" --output=/dev/null --wrap=true 2>&1 < /dev/null) && echo taken || printf 'refused %s\n' "$reply"
}
section submit
try "$there"
section submit-requeue
try "$there" --requeue
section submit-home
try "$HOME"
