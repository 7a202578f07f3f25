# Polls many runs in one request. Needs gate.sh before it.
# arguments: ACCOUNTING DAYS. Standard input: run ids, after a line "= FOLDER" with their parent folder.
# ACCOUNTING is yes or no, or silent if it did not respond a moment ago.
# Before the id of a run whose exit code is known: "-"; only its jobs in the queue are reported.
# After the id of a sweep: its unfinished tasks, 0-3,7, each of which counts as a run ID.NUMBER; then the
# offsets of its arrays: 0,100.
# Output, in sections "= NAME": queue: squeue's rows of yurt's jobs; folders: the records of runs that are not in
# the queue; controller: when slurmctld started, and the time now; records: sacct's rows of runs without exit code.
accounting=$1 days=$2
me=$(id -un)
export TZ=UTC LC_ALL=C SLURM_BITSTR_LEN=0 # print all pending task numbers
echo "= queue"
exec 4>&1
# Rows are printed as they come. Jobs that have finished, or are about to, may still be listed: they count as absent.
absent=$({
  cat || echo "= failed"
  echo
  timeout "${yurt_patience:-60}" squeue -t all -u "$me" -o '|%10k|%i|%T|%r|%S|%N|%j' # seconds; 10 characters of the comment, which may contain anything
  echo "= $?"
} | awk -F'|' '
  # Tasks are stored as ranges: the cost of pending tasks depends on the number of ranges, not of tasks.
  function spans(id, text, offset, kind,   parts, bounds, many, at, number, step) {
    sub(/%.*/, "", text)
    many = split(text, parts, ",")
    for (at = 1; at <= many; at++) {
      if (split(parts[at], bounds, "-") < 2) bounds[2] = bounds[1]
      step = split(bounds[2], pieces, ":") > 1 ? pieces[2] + 0 : 1 # 0-8:4
      if (step < 2) span(id, bounds[1] + offset, bounds[2] + offset, kind)
      else for (number = bounds[1] + 0; number <= pieces[1] + 0; number += step) span(id, number + offset, number + offset, kind)
    }
  }
  function span(id, first, last, kind,   at) { # keeps ranges sorted; only several arrays come unsorted
    for (at = ++many_of[kind, id]; at > 1 && from[kind, id, at - 1] > first; at--) {
      from[kind, id, at] = from[kind, id, at - 1]
      upto[kind, id, at] = upto[kind, id, at - 1]
    }
    from[kind, id, at] = first
    upto[kind, id, at] = last
  }
  function open(id, number,   low, high, middle) {
    low = 1
    high = many_of["open", id] + 0
    while (low <= high) {
      middle = int((low + high) / 2)
      if (upto["open", id, middle] < number) low = middle + 1
      else if (from["open", id, middle] > number) high = middle - 1
      else return 1
    }
    return 0
  }
  function absent(id,   each, at, waits, stop) { # prints the open tasks without a row
    waits = 1
    for (each = 1; each <= many_of["open", id]; each++)
      for (at = from["open", id, each]; at <= upto["open", id, each]; ) {
        while (waits <= many_of["waits", id] && upto["waits", id, waits] < at) waits++
        stop = upto["open", id, each]
        if (waits <= many_of["waits", id]) {
          if (from["waits", id, waits] <= at) { at = upto["waits", id, waits] + 1; continue }
          if (from["waits", id, waits] <= stop) stop = from["waits", id, waits] - 1
        }
        for (; at <= stop; at++) if (!((id "." at) in live)) task("", id, at)
      }
  }
  function task(mark, id, number) { print mark id "." number " " called[id] " " home[id] "/@TASKS@/" number }
  $0 == "" { listed = 1; next }
  !listed && $0 == "= failed" { failed = 1 }
  !listed && substr($0, 1, 2) == "= " { folder = substr($0, 3); next }
  !listed {
    if (substr($0, 1, 1) == "-") next
    if (split($0, words, " ") < 2) { ids[++count] = $0; home[$0] = folder "/" $0; next }
    sweeps[++many_sweeps] = words[1]
    home[words[1]] = folder "/" words[1]
    spans(words[1], words[2], 0, "open")
    names = "yurt-" words[1] "+" words[3]
    gsub(/,/, ",yurt-" words[1] "+", names)
    called[words[1]] = names
    next
  }
  substr($0, 1, 2) == "= " { status = substr($0, 3); next }
  !headed && /^\|COMMENT *\|JOBID\|STATE\|/ { headed = 1; next }
  { comment = substr($0, 2, 10); $0 = substr($0, 13) }
  $6 ~ /^yurt-/ {
    name = $6
    for (at = 7; at <= NF; at++) name = name "|" $at # job names of users may contain anything
    state = $2
    job = $1
    if (comment ~ /^(home_sync|race_wait) $/ && state == "PENDING" && $3 == "JobHeldUser") $3 = "JobHeldUser " substr(comment, 1, 9)
    if (state == "PENDING") $0 = job "|" state "|" $3 "|||" name # the estimated start time changes all the time
    alive = state ~ /^(PENDING|RUNNING|CONFIGURING|SUSPENDED|REQUEUED|REQUEUE_HOLD|REQUEUE_FED|SPECIAL_EXIT|RESV_DEL_HOLD|STOPPED|RESIZING|SIGNALING|STAGE_OUT)$/
    run = substr(name, 6)
    if ((at = index(run, "+")) && (substr(run, 1, at - 1) in called)) { # an array: JOB_7, or JOB_[8-99%4] if pending
      offset = substr(run, at + 1)
      run = substr(run, 1, at - 1)
      sub(/^[0-9]+_/, "", job)
      gsub(/[][]/, "", job)
      if (state == "PENDING" || (alive && job ~ /-/)) spans(run, job, offset, "waits")
      else if (job ~ /[^0-9]/) alive = 0 # tasks cancelled before they started
      else if (!open(run, job + offset)) next # already recorded as finished
      else if (alive) {
        if (state == "RUNNING" && live[run "." (job + offset)] != "+") { running[++many_running] = run; number_of[many_running] = job + offset }
        live[run "." (job + offset)] = state == "RUNNING" ? "+" : "-"
      }
    } else if (alive) live[run] = ((run in live) || state == "RUNNING") ? "+" : "-"
    print | "cat >&4"
    printed = 1
  }
  END {
    if (failed || (printed && close("cat >&4"))) exit 1 # a run or a row is missing
    if (status != "0" || !headed) { print "= silent"; exit }
    for (at = 1; at <= count; at++) if (live[ids[at]] != "-") print live[ids[at]] ids[at] " yurt-" ids[at] " " home[ids[at]]
    for (at = 1; at <= many_sweeps; at++) absent(sweeps[at])
    for (at = 1; at <= many_running; at++) task("+", running[at], number_of[at])
  }') || { echo "the rows of squeue cannot be read" >&2 && exit 1; }
exec 4>&-
[ "$absent" != "= silent" ] || exit 7
[ -n "$absent" ] || exit 0
echo "= folders"
names='' logged='' jobs=''
name() { # name JOB-NAMES: adds jobs to the query of records, each once
  case ,$names, in *,"$1",*) ;; *) names=$names,$1 ;; esac
}
job_of() { # job_of FILE: adds the jobs of a run to the second query of records, each once
  [ -r "$1" ] || return 0
  while read -r job; do
    case $job in '' | *[!0-9]*) ;; *) case ,$jobs, in *,"$job",*) ;; *) jobs=$jobs,$job ;; esac ;; esac
  done < "$1"
}
killed_for_memory() { # whether Slurm itself killed the job; without control groups, it says so only in its errors; sets killed_at
  errors=@ERR_LOG@ killed_at=
  case $id in *.*) made_by=${begun#*.} && errors=../../@SLURM_ERRORS@${made_by%%.*} ;; esac
  tail -c 2000 "$errors" 2> /dev/null | grep -q -i -E "$memory_lines" || return
  killed_at=$(stat -c %Y "$errors" 2> /dev/null)
}
while read -r id called folder; do
  case $id in +*) # after a crash the controller may list finished jobs, and duplicates may be pending: exit.json counts
    if ! cd "$folder" 2> /dev/null || { [ ! -e @EXIT@ ] && [ ! -e @EXIT@.d ]; }; then continue; fi
    id=${id#+} ;;
  esac
  if ! cd "$folder" 2> /dev/null; then # a task makes its folder when it starts
    winner=gone
    case $id in *.*)
      [ ! -d "${folder%/@TASKS@/*}" ] || winner=
      [ ! -e "${folder%/@TASKS@/*}/@CANCEL@" ] || winner=cancelled ;; # no task starts from now on
    esac
    printf '%s|%s|0||||\n' "$id" "$winner"
    name "$called"
    job_of "${folder%/@TASKS@/*}/@JOBS@"
    continue
  fi
  k=0 winner='' begun='' stopped='' over='' ending=''
  while [ -e "@START@$((k + 1))" ] || [ -e "@START@$((k + 1)).d" ]; do k=$((k + 1)); done
  # Start no process here: a thousand runs may have finished since the last poll.
  if read_written @EXIT@ > /dev/null; then ending=$text; else name "$called" && job_of "$folder/@JOBS@"; fi
  { read_written @WINNER@ && winner=$text; read_written "@START@$k" && begun=$text; read_written "@END@$k" && over=$text; } > /dev/null
  if [ -e @CANCEL@ ] || case $id in *.*) [ -e ../../@CANCEL@ ] ;; *) false ;; esac; then
    stopped=cancelled
  elif read_written "@STOPPED@$k" > /dev/null; then
    stopped=$text
  fi
  if [ -z "$ending" ] && [ "$k" -gt 0 ] && killed_for_memory; then stopped="memory $killed_at"; fi
  printf '%s|%s|%s|%s|%s|%s|%s\n' "$id" "$winner" "$k" "$begun" "$stopped" "$over" "$ending"
  case $id in *.*) [ ! -s @METRICS@ ] || logged=yes ;; esac
done << end
$absent
end
cd /
last_lines() { # prints the last line of the files named on standard input
  xargs -0 tail -v -n 1 | cut -b 1-4200 | awk '
    sub(/^==> /, "") && sub(/\/@METRICS@ <==$/, "") {
      many = split($0, parts, "/")
      id = parts[many - 2] "." parts[many]
      next
    }
    id != "" && $0 != "" { print "@" id "|" substr($0, 1, 4000) }'
}
[ -z "$logged" ] || while read -r id called folder; do # for the tasks read above
  case $id in *.*) ;; *) continue ;; esac
  case $id in +*) [ -e "$folder/@EXIT@" ] || [ -e "$folder/@EXIT@.d" ] || continue ;; esac
  [ ! -s "$folder/@METRICS@" ] || printf '%s\0' "$folder/@METRICS@"
done << end | last_lines
$absent
end
[ -n "$names" ] || exit 0
# A job that the controller lost was submitted before the controller's last start.
echo "= controller"
timeout 10 scontrol show config 2> /dev/null | sed -n 's/^BOOT_TIME *= *//p'
date -u +%Y-%m-%dT%H:%M:%S
case $accounting in yes) ;; silent) echo "= silent" && exit 0 ;; *) exit 0 ;; esac
columns=JobID,State,Start,End,NodeList,JobName
records=$(timeout 30 sacct -n -P -X -u "$me" -S "now-${days}days" --name="${names#,}" -o $columns) ||
  { echo "= silent" && exit 0; }
printf '= records\n%s\n' "$records"
unrecorded() { # whether some run has no record
  IFS=,
  for each in ${names#,}; do case $records in *"|$each"*) ;; *) return 0 ;; esac; done
  return 1
}
# Without job ids, sacct omits jobs that were cancelled while they were held or waited for another job.
if [ -n "$jobs" ] && (unrecorded); then timeout 30 sacct -n -P -X -u "$me" -j "${jobs#,}" -o $columns || echo "= silent"; fi
