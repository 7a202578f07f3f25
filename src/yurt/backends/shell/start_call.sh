# Starts the calls of a task with PYTHON; if empty, with the environment's, VERSION, or any. arguments: PYTHON VERSION
own=${VIRTUAL_ENV:-${CONDA_PREFIX-}}
for each in "$1" ${own:+"$own/bin/python"} "$2" python3 python; do
  if [ -n "$each" ] && command -v "$each" > /dev/null; then exec "$each" "${YURT_RUN_DIR%/@TASKS@/*}/@CALLS@"; fi
  [ -z "$1" ] || break
done
echo "${1:-Python} not found on $(uname -n)" >&2
exit 127
