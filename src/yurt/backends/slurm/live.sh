# Reports the state of a Slurm cluster now, in a few lines for any number of nodes and jobs.
# arguments: MARK [JOB]. Each section follows a line "MARK name". The queries run in parallel, each for at most
# $yurt_patience seconds; those that may need the accounting database for at most 5. With JOB, also its pending
# records, and the limits of its owner as the controller counts them.
mark=$1
job=${2-}
export LC_ALL=C SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0
me=$(id -un) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf -- "$work"' EXIT
trap 'exit 1' HUP INT TERM # sh would not run the trap above
limited() { within "${yurt_patience:-20}" "$@"; }
section() {
  printf '\n%s %s\n' "$mark" "$1"
  if [ -f "$work/$1" ]; then cat "$work/$1"; fi
}

nodes() { # one line for each group of similar nodes; one for each node that is down or drained
  rows=$(limited scontrol -d -o show node) && printf '%s\n' "$rows" | awk "$nodes_awk"'
    /^NodeName=/ {
      read_node()
      state = field("State")
      key = field("Partitions") "|" state "|" gpus("Gres") "|" gpus("GresUsed")
      count[key]++; total[key] += cpus(); taken[key] += field("CPUAlloc")
      memory[key] += field("RealMemory"); held[key] += field("AllocMem")
      if (state ~ /DOWN|DRAIN|FAIL|ERROR|UNKNOWN|NO_RESPOND|NOT_RESPONDING|\*/ && state !~ /POWER/ && ++bad <= 200)
        print "bad|" field("NodeName") "|" state "|" field("Partitions") "|" substr(reason, 1, 300)
    }
    END {
      for (key in count)
        printf "group|%d|%d|%d|%d|%d|%s\n", count[key], total[key], taken[key], memory[key], held[key], key
    }' || echo "failed $?"
}

queue() { # jobs by state and partition; your jobs with their place in the queue, which squeue sorts by priority
  rows=$(limited squeue -h -S -p,i -o '%T|%P|%u|%Q|%i|%S|%r') && printf '%s\n' "$rows" | awk -F '|' -v me="$me" '
    function tasks(id,  list, parts, n, i, ends, sum, step) {
      if (!match(id, /\[.*\]/)) return 1
      list = substr(id, RSTART + 1, RLENGTH - 2)
      sub(/%.*/, "", list)
      n = split(list, parts, ",")
      for (i = 1; i <= n; i++) {
        step = 1
        if (split(parts[i], ends, /[-:]/) < 2) { sum++; continue }
        if (ends[3] > 0) step = ends[3]
        sum += int((ends[2] - ends[1]) / step) + 1
      }
      return sum
    }
    NF >= 7 {
      some = tasks($5); n = split($2, names, ","); place = ""
      total[$1] += some
      for (i = 1; i <= n; i++) {
        key = $1 "|" names[i]
        counts[key] += some
        if ($1 == "PENDING" && $4 > 0) {
          if (place == "" || ahead[names[i]] + 1 < place) place = ahead[names[i]] + 1
          ahead[names[i]] += some
        }
      }
      if ($3 == me) owned[$1] += some
      if ($3 == me && ++mine <= 200)
        print "mine|" $1 "|" $2 "|" $4 "|" place "|" some "|" $5 "|" $6 "|" $7
    }
    END {
      print "own|" mine + 0
      for (state in owned) print "owned|" owned[state] "|" state
      for (state in total) print "total|" total[state] "|" state
      for (key in counts) print "count|" counts[key] "|" key
    }' || echo "failed $?"
}

job() { # the first pending records of a job: an array has one for all its pending tasks, and one for each other
  limited scontrol show job "$job" | awk 'BEGIN { RS = ""; ORS = "\n\n" } / JobState=PENDING / && ++n <= 20'
}

limits() { # QOS and associations, with their limits and their use; nothing where the site does not count
  limited scontrol show assoc_mgr users="$me" flags=assoc,qos | awk -v me="$me" -v user="$(id -u)" '
    / (Account|User) Limits$/ { part = $1 }
    /^(QOS|ClusterName)=/ { part = "" }
    part != "" && NF == 1 { other = ($1 != user && $1 != me && index($1, me "(") != 1) }
    !(part == "User" && NF > 0 && other && $0 !~ /Limits$/)'
}

fair_share() { within 5 sshare -P -U || echo silent; }

uname -n > "$work/who"
id -un >> "$work/who"
id -Gn > "$work/groups"
limited scontrol ping > "$work/ping" 2>&1
if ! grep -q '\bUP\b' "$work/ping"; then
  for each in who groups ping; do section "$each"; done
  exit 0
fi
limited scontrol show config > "$work/all-config" 2> /dev/null &
limited scontrol -o show partition > "$work/partitions" 2> "$work/errors" &
nodes > "$work/nodes" 2> /dev/null &
queue > "$work/queue" 2> /dev/null &
limited scontrol -o show reservation > "$work/reservations" 2> /dev/null &
if command -v sshare > /dev/null 2>&1; then fair_share > "$work/fair-share" 2> /dev/null & fi
if command -v sprio > /dev/null 2>&1; then
  within 5 sprio -h -u "$me" -o '%i|%Y|%A|%F|%J|%P|%Q' 2> /dev/null | head -n 400 > "$work/priority" &
fi
if [ -n "$job" ]; then
  job > "$work/job" 2> /dev/null &
  limits > "$work/limits" 2> /dev/null &
fi
wait
sed -n '/^\(AccountingStorageType\|PreemptMode\) /p' "$work/all-config" > "$work/config"
for each in who groups ping config partitions errors nodes queue reservations fair-share priority job limits; do section "$each"; done
