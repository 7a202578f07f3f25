# Looks at many runs in one go. Before it stands gate.sh.
# arguments: ACCOUNTING DAYS. Standard input: a line "RUN FOLDER" each. The answer, in sections "= NAME":
# queue: squeue's rows of yurt's jobs; folders: what those left that the queue does not hold; records: sacct's rows.
accounting=$1 days=$2
me=$(id -un)
export TZ=UTC LC_ALL=C
unset SLURM_TIME_FORMAT SQUEUE_FORMAT SQUEUE_STATES SACCT_FORMAT
wanted=$(cat)
queue=$(timeout 60 squeue -h -t all -u "$me" -o '%i|%T|%r|%S|%N|%j') || exit 7
echo "= queue"
# Jobs that ended may still be in the queue, and those about to: what they left is looked at too.
printf '%s\n=\n%s\n' "$queue" "$wanted" | awk -F'|' '
  $0 == "=" && !listed { listed = 1; next }
  !listed {
    name = $6
    for (i = 7; i <= NF; i++) name = name "|" $i
    if (substr(name, 1, 5) != "yurt-") next
    print
    if ($2 ~ /^(PENDING|RUNNING|CONFIGURING|SUSPENDED|REQUEUED|REQUEUE_HOLD|REQUEUE_FED|SPECIAL_EXIT|RESV_DEL_HOLD|STOPPED|RESIZING|SIGNALING|STAGE_OUT)$/)
      live[substr(name, 6)] = 1
    next
  }
  listed && $0 != "" {
    id = $0
    sub(/ .*/, "", id)
    if (!(id in live)) absent = absent $0 "\n"
  }
  END { printf "= absent\n%s", absent }' | {
  names=
  while IFS= read -r line && [ "$line" != "= absent" ]; do printf '%s\n' "$line"; done
  echo "= folders"
  while read -r id folder; do
    cd "$folder" 2> /dev/null || { printf '%s|gone|||\n' "$id" && names=$names,yurt-$id && continue; }
    k=0
    while [ -e "gen.$((k + 1))" ] || [ -e "gen.$((k + 1)).d" ]; do k=$((k + 1)); done
    ending=$(stands exit.json) || names=$names,yurt-$id
    printf '%s|%s|%s|%s|%s\n' "$id" "$(stands winner)" "$k" "$(stands "stopped.$k")" "$ending"
  done
  [ "$accounting" = yes ] && [ -n "$names" ] || exit 0
  cd /
  records=$(timeout 60 sacct -n -P -X -u "$me" -S "now-${days}days" --name="${names#,}" \
    -o JobIDRaw,State,Start,End,NodeList,JobName) && printf '= records\n%s\n' "$records" || echo "= silent"
}
