# Cancels tasks of one sweep; safe to retry. Needs the scripts that cancel.sh needs.
# arguments: SWEEP-FOLDER SWEEP. Standard input: task numbers, one per line.
# Output is a line for each task: its number and the content of its gate, even if the sweep is not uploaded yet.
# Exit code 9: as in cancel.sh.
failed='' sweep=$2
numbers=$(cat) || exit 1
closed=$(printf '%s\n' "$numbers" | { close_tasks "$1" && [ -z "$failed" ]; }) || failed=yes
# The number of a task is its array index plus the offset of its array.
rows_of_jobs() {
  printf '%s\n\n%s\n' "$numbers" "$rows" | awk -F '|' -v sweep="yurt-$sweep+" '
    !listed { if ($0 == "") listed = 1; else wanted[$1 + 0] = 1; next }
    { job = $1; state = $2; sub(/^[^|]*[|][^|]*[|]/, "") }
    index($0, sweep) == 1 {
      split(job, parts, "_")
      if ((substr($0, length(sweep) + 1) + parts[2]) in wanted) print job, state, sweep
    }'
}
cancel_by_name() { :; }
end_jobs -r
[ -z "$left" ] || { printf '%s\n' "$left" >&2 && exit 9; }
[ -z "$closed" ] || printf '%s\n' "$closed"
[ -z "$failed" ] # such as a full disk; the reason is printed above. The jobs are cancelled anyway.
