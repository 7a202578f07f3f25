# Prints one line for each node: name, partitions, state, CPUs, memory in MB and GPUs with what jobs use of each, load.
export LC_ALL=C
nodes=$(within "${yurt_patience:-20}" scontrol -d -o show node) || exit 7
printf '%s\n' "$nodes" | awk "$nodes_awk"'
  /^NodeName=/ {
    read_node()
    print "node|" field("NodeName") "|" field("Partitions") "|" field("State") "|" cpus() "|" field("CPUAlloc") "|" \
      field("RealMemory") "|" field("AllocMem") "|" gpus("Gres") "|" gpus("GresUsed") "|" field("CPULoad")
  }'
