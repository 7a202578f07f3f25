# Reports what the site says about a job that has ended: the state of its node now, and comments about the job.
# arguments: MARK JOB NODE; NODE may be empty. Each section follows a line "MARK name".
mark=$1
job=$2
node=$3
export LC_ALL=C SLURM_TIME_FORMAT=%s

printf '\n%s node\n' "$mark"
if [ -n "$node" ]; then
  within 10 scontrol -o show node "$node" 2> /dev/null | awk "$nodes_awk"'
    /^NodeName=/ {
      read_node()
      print "bad|" field("NodeName") "|" field("State") "|" field("Partitions") "|" substr(reason, 1, 300)
    }'
fi
printf '\n%s comments\n' "$mark"
if command -v sacct > /dev/null 2>&1; then
  for each in admin system; do
    within 5 sacct -X -n -P -D -j "$job" -o "${each}comment" 2> /dev/null | tail -n 1 | sed "s/^/$each|/"
  done
  printf '\n%s memory\n' "$mark"
  within 5 sacct -n -P -j "$job" -o maxrss 2> /dev/null
fi
exit 0
