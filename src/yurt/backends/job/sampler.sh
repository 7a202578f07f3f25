# The sampler: records what the processes of a start use on this node, in one small file. Needs /proc.
# Lines: "= START NODES CPUS MB" (what the job has on this node, - if unknown), then for each sample
# "START SECONDS CPU STEPS MB PEAK GPU GPU-MB": CPU seconds so far, those of them in steps of srun, memory since the last
# line and the most so far, mean utilization of GPUs and the most memory on one of them since the last line.
proc=/proc cgroups=/sys/fs/cgroup
nap=2 # seconds after which it notices at the latest that the job is gone
# The control group of this job, if it has one, for this and for `used`.
# shellcheck disable=SC2016
control_group='
  function find_cgroups(   file, text, at, parts, path) { # only of this job: others contain other processes
    file = proc "/self/cgroup"
    while (job_id != "" && (getline text < file) > 0) {
      at = match(text, "/job_" job_id "(/|$)")
      if (!at || split(text, parts, ":") < 3) continue
      path = substr(text, length(parts[1] parts[2]) + 3, at - length(parts[1] parts[2]) - 3) "/job_" job_id
      if (parts[2] == "") { memory_at = cpu_at = cgroups path; version = 2 }
      else if (("," parts[2] ",") ~ /,memory,/) memory_at = cgroups "/memory" path
      else if (("," parts[2] ",") ~ /,cpuacct,/) cpu_at = cgroups "/cpuacct" path
    }
    close(file)
  }
  function read_group(   file, text, words) { # sets, in KB: anonymous and shared memory, the file cache, and the most so far of all
    group_least = group_cache = group_most = 0
    if (memory_at == "") return
    file = memory_at "/memory.stat"
    while ((getline text < file) > 0) {
      split(text, words, " ")
      if (words[1] == (version == 2 ? "anon" : "total_rss")) group_least += words[2] / 1024
      else if (words[1] == (version == 2 ? "shmem" : "total_shmem")) { group_least += words[2] / 1024; group_cache -= words[2] / 1024 }
      else if (words[1] == (version == 2 ? "file" : "total_cache")) group_cache += words[2] / 1024 # which counts shared memory
    }
    close(file)
    file = memory_at (version == 2 ? "/memory.peak" : "/memory.max_usage_in_bytes")
    if ((getline text < file) > 0 && text / 1024 >= group_least) group_most = text / 1024
    close(file)
  }'
# Memory: anonymous pages of each process, which are counted again in forks that share them, and shared memory once, at
# its largest. What a process had between samples comes from its high-water mark, if that has risen since the last one.
# shellcheck disable=SC2016
sampler='
  function now(   text) { getline text < (proc "/uptime"); close(proc "/uptime"); return text + 0 }
  function stat_of(pid,   file, text, part) { # sets field: STATE PARENT GROUP SESSION ... UTIME at 12 ... START at 20
    file = proc "/" pid "/stat"
    text = ""
    while ((getline part < file) > 0) text = text part
    close(file)
    is_stepd = index(text, "(slurmstepd) ")
    sub(/^.*\) /, "", text)
    return split(text, field, " ") >= 20
  }
  function step_of(pid,   file, text) { # whether a slurmstepd runs a step of this job: "slurmstepd: [12.0]"
    file = proc "/" pid "/cmdline"
    text = ""
    getline text < file
    close(file)
    if (!index(text, "slurmstepd: [" job_id ".")) return ""
    return index(text, "." "batch") ? "batch" : index(text, "." "extern") ? "" : "step"
  }
  function root_of(pid,   found) { # "batch" or the id of the process that runs its step; "" if it is not of this start
    if (pid in root) return root[pid]
    if (!(pid in parent)) return ""
    root[pid] = ""
    if (pid == child || session[pid] == child) found = "batch"
    else if (pid in stepd) found = stepd[pid] == "step" ? pid : stepd[pid]
    else if (pid != job && session[pid] != mine) found = root_of(parent[pid])
    return root[pid] = found
  }
  function memory_of(pid,   file, text, words, anon, rss, high) { # adds to total, grown and shared, all in KB
    file = proc "/" pid "/status"
    anon = -1
    rss = high = mapped = shm = 0
    while ((getline text < file) > 0) {
      if (text !~ /^(VmHWM|VmRSS|Rss)/) continue
      split(text, words, /[: \t]+/)
      if (words[1] == "VmHWM") high = words[2]
      else if (words[1] == "VmRSS") rss = words[2]
      else if (words[1] == "RssAnon") anon = words[2]
      else if (words[1] == "RssFile") mapped = words[2]
      else if (words[1] == "RssShmem") { shm = words[2]; break }
    }
    close(file)
    if (anon < 0) anon = rss
    total += anon
    if (shm > shared) shared = shm
    if (high > highest[pid] && high - mapped - shm > anon) grown += high - mapped - shm - anon
    marks[pid] = high
  }
  function group_cpu(   file, text, words, found) { # seconds; -1 if unknown
    found = -1
    if (cpu_at == "") return found
    file = cpu_at (version == 2 ? "/cpu.stat" : "/cpuacct.usage")
    while ((getline text < file) > 0) {
      split(text, words, " ")
      if (version != 2) found = words[1] / 1e9
      else if (words[1] == "usage_usec") found = words[2] / 1e6
    }
    close(file)
    return found
  }
  function bounded(kb) { # between what the control group has and what it had at most
    read_group()
    if (group_most && kb > group_most) kb = group_most
    return kb > group_least ? kb : group_least
  }
  function look(   count, pids, at, pid, name, sum, each, kb) {
    split("", parent)
    split("", session)
    split("", spent)
    split("", stepd)
    split("", root)
    split("", marks)
    split("", sum)
    if (looks++ % 8 == 0) split("", others) # their ids may have been reused
    count = split(listed, pids, " ")
    for (at = 1; at <= count; at++) {
      pid = pids[at]
      sub(/^.*\//, "", pid)
      if ((pid in others) || !stat_of(pid)) continue
      parent[pid] = field[2]
      session[pid] = field[4]
      spent[pid] = (field[12] + field[13] + field[14] + field[15]) / 100
      if (is_stepd && job_id != "" && (name = step_of(pid)) != "") stepd[pid] = name
    }
    total = grown = shared = 0
    for (pid in parent) {
      name = root_of(pid)
      if (name == "") { if (!(pid in stepd)) others[pid] = 1; continue }
      if (pid in stepd) { if (name != "batch") sum[name] += spent[pid]; continue }
      sum[name] += spent[pid]
      memory_of(pid)
    }
    split("", highest)
    for (pid in marks) highest[pid] = marks[pid]
    for (each in sum) if (sum[each] > most_of[each]) most_of[each] = sum[each]
    steps = 0
    for (each in most_of) if (each != "batch") steps += most_of[each]
    own = most_of["batch"] + 0
    kb = group_cpu()
    if (kb >= 0 && kb - group_before - own > steps) steps = kb - group_before - own
    kb = bounded(total + grown + shared) / 1024
    if (kb > memory) memory = kb
    if (kb > peak) peak = kb
  }
  function look_at_gpus(   text, words, count, sum) {
    while ((smi | getline text) > 0) {
      if (split(text, words, /, */) < 2 || words[1] !~ /^[0-9.]+$/) continue
      count++
      sum += words[1]
      if (words[2] ~ /^[0-9.]+$/ && words[2] + 0 > gpu_memory) gpu_memory = words[2] + 0
    }
    if (close(smi) || !count) { if (++failures >= 3) smi = "" } else { gpu_sum += sum / count; gpus++ }
  }
  function line() {
    text_of = sprintf("%d %.1f %.2f %.2f %.0f %.0f %s %s", start, elapsed, own + steps, steps, memory + 0.499, peak + 0.499,
      gpus ? sprintf("%.0f", gpu_sum / gpus) : "-", gpus ? sprintf("%.0f", gpu_memory) : "-")
    memory = gpu_sum = gpus = gpu_memory = 0
    return text_of
  }
  function larger(one, two) { return two == "-" || (one != "-" && one + 0 > two + 0) ? one : two }
  function thin(   at, count, one, two, gpu) { # joins lines in pairs, and from now on samples, so that the file stays small
    for (at = 1; at <= lines; at += 2) {
      if (at < lines && split(kept[at], one, " ") == 8 && split(kept[at + 1], two, " ") == 8 && one[1] == two[1]) {
        gpu = one[7] == "-" ? two[7] : two[7] == "-" ? one[7] : sprintf("%.0f", (one[7] + two[7]) / 2)
        kept[++count] = two[1] " " two[2] " " two[3] " " two[4] " " larger(one[5], two[5]) " " two[6] " " gpu " " larger(one[8], two[8])
      } else {
        kept[++count] = kept[at]
        if (at < lines) kept[++count] = kept[at + 1]
      }
    }
    lines = count
  }
  function naps(count,   text) {
    for (text = "."; count >= 1.5; count--) text = text " ."
    return text
  }
  BEGIN {
    most_lines = 400
    # A zombie is gone too: process 1 may reap it late.
    alive = "{ read -r line < " proc "/" job "/stat; } 2> /dev/null && case ${line##*) } in [ZX]*) false ;; esac"
    while ((getline text < file) > 0) if (text ~ /^[=0-9]/) kept[++lines] = text # of earlier starts
    close(file)
    stat_of("self")
    mine = field[4]
    find_cgroups()
    group_before = group_cpu()
    begun = now() - 0.4 # see main.sh
    kept[++lines] = head
    print head
    gap = 0
    pause = 0.1
    while (1) {
      # Long pauses are several short ones, so that it ends soon after the job, whatever killed that.
      command = "sleep " sprintf("%.1f", pause < nap ? pause : nap) (pause < 1 ? " 2> /dev/null || sleep 1" : "")
      if (pause > nap) command = "for _nap in " naps(pause / nap) "; do " alive " || exit; " command "; done"
      command = command "; " alive " && echo " proc "/[0-9]*"
      listed = ""
      command | getline listed
      close(command)
      if (listed == "" || !stat_of(job) || field[20] != born) exit
      elapsed = now() - begun
      look()
      if (smi != "" && elapsed >= gpus_due) { look_at_gpus(); gpus_due = elapsed + (elapsed < 30 ? 5 : 30) }
      # Its own cost is limited, to 0.3 % of a core in the long run.
      stat_of("self")
      cost = (field[12] + field[13] + field[14] + field[15]) / 100
      pause = elapsed / 2
      if (pause > 2) pause = elapsed > 20 ? elapsed / 10 : 2
      if (pause < 0.2) pause = 0.2
      if (pause > 30) pause = 30
      if (cost > 0.1 + 0.003 * elapsed) pause = (cost - 0.1) / 0.003 - elapsed + pause
      if (pause > 600) pause = 600
      if (elapsed < recorded + gap && peak < 1.02 * told) continue
      recorded = elapsed
      batch = (batch == "" ? "" : batch "\n") (kept[++lines] = line())
      if (lines >= most_lines) {
        thin()
        gap = gap ? 2 * gap : 55
        if (lines >= most_lines) most_lines *= 2 # many starts
        print "<"
        for (at = 1; at <= lines; at++) print kept[at]
        print ">"
      } else if (peak > 1.02 * told || risen || elapsed - flushed >= (elapsed < 300 ? elapsed / 5 : 60)) {
        print batch
        print "."
      } else continue
      fflush()
      batch = ""
      risen = peak > 1.02 * told # then the next sample shows whether that was all
      told = peak
      flushed = elapsed
    }
  }'
sample() { # sample K CHILD JOB BORN: writes samples until this process, JOB, ends or kills it
  trap '' USR1 USR2 HUP TERM INT # ignore signals sent to all processes of the job
  LC_ALL=C awk -v start="$1" -v child="$2" -v job="$3" -v born="$4" -v job_id="$(slurm_job)" -v proc="$proc" -v cgroups="$cgroups" \
    -v nap="$nap" -v file=@USAGE@ -v head="= $1 ${SLURM_JOB_NUM_NODES:-1} ${SLURM_CPUS_ON_NODE:--} $(memory_limit)" -v smi="$(gpu_query)" -f /dev/stdin << end 2> /dev/null | keep_samples
$control_group
$sampler
end
}
slurm_job() {
  [ "$kind" != slurm ] || printf %s "${SLURM_JOB_ID-}"
}
memory_limit() { # prints the memory that this job has on this node, in MB; - if unknown
  case ${SLURM_MEM_PER_CPU-},${SLURM_CPUS_ON_NODE-} in
    [1-9]*,[1-9]*) echo $((SLURM_MEM_PER_CPU * SLURM_CPUS_ON_NODE)) ;;
    *) echo "${SLURM_MEM_PER_NODE:--}" ;;
  esac
}
gpu_query() { # prints the command that queries the GPUs of this job, if it has any
  command -v nvidia-smi > /dev/null 2>&1 && command -v timeout > /dev/null 2>&1 || return 0
  devices=${CUDA_VISIBLE_DEVICES-}
  case $devices in
    '') [ -n "$gpus" ] || return 0 ;;
    *[!A-Za-z0-9,-]* | NoDevFiles | -*) return 0 ;;
  esac
  echo "timeout -k 2 20 nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits${devices:+ -i $devices}"
}
keep_samples() { # adds batches of lines, each up to a ".", to the file; the lines between < and > replace it
  batch=
  while IFS= read -r line; do
    case $line in
      '<') batch= ;;
      .) printf %s "$batch" >> @USAGE@ && batch= ;;
      '>') printf %s "$batch" > "@USAGE@.new" && mv -f "@USAGE@.new" @USAGE@ && batch= ;;
      *) batch=$batch$line$newline ;;
    esac
    [ ${#batch} -lt 60000 ] || batch= # a full disk
  done 2> /dev/null
}
spent() { # prints the CPU time of the processes that this one has waited for, in hundredths of a second, and the time
  { read -r line < "$proc/$$/stat" && read -r uptime _idle < "$proc/uptime"; } 2> /dev/null || return 0
  # shellcheck disable=SC2086 # fields after the name in parentheses
  set -- ${line##*) }
  echo "$((${14} + ${15})) $uptime"
}
# The kernel keeps the peak of the largest process of an ordinary run on this machine, in `largest`, in KB. It includes
# mapped files, and no other process: it only counts if the peak of all is unknown, and no sample saw more.
used() { # prints two lines: the last sample of this start, and a field for exit.json of what all starts used
  [ -n "$spent_before" ] || [ -e @USAGE@ ] || return 0
  samples=/dev/null
  [ ! -r @USAGE@ ] || samples=@USAGE@
  LC_ALL=C awk -v k="$k" -v before="$spent_before" -v after="$(spent)" -v nodes="${SLURM_JOB_NUM_NODES:-1}" -v cpus="${SLURM_CPUS_ON_NODE:--}" \
    -v limit="$(memory_limit)" -v largest="$largest" -v cause="${cause-}" -v job_id="$(slurm_job)" -v proc="$proc" -v cgroups="$cgroups" "$control_group"'
    $1 == "=" && NF == 5 { cpus = $4; limit = $5; next }
    NF != 8 || /[^-0-9. ]/ { next }
    {
      if ($1 != last) { since = 0; last = $1 }
      if ($7 != "-") { gpu += $7 * ($2 - since + 0.1); gpu_time += $2 - since + 0.1 }
      if ($8 != "-" && $8 > gpu_mb) gpu_mb = $8
      rate = $2 > since ? ($4 - steps[$1]) / ($2 - since) : 0
      since = seconds[$1] = $2
      cpu[$1] = $3
      steps[$1] = $4
      if ($6 > 0) { seen[$1] = $2; rises[$1] = $6 > 1.05 * top[$1] }
      if ($6 > top[$1]) top[$1] = $6
      if ($6 > peak) peak = $6
      memory = $5
    }
    END {
      if (split(before, one, " ") == 2 && split(after, two, " ") == 2 && two[2] - one[2] > seconds[k]) {
        # Steps of srun are not processes of this one: since the last sample, they went on as before it.
        tail = two[2] - one[2] - seconds[k]
        if (tail > seconds[k]) tail = seconds[k] # longer than any pause of the sampler: it has been killed
        if (rate > cpus + 0 && cpus + 0 > 0) rate = cpus + 0
        if (last == k && steps[k] > 0) steps[k] += rate * tail
        seconds[k] = two[2] - one[2]
      }
      if ((two[1] - one[1]) / 100 + steps[k] > cpu[k]) cpu[k] = (two[1] - one[1]) / 100 + steps[k]
      # The peak of a start is known if it did not rise any more in its last sample, and that was neither in its first
      # moments nor long before the end.
      for (each in seen) if (seconds[each] >= 1 && seen[each] >= seconds[each] / 2 && !rises[each] && top[each] == peak) known = 1
      if (cause == "out_of_memory" && peak < 0.8 * limit) known = 0 # too fast for the samples
      if (!known) {
        find_cgroups()
        read_group()
        # With little in the file cache, the most of the control group is that of processes.
        if (group_most && group_cache < group_most / 8 + 8192) {
          known = 1
          if ((group_most - group_cache) / 1024 > peak) peak = (group_most - group_cache) / 1024 + 0.999
        }
      }
      if (!known && largest > 0 && largest / 1024 >= peak - 1) { of_largest = 1; peak = memory = largest / 1024 + 0.999 }
      else if (!known) peak = 0
      if (k in seconds) printf "%d %.1f %.2f %.2f %d %d - -", k, seconds[k], cpu[k], steps[k], memory, peak
      print ""
      for (each in seconds) { all += seconds[each]; sum += cpu[each] }
      printf ",\"usage\":{\"seconds\":%.2f,\"cpu_seconds\":%.2f", all, sum
      if (peak > 0) printf ",\"memory_mb\":%d", peak
      if (of_largest) printf ",\"largest_process\":true"
      if (gpu_time) printf ",\"gpu_percent\":%.1f,\"gpu_memory_mb\":%d", gpu / gpu_time, gpu_mb
      printf ",\"nodes\":%d", nodes
      if (cpus ~ /^[0-9]+$/) printf ",\"cpus\":%d", cpus
      if (limit ~ /^[1-9][0-9]*$/) printf ",\"memory_limit_mb\":%d", limit
      print "}"
    }' "$samples" 2> /dev/null
}
