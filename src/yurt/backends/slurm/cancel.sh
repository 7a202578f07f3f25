# Cancels one run, also one that is on its way here; may be repeated. Before it stands gate.sh.
# arguments: RUN-FOLDER RUN. The answer is one line: what stands in `winner`.
umask 077
run=$1 id=$2
me=cancel.$(uname -n).$$
mkdir -p "$run" && cd "$run" || exit 1
winner=$(put winner cancelled) || exit 1
[ "$winner" = cancelled ] || : > cancel
timeout 60 scancel -u "$(id -un)" --name="yurt-$id" || exit 7
printf '%s\n' "$winner"
