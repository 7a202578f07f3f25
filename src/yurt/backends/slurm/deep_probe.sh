# Runs one tiny job that inspects its node, and tests ssh to that node.
# arguments: MARK FOLDER INTERNET-HOST INTERNET-PORT SECONDS [SBATCH-OPTION...]
mark=$1 folder=$2 target=$3 port=$4 patience=$5
shift 5
section() { printf '\n%s %s\n' "$mark" "$1"; }
here=$folder/.yurt-probe-$$
umask 077
mkdir -p "$here" && cd "$here" || exit 1
job=
clean() {
  [ -z "$job" ] || scancel "$job" > /dev/null 2>&1
  cd / && rm -rf "$here"
}
trap clean EXIT

cat > job.sh <<'JOB'
#!/bin/sh
reach() {
  if command -v python3 > /dev/null 2>&1; then
    python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)' "$1" "$2"
  else
    timeout 5 bash -c 'exec 3<> "/dev/tcp/$0/$1"' "$1" "$2"
  fi
} > /dev/null 2>&1
{
  echo "node ${SLURMD_NODENAME:-$(hostname)}"
  if reach "$1" "$2"; then echo "internet yes"; else echo "internet no"; fi
  if [ -n "${SLURM_TMPDIR:-}" ]; then echo "tmpdir yes"; fi
  for disk in "${SLURM_TMPDIR:-}" "${TMPDIR:-}" /scratch /local /tmp; do
    [ -n "$disk" ] && [ -d "$disk" ] && [ -w "$disk" ] || continue
    echo "disk $(df -Pk "$disk" | awk 'END { print $4, $6 }')"
    break
  done
  ! command -v nvidia-smi > /dev/null 2>&1 || timeout 10 nvidia-smi 2> /dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/cuda \1/p'
  for tool in python3 conda uv git rsync unison zstd lz4 sshd nvidia-smi apptainer singularity; do
    found=$(command -v "$tool" || { [ -x "/usr/sbin/$tool" ] && echo "/usr/sbin/$tool"; }) && echo "tool $tool $found"
  done
} > node.new
mv node.new node
tries=0
while [ ! -e seen ] && [ "$tries" -lt 40 ]; do
  sleep 0.5
  tries=$((tries + 1))
done
JOB

job=$(sbatch --parsable --job-name=yurt-probe --ntasks=1 --time=2 --output=/dev/null --chdir="$here" "$@" job.sh "$target" "$port") || exit 5
job=${job%%;*}
waited=0
until [ -e node ] || [ "$waited" -ge "$((patience * 2))" ]; do
  sleep 0.5
  waited=$((waited + 1))
done
if [ ! -e node ]; then
  squeue -h -j "$job" -o '%T %r' >&2
  exit 6
fi
section node
cat node
name=$(sed -n 's/^node //p' node)
section ssh
if ssh -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/dev/null "$name" true > /dev/null 2>&1 < /dev/null; then echo yes; else echo no; fi
touch seen
