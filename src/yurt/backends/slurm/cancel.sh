# Cancels one run, even during its upload; safe to retry. Needs gate.sh, close.sh and end_jobs.sh before it.
# arguments: RUN-FOLDER RUN, where RUN may be a sweep.
# Output is one line: the content of `winner`; for a sweep, `cancelled` and the tasks that had started. Exit code 9: a job
# is not seen ending; standard error names it.
id=$2
case $id in
  s*)
    close_sweep "$1"
    [ -z "$winner" ] || winner="$winner $(begun_tasks "$1")" ;;
  *)
    close_gate "$1" ;;
esac
cancel_by_name() { timeout 5 scancel -u "$(id -un)" --name="yurt-$id"; }
rows_of_jobs() {
  awk -F '|' -v run="$id" '
    { job = $1; state = $2; sub(/_.*/, "", job); sub(/^[^|]*[|][^|]*[|]/, "") } # what is left is the name, which may contain anything
    $0 == "yurt-" run || index($0, "yurt-" run "+") == 1 { print job, state, run }'
}
end_jobs
if [ -z "$left" ]; then
  case $id,$winner in s*,cancelled | s*,'cancelled ' | *,cancelled | *,ended | *,) ;; *) goes_on "$id" "$1" ;; esac
fi
[ -z "$left" ] || { printf '%s\n' "$left" >&2 && exit 9; }
[ -n "$winner" ] || exit 1 # such as a full disk; the reason is printed above. The jobs are cancelled anyway.
printf '%s\n' "$winner"
