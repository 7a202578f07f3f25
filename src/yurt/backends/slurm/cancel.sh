# Cancels one run, also one that is on its way here; may be repeated. Before it stand gate.sh and close.sh.
# arguments: RUN-FOLDER RUN. The answer is one line: what stands in `winner`.
id=$2
close_gate "$1"
timeout 60 scancel -u "$(id -un)" --name="yurt-$id" || exit 7
[ -n "$winner" ] || exit 1 # the disk is full, or worse: said above. What was in the queue is gone all the same.
printf '%s\n' "$winner"
