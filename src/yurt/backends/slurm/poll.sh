# Looks at many runs in one go. Before it stands gate.sh.
# arguments: ACCOUNTING DAYS. Standard input: ids of runs, and before them a line "= FOLDER" that they are in.
# The answer, in sections "= NAME": queue: squeue's rows of yurt's jobs; folders: what those left that the queue
# does not hold; records: sacct's rows of those that left no ending.
accounting=$1 days=$2
me=$(id -un)
export TZ=UTC LC_ALL=C
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
  !listed { ids[++count] = $0; home[count] = folder; next }
  substr($0, 1, 2) == "= " { status = substr($0, 3); next }
  $6 ~ /^yurt-/ {
    name = $6
    for (at = 7; at <= NF; at++) name = name "|" $at # a name that a person chose may hold anything
    if ($2 == "PENDING") $0 = $1 "|" $2 "|" $3 "|||" name # when it will start is a guess that changes all the time
    print | "cat >&4"
    if ($2 ~ /^(PENDING|RUNNING|CONFIGURING|SUSPENDED|REQUEUED|REQUEUE_HOLD|REQUEUE_FED|SPECIAL_EXIT|RESV_DEL_HOLD|STOPPED|RESIZING|SIGNALING|STAGE_OUT)$/)
      live[substr(name, 6)] = ((substr(name, 6) in live) || $2 == "RUNNING") ? "+" : "-"
  }
  END {
    close("cat >&4")
    if (status != "0") print "= silent"
    else for (at = 1; at <= count; at++) if (live[ids[at]] != "-") print live[ids[at]] ids[at] " " home[at] "/" ids[at]
  }')
exec 4>&-
[ "$absent" != "= silent" ] || exit 7
[ -n "$absent" ] || exit 0
echo "= folders"
names=
while read -r id folder; do
  case $id in +*) # a controller that crashed may hold what ended long ago, and duplicates wait: the ending counts
    cd "$folder" 2> /dev/null && { [ -e exit.json ] || [ -e exit.json.d ]; } || continue
    id=${id#+} ;;
  esac
  cd "$folder" 2> /dev/null || { printf '%s|gone|||||\n' "$id" && names=$names,yurt-$id && continue; }
  k=0
  while [ -e "gen.$((k + 1))" ] || [ -e "gen.$((k + 1)).d" ]; do k=$((k + 1)); done
  ending=$(stands exit.json) || names=$names,yurt-$id
  if [ -e cancel ]; then stopped=cancelled; else stopped=$(stands "stopped.$k"); fi
  printf '%s|%s|%s|%s|%s|%s|%s\n' "$id" "$(stands winner)" "$k" "$(stands "gen.$k")" "$stopped" \
    "$(stands "end.$k")" "$ending"
done << end
$absent
end
[ "$accounting" = yes ] && [ -n "$names" ] || exit 0
cd /
records=$(timeout 60 sacct -n -P -X -u "$me" -S "now-${days}days" --name="${names#,}" \
  -o JobIDRaw,State,Start,End,NodeList,JobName) && printf '= records\n%s\n' "$records" || echo "= silent"
