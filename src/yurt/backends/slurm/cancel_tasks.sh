# Cancels tasks of one sweep; safe to retry. Needs gate.sh and close.sh before it.
# arguments: SWEEP-FOLDER SWEEP. Standard input: task numbers, one per line.
# Output is a line for each task: its number and the content of its gate, even if the sweep is not uploaded yet.
numbers=$(cat) failed=
closed=$(printf '%s\n' "$numbers" | { close_tasks "$1" && [ -z "$failed" ]; }) || failed=yes
queue=$(timeout 60 squeue -r -h -u "$(id -un)" -o '%i %j') || exit 7
# The number of a task is its array index plus the offset of its array.
jobs=$(printf '%s\n\n%s\n' "$numbers" "$queue" | awk -v sweep="yurt-$2+" '
  !listed { if ($0 == "") listed = 1; else wanted[$1 + 0] = 1; next }
  index($2, sweep) == 1 {
    split($1, parts, "_")
    if ((substr($2, length(sweep) + 1) + parts[2]) in wanted) found[parts[1]] = found[parts[1]] "," parts[2]
  }
  END { for (job in found) print job "_[" substr(found[job], 2) "]" }')
for job in $jobs; do timeout 60 scancel "$job" || exit 7; done
[ -z "$closed" ] || printf '%s\n' "$closed"
[ -z "$failed" ] # such as a full disk; the reason is printed above. The jobs are cancelled anyway.
