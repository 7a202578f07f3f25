# The copy of an environment on the disk of each node of a job, in one folder that only this job has. It is unpacked from
# one file: a program that imports thousands of files from a shared disk is slow, and slows down everybody else. Needs own.sh
# and env_state.sh before it.
env_copy() { # env_copy FOLDER: prints the path for a copy of the environment FOLDER; fails if the node has no disk for it
  for yurt_each in "${SLURM_TMPDIR-}" "${TMPDIR-}" /tmp; do
    case $yurt_each in '' | [!/]* | *[!A-Za-z0-9/._@+=-]*) continue ;; esac # it is written into scripts
    if [ ! -d "$yurt_each" ] || [ ! -w "$yurt_each" ]; then continue; fi
    [ "$(stat -L -c %d "$yurt_each")" != "$(stat -L -c %d "$1")" ] || continue
    case $(stat -f -c %T "$yurt_each") in
      nfs* | lustre | gpfs | beegfs | ceph | panfs | afs | fuse* | cifs | smb*) continue ;;
      tmpfs | ramfs | UNKNOWN*) [ "$yurt_each" = "${SLURM_TMPDIR-}" ] || continue ;; # the job's memory, unless the site chose it
    esac
    yurt_each=${yurt_each%/}
    own "$yurt_each" "$yurt_each/yurt-env-$SLURM_JOB_ID" || continue
    printf '%s\n' "$yurt_each/yurt-env-$SLURM_JOB_ID"
    return
  done 2> /dev/null
  return 1
}
on_each_node() { # on_each_node COMMAND…: runs it once on each node of this job; with yurt_limit, for so many seconds
  if [ "${SLURM_JOB_NUM_NODES:-1}" -le 1 ]; then
    "$@"
  else
    ${yurt_limit:+timeout "$yurt_limit"} srun --quiet --mpi=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "$@"
  fi < /dev/null
}
unpacker() { # prints the program that unpacks an environment on one node. arguments: PACK COPY OLD-PATH ENTRIES KILOBYTES
  cat << 'end'
pack=$1 copy=$2 old=$3 entries=$4 kilobytes=${5:-0}
umask 077
cannot() { echo "$1" && exit 1; }
[ ! -O "$copy" ] || rm -rf "$copy" # of an earlier start of this job
free=$(df -P -k "${copy%/*}" 2> /dev/null | awk 'NR == 2 { print $4 }')
[ -n "$free" ] || cannot "$(uname -n) has no folder ${copy%/*}"
safe=$(find "${copy%/*}" -maxdepth 0 \( -user "$(id -un)" -o -user root \( -perm -1000 -o ! -perm /022 \) \))
[ -n "$safe" ] || cannot "other users can replace folders in ${copy%/*} on $(uname -n)"
[ "$free" -gt "$kilobytes" ] || cannot "the disk of $(uname -n) is full"
mkdir -m 700 "$copy" 2> /dev/null || cannot "cannot create $copy on $(uname -n)"
cannot() { rm -rf "$copy" && echo "$1" && exit 1; }
mkdir "$copy/aside" && cd "$copy/aside" || cannot "cannot write to $copy on $(uname -n)"
tar -x -p -f "$pack" 2> /dev/null || cannot "cannot unpack it on $(uname -n)"
[ "$(find . | wc -l)" -ge "$entries" ] || cannot "it is packed incompletely"
grep -s -l -I -F -e "$old" bin/* pyvenv.cfg | while IFS= read -r file; do # pip writes its path into scripts
  sed -i "s|$(printf '%s' "$old" | sed 's/[][\.*^$|]/\\&/g')|$copy/env|g" "$file" || exit 1
done || cannot "cannot write to $copy on $(uname -n)"
mv -T "$copy/aside" "$copy/env" || cannot "cannot write to $copy on $(uname -n)"
end
}
use_copy() { # use_copy FOLDER: sets yurt_env_path to the copy of the environment in FOLDER, or says why there is none
  [ -n "${SLURM_JOB_ID-}" ] || return 0
  yurt_copy=${YURT_ENV_COPY:-$(env_copy "$1")}
  unset YURT_ENV_COPY
  if [ -z "$yurt_recorded" ]; then # `yurt shell`: the run itself has unpacked it
    if [ -n "$yurt_copy" ] && [ ! -h "$yurt_copy" ] && [ -O "$yurt_copy/env" ]; then yurt_env_path=$yurt_copy/env; fi
  elif [ -z "$yurt_copy" ]; then
    yurt_why="$(uname -n) has no disk of its own for it"
  elif ! env_is_packed "$1"; then
    yurt_why="it is not packed"
  elif yurt_why=$(on_each_node sh -c "$(unpacker)" sh "$yurt_env_path.tar" "$yurt_copy" "$yurt_env_path" "$yurt_env_entries" "$yurt_env_kilobytes" 2>&1); then
    yurt_env_path=$yurt_copy/env yurt_why=
  fi
  [ -z "${yurt_why-}" ] || echo "yurt: using the environment ${1##*/} from the shared disk: $(printf '%s\n' "$yurt_why" | head -n 1)" >&2
  unset yurt_copy yurt_why
}
drop_copy() { # drop_copy PATH: removes a copy from all nodes; on others only if the site does not do that
  [ -n "$1" ] || return 0
  [ ! -O "$1" ] || rm -rf "$1"
  case $1 in "${SLURM_TMPDIR:-/none}"/*) return ;; esac
  [ "${SLURM_JOB_NUM_NODES:-1}" -le 1 ] || yurt_limit=20 on_each_node rm -rf "$1"
} > /dev/null 2>&1
