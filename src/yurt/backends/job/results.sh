# Sends the results of function calls; for a task without a result, the end of its err.log. Needs frames.sh before it.
# arguments: BYTES ERR-BYTES. Standard input: a task folder on each line. Stops after BYTES, with a complete record.
left=$1 at=0
while IFS= read -r folder; do
  at=$((at + 1))
  [ "$left" -gt 0 ] || break
  printf '= %s\n' "$at"
  if cd "$folder" 2> /dev/null; then
    if [ -e @RESULT@ ]; then
      piece result @RESULT@ 999999999999
    else
      piece err @ERR_LOG@ "$2"
    fi
  fi
  echo .
done
