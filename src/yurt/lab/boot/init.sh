# shellcheck shell=bash
# Pid 1 of a host of the lab: waits for its network interfaces, starts its services, reaps children.
set -u
. /etc/lab/host.env

interface() { # wait for an interface that the lab adds, and set its address
  try=0
  until ip link show "$1" > /dev/null 2>&1; do # if this `lab up` was killed, the next one adds it
    if ((try++ < 500)); then sleep 0.02; else sleep 1; fi
  done
  ip addr add "$2" dev "$1"
  ip link set "$1" up
}

ip link set lo up
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 2> /dev/null
interface eth0 "$ADDRESS"
if [ "$ROLE" = login ]; then
  interface eth1 "$OUTSIDE"
  # The wire to the other cluster may be added later. sshd listens on its address already, and until
  # then packets for it do not leave through another interface.
  echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind
  ip route add unreachable "$WIRE_NETWORK"
fi
if [ "$ROUTE_OUT" = 1 ]; then
  ip route add default via "$GATEWAY"
  if [ "$ROLE" = login ]; then
    echo 1 > /proc/sys/net/ipv4/ip_forward
    nft -f /etc/lab/forward.nft
  fi
fi

mkdir -p /run/munge /run/sshd /run/mysqld /run/lab /var/log/munge /var/lib/munge
chown munge: /run/munge /var/log/munge /var/lib/munge
chown mysql: /run/mysqld
ln -sfn mysqld /run/mariadbd # where newer clients look for the socket
chmod 755 /run/munge
setpriv --reuid munge --regid munge --clear-groups munged --num-threads=2

case $ROLE in
  ctl)
    [ -n "$INDEX_PORT" ] && bash /etc/lab/service.sh index start & # it is ready before the database is
    [ "$ACCOUNTING" = 1 ] && bash /etc/lab/service.sh database start && bash /etc/lab/service.sh dbd start
    bash /etc/lab/service.sh ctld start
    wait $! ;;
  login)
    [ -e /etc/lab/codes ] && chpasswd < /etc/lab/codes
    bash /etc/lab/service.sh sshd-inside start
    bash /etc/lab/service.sh sshd-outside start ;;
  node)
    rm -rf /scratch/job-*
    [ "$NODE_SSH" = 1 ] && bash /etc/lab/service.sh sshd-inside start
    bash /etc/lab/service.sh slurmd start ;;
esac
touch /run/lab/ready
trap 'exit 0' TERM
while :; do
  sleep 86400 &
  wait $!
done
