# shellcheck shell=bash
# The fabric of one cluster: its switch (a bridge that no other namespace can filter) and its shared
# file systems. Runs as pid 1 of its own net, mount and pid namespaces; when it exits, both disappear.
# With LOCK, the lock file of the hosts' root, it keeps others from removing that root.
# usage: bash fabric.sh CLUSTER-FOLDER [LOCK] MARK
set -eu
umask 022 # do not inherit the caller's
cd "$1"
if [ $# -gt 2 ]; then
  exec 9< "$2"
  flock -s -n 9
fi
mount --make-rprivate /
ip link set lo up
ip link add switch type bridge forward_delay 0
ip link set switch up
for name in home scratch project; do
  mkdir -p "shared/$name"
  mount -o loop,noatime "images/$name.img" "shared/$name"
  chmod 755 "shared/$name"
  for skeleton in "skel/$name"/*; do
    person=${skeleton##*/}
    [ -e "shared/$name/$person" ] && continue
    rm -rf "shared/$name/.new"
    cp -a "$skeleton" "shared/$name/.new"
    mv -T "shared/$name/.new" "shared/$name/$person"
  done
done
touch fabric.ready
sleep infinity &
wait
