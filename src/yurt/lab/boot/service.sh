# shellcheck shell=bash
# Starts, stops or kills a service of this host, or prints its pid.
# usage: bash service.sh database|dbd|ctld|index|slurmd|sshd-inside|sshd-outside start|stop|kill|pid
set -u
. /etc/lab/host.env
service=$1 action=$2
socket=/run/mysqld/mysqld.sock

pidfile() {
  case $service in
    database) echo /run/mysqld/mysqld.pid ;;
    dbd) echo /run/slurmdbd.pid ;;
    ctld) echo /run/slurmctld.pid ;;
    slurmd) echo /run/slurmd.pid ;;
    *) echo "/run/lab/$service.pid" ;;
  esac
}

running() { # prints the pid of the service if it is running
  pid=$(cat "$(pidfile)" 2> /dev/null) && [ -n "$pid" ] && kill -0 "$pid" 2> /dev/null && echo "$pid"
}

until_true() { # until_true TENTHS COMMAND...
  tenths=$1
  shift
  for ((try = 0; try < tenths; try++)); do
    "$@" > /dev/null 2>&1 && return 0
    sleep 0.1
  done
  return 1
}

start_database() {
  if [ ! -d /var/lib/mysql/slurm_acct_db ]; then
    find /var/lib/mysql -mindepth 1 -delete
    mariadb-install-db --no-defaults --user=mysql --datadir=/var/lib/mysql --skip-test-db --skip-name-resolve \
      --auth-root-authentication-method=socket > /var/log/slurm/database-install.log 2>&1 || return 1
  fi
  setsid mariadbd --no-defaults --user=mysql --datadir=/var/lib/mysql --socket=$socket --skip-networking \
    --pid-file=/run/mysqld/mysqld.pid --innodb-buffer-pool-size=64M --innodb-log-file-size=32M \
    --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=2 --performance-schema=OFF \
    --loose-innodb-snapshot-isolation=OFF \
    --key-buffer-size=1M --aria-pagecache-buffer-size=1M \
    > /var/log/slurm/mariadbd.log 2>&1 < /dev/null &
  until_true 300 mariadb-admin -S $socket ping || return 1
  mariadb -S $socket -e "create user if not exists slurm@localhost identified via unix_socket;
    grant all on slurm_acct_db.* to slurm@localhost; create database if not exists slurm_acct_db"
}

start_dbd() {
  slurmdbd
  until_true 300 sacctmgr -n list cluster || return 1
  [ -e /var/lib/mysql/accounts-made ] && return 0
  bash /etc/lab/accounts.sh > /var/log/slurm/accounts.log 2>&1 && touch /var/lib/mysql/accounts-made
}

start_index() {
  rm -f "$(pidfile)"
  setsid python3 -I -S /etc/lab/index_server.py "${ADDRESS%/*}" "$INDEX_PORT" /srv/index "$(pidfile)" \
    > /var/log/slurm/package-index.log 2>&1 < /dev/null &
  until_true 300 running
}

start_sshd() { # start_sshd ADDRESS...
  /usr/sbin/sshd -f /etc/lab/sshd_config -o "PidFile=$(pidfile)" "${@/#/-oListenAddress=}" || return 1
  until_true 300 running # it writes its pid after it has returned: without that, it could not be stopped
}

start_ctld() { # 26.05 saves this file only every few minutes, and does not start after a crash without it
  saved=/var/spool/slurmctld
  if [ -e $saved/job_state ] && [ ! -e $saved/assoc_usage ]; then slurmctld -i; else slurmctld; fi
}

case $action in
  pid) running ;;
  start)
    running > /dev/null && exit 0
    # shellcheck disable=SC2086 # WIRES is a list of addresses
    case $service in
      database) start_database ;;
      dbd) start_dbd ;;
      ctld) start_ctld ;;
      index) start_index ;;
      slurmd) slurmd -N "$(hostname)" ;;
      sshd-inside) start_sshd "${ADDRESS%/*}" $WIRES ;;
      sshd-outside) start_sshd "${OUTSIDE%/*}" ;;
      *) echo "unknown service: $service" >&2; exit 2 ;;
    esac ;;
  stop | kill)
    pid=$(running) || exit 0
    if [ "$action" = kill ]; then signal=KILL; else signal=TERM; fi
    kill -$signal "$pid"
    gone() { ! kill -0 "$pid" 2> /dev/null; }
    until_true 300 gone ;;
  *) echo "unknown action: $action" >&2; exit 2 ;;
esac
