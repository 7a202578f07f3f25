# Prints one line for each node: name, partitions, state, CPUs, memory in MB and GPUs with what jobs use of each, load.
export LC_ALL=C
{
  if command -v timeout > /dev/null 2>&1; then set -- timeout -k 2 20; else set --; fi
  "$@" scontrol -d -o show node
} | awk '
  function field(key,  at, rest) {
    at = index(line, " " key "=")
    if (!at) return ""
    rest = substr(line, at + length(key) + 2)
    return substr(rest, 1, index(rest " ", " ") - 1)
  }
  /^NodeName=/ {
    at = index($0, " Reason=")
    line = " " (at ? substr($0, 1, at - 1) : $0)
    gres = field("Gres"); used = field("GresUsed")
    gsub(/\([^)]*\)/, "", gres); gsub(/\([^)]*\)/, "", used)
    cpus = field("CPUEfctv")
    if (cpus == "") cpus = field("CPUTot")
    print "node|" field("NodeName") "|" field("Partitions") "|" field("State") "|" cpus "|" field("CPUAlloc") "|" \
      field("RealMemory") "|" field("AllocMem") "|" gres "|" used "|" field("CPULoad")
  }'
