# Sends what calls of functions returned; of a task without a result, what it wrote last. Before it stands frames.sh.
# arguments: BYTES WORDS. Standard input: the folder of a task on each line. It stops after so many bytes, with the
# record of a task whole.
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
