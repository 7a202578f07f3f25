# Cancels tasks of one sweep; may be repeated. Before it stand gate.sh and close.sh.
# arguments: SWEEP-FOLDER SWEEP. Standard input: the numbers of the tasks, one a line.
# The answer is a line for each: its number, and what stands in its gate, also if nothing else of the sweep is here yet.
numbers=$(cat) failed=
closed=$(printf '%s\n' "$numbers" | { close_tasks "$1" && [ -z "$failed" ]; }) || failed=yes
queue=$(timeout 60 squeue -r -h -u "$(id -un)" -o '%i %j') || exit 7
# Its element in the queue is the one of an array whose number and the array's offset make its own.
jobs=$(printf '%s\n\n%s\n' "$numbers" "$queue" | awk -v sweep="yurt-$2+" '
  !listed { if ($0 == "") listed = 1; else wanted[$1 + 0] = 1; next }
  index($2, sweep) == 1 {
    split($1, parts, "_")
    if ((substr($2, length(sweep) + 1) + parts[2]) in wanted) found[parts[1]] = found[parts[1]] "," parts[2]
  }
  END { for (job in found) print job "_[" substr(found[job], 2) "]" }')
for job in $jobs; do timeout 60 scancel "$job" || exit 7; done
[ -z "$closed" ] || printf '%s\n' "$closed"
[ -z "$failed" ] # the disk is full, or worse: said above. What was in the queue is gone all the same.
