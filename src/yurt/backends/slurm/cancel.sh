# Cancels one run, even during its upload; safe to retry. Needs gate.sh and close.sh before it.
# arguments: RUN-FOLDER RUN, where RUN may be a sweep.
# Output is one line: the content of `winner`; for a sweep, `cancelled` and the tasks that had started.
id=$2 me_here=$(id -un)
case $id in
  s*)
    close_sweep "$1"
    jobs=$(timeout 60 squeue -h -u "$me_here" -o '%F %j') || exit 7
    for job in $(printf '%s\n' "$jobs" | awk -v sweep="yurt-$id+" 'index($2, sweep) == 1 { print $1 }' | sort -u); do
      timeout 60 scancel "$job" || exit 7
    done
    [ -z "$winner" ] || winner="$winner $(begun_tasks "$1")"
    ;;
  *)
    close_gate "$1"
    timeout 60 scancel -u "$me_here" --name="yurt-$id" || exit 7
    ;;
esac
[ -n "$winner" ] || exit 1 # such as a full disk; the reason is printed above. The jobs are cancelled anyway.
printf '%s\n' "$winner"
