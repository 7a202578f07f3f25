# shellcheck shell=bash
# Boots a host of the lab: builds its root as an overlay of the cluster's layers on another root
# (read-only; by default that of this machine), pivots into it and executes its init. Runs as pid 1 of its own namespaces.
# usage: bash host.sh CLUSTER-FOLDER HOST MARK
set -eu
umask 022 # do not inherit the caller's
cd "$1"
host=$2 mark=$3
. "layers/$host/etc/lab/host.env"
hostname "$host"
mount --make-rprivate /

root=hosts/$host/root
mount -t tmpfs -o size=1g,mode=755 tmpfs "hosts/$host/rw"
mkdir "hosts/$host/rw/upper" "hosts/$host/rw/work"
for layer in all "$ROLE" "$host"; do cp -a "layers/$layer/." "hosts/$host/rw/upper/"; done
chmod 755 "hosts/$host/rw/upper"
(
  cd "hosts/$host" # relative names: the path of the state folder may contain a colon or a comma
  below=/
  if [ "$LOWER" != / ]; then
    mkdir -p lower
    mount --bind -o ro "$LOWER" lower
    below=lower
  fi
  mount -t overlay -o "lowerdir=$below,upperdir=rw/upper,workdir=rw/work" overlay root
)

mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
case $LIMITS in
  v1)
    mount -t tmpfs -o mode=755,size=64k tmpfs "$root/sys/fs/cgroup"
    for hierarchy in $HIERARCHIES; do
      mkdir "$root/sys/fs/cgroup/$hierarchy"
      mount -t cgroup -o "$hierarchy" cgroup "$root/sys/fs/cgroup/$hierarchy"
      for one in $(echo "$hierarchy" | tr , ' '); do
        [ -e "$root/sys/fs/cgroup/$one" ] || ln -s "$hierarchy" "$root/sys/fs/cgroup/$one"
      done
    done ;;
  v2)
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    mkdir -p "$root/sys/fs/cgroup/init"
    echo 1 > "$root/sys/fs/cgroup/init/cgroup.procs"
    echo "+memory +cpu +cpuset" > "$root/sys/fs/cgroup/cgroup.subtree_control" ;;
esac

mount -t tmpfs -o mode=755,size=64k tmpfs "$root/dev"
for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  IFS=: read -r name major minor <<< "$device"
  mknod -m 666 "$root/dev/$name" c "$major" "$minor"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777,size=1g tmpfs "$root/dev/shm"
for ((gpu = 0; gpu < GPUS; gpu++)); do mknod -m 666 "$root/dev/nvidia$gpu" c 195 "$gpu"; done

mount -t tmpfs -o mode=755,size=64m tmpfs "$root/run"
mount -t tmpfs -o mode=1777,size=1g tmpfs "$root/tmp"
mkdir -p "$root/lustre/scratch" "$root/lustre/project" "$root/scratch" \
  "$root/var/log/slurm" "$root/var/spool/slurmd" "$root/var/spool/slurmctld" "$root/var/lib/mysql"
mount --bind shared/home "$root/home"
mount --bind shared/scratch "$root/lustre/scratch"
mount --bind shared/project "$root/lustre/project"
mount --bind slurm "$root/etc/slurm"
mount --bind "hosts/$host/log" "$root/var/log/slurm"
case $ROLE in
  node)
    mount -o loop,noatime "images/$host.img" "$root/scratch"
    chmod 1777 "$root/scratch"
    mount --bind "hosts/$host/spool" "$root/var/spool/slurmd" ;;
  ctl)
    mount --bind state/slurmctld "$root/var/spool/slurmctld"
    mount --bind state/mysql "$root/var/lib/mysql"
    if [ -n "$INDEX_PORT" ]; then
      mkdir -p "$root/srv/index"
      mount --bind -o ro index "$root/srv/index"
    fi ;;
esac

mkdir -p "$root/mnt/old"
cd "$root"
pivot_root . mnt/old
cd /
umount -l /mnt/old
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
  bash /etc/lab/init.sh "$mark"
