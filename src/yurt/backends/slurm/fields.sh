# Functions of the scripts that read the output of scontrol.
within() { # within SECONDS COMMAND
  if command -v timeout > /dev/null 2>&1; then timeout -k 2 "$@"; else shift && "$@"; fi
}
# For awk: read_node splits a line of `scontrol -o show node` into `line` and `reason`; field(KEY) is a value of `line`.
# shellcheck disable=SC2034 # the scripts that begin with this one use it
nodes_awk='
  function field(key,  at, rest) {
    at = index(line, " " key "=")
    if (!at) return ""
    rest = substr(line, at + length(key) + 2)
    return substr(rest, 1, index(rest " ", " ") - 1)
  }
  function read_node(  at) {
    at = index($0, " Reason=")
    reason = at ? substr($0, at + 8) : ""
    line = " " (at ? substr($0, 1, at - 1) : $0)
  }
  function gpus(key,  found) {
    found = field(key)
    gsub(/\([^)]*\)/, "", found)
    return found
  }
  function cpus() { return field("CPUEfctv") == "" ? field("CPUTot") : field("CPUEfctv") }
'
