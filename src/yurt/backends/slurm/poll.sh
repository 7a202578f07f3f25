# Looks at many runs in one go. Before it stands gate.sh.
# arguments: ACCOUNTING DAYS. Standard input: ids of runs, and before them a line "= FOLDER" that they are in.
# After the id of a sweep stands which of its tasks have not ended: 0-3,7. Each of them counts as a run ID.NUMBER.
# Then stands what was added to the numbers of its arrays: 0,100.
# The answer, in sections "= NAME": queue: squeue's rows of yurt's jobs; folders: what those left that the queue
# does not hold; records: sacct's rows of those that left no ending.
accounting=$1 days=$2
me=$(id -un)
export TZ=UTC LC_ALL=C SLURM_BITSTR_LEN=0 # the numbers of all tasks that wait, however many
unset SLURM_TIME_FORMAT SQUEUE_FORMAT SQUEUE_STATES SACCT_FORMAT
echo "= queue"
exec 4>&1
# Rows go out as they come. Those who ended may still be in the queue, and those about to: they count as absent.
absent=$({
  cat
  echo
  timeout 60 squeue -h -t all -u "$me" -o '%i|%T|%r|%S|%N|%j'
  echo "= $?"
} | awk -F'|' '
  $0 == "" { listed = 1; next }
  !listed && substr($0, 1, 2) == "= " { folder = substr($0, 3); next }
  function each_task(id, text, offset, what,   parts, bounds, many, at, number) {
    sub(/%.*/, "", text)
    many = split(text, parts, ",")
    for (at = 1; at <= many; at++) {
      if (split(parts[at], bounds, "-") < 2) bounds[2] = bounds[1]
      for (number = bounds[1] + 0; number <= bounds[2] + 0; number++)
        if (what == "open") { ids[++count] = id "." (number + offset); home[count] = folder "/" id "/tasks/" (number + offset) }
        else live[id "." (number + offset)] = what
    }
  }
  !listed {
    if (split($0, words, " ") > 1) {
      each_task(words[1], words[2], 0, "open")
      offsets[words[1]] = words[3]
    }
    else { ids[++count] = $0; home[count] = folder "/" $0 }
    next
  }
  substr($0, 1, 2) == "= " { status = substr($0, 3); next }
  $6 ~ /^yurt-/ {
    name = $6
    for (at = 7; at <= NF; at++) name = name "|" $at # a name that a person chose may hold anything
    if ($2 == "PENDING") $0 = $1 "|" $2 "|" $3 "|||" name # when it will start is a guess that changes all the time
    print | "cat >&4"
    if ($2 ~ /^(PENDING|RUNNING|CONFIGURING|SUSPENDED|REQUEUED|REQUEUE_HOLD|REQUEUE_FED|SPECIAL_EXIT|RESV_DEL_HOLD|STOPPED|RESIZING|SIGNALING|STAGE_OUT)$/)
      {
        run = substr(name, 6)
        if (at = index(run, "+")) { # an array: JOB_7, or JOB_[8-99%4] of those that wait
          text = $1
          sub(/^[0-9]+_/, "", text)
          gsub(/[][]/, "", text)
          each_task(substr(run, 1, at - 1), text, substr(run, at + 1), $2 == "RUNNING" ? "+" : "-")
        } else live[run] = ((run in live) || $2 == "RUNNING") ? "+" : "-"
      }
  }
  END {
    close("cat >&4")
    if (status != "0") print "= silent"
    else for (at = 1; at <= count; at++) if (live[ids[at]] != "-") {
      sweep = ids[at]
      names = "yurt-" sweep
      if (sub(/[.].*/, "", sweep)) { names = "yurt-" sweep "+" offsets[sweep]; gsub(/,/, ",yurt-" sweep "+", names) }
      print live[ids[at]] ids[at] " " names " " home[at]
    }
  }')
exec 4>&-
[ "$absent" != "= silent" ] || exit 7
[ -n "$absent" ] || exit 0
echo "= folders"
names=
name() { # name JOB-NAMES: of jobs whose records are wanted, each once
  case ,$names, in *,"$1",*) ;; *) names=$names,$1 ;; esac
}
while read -r id called folder; do
  case $id in +*) # a controller that crashed may hold what ended long ago, and duplicates wait: the ending counts
    cd "$folder" 2> /dev/null && { [ -e exit.json ] || [ -e exit.json.d ]; } || continue
    id=${id#+} ;;
  esac
  if ! cd "$folder" 2> /dev/null; then # a task makes its own folder, when it starts
    said=gone
    case $id in *.*) [ ! -d "${folder%/tasks/*}" ] || said= ;; esac
    printf '%s|%s|0||||\n' "$id" "$said"
    name "$called"
    continue
  fi
  k=0
  while [ -e "gen.$((k + 1))" ] || [ -e "gen.$((k + 1)).d" ]; do k=$((k + 1)); done
  ending=$(stands exit.json) || name "$called"
  if [ -e cancel ]; then stopped=cancelled; else stopped=$(stands "stopped.$k"); fi
  printf '%s|%s|%s|%s|%s|%s|%s\n' "$id" "$(stands winner)" "$k" "$(stands "gen.$k")" "$stopped" \
    "$(stands "end.$k")" "$ending"
  case $id in *.*) [ ! -s metrics.jsonl ] || printf '@%s|%s\n' "$id" "$(tail -n 1 metrics.jsonl | head -c 4000)" ;; esac
done << end
$absent
end
[ "$accounting" = yes ] && [ -n "$names" ] || exit 0
cd /
records=$(timeout 60 sacct -n -P -X -u "$me" -S "now-${days}days" --name="${names#,}" \
  -o JobID,State,Start,End,NodeList,JobName) && printf '= records\n%s\n' "$records" || echo "= silent"
