# Sends the records in run folders as one tar file, in order.
# arguments: BYTES. Standard input: a run folder on each line. Output is truncated after BYTES.
most=$1
folders=$(cat) || exit 1
newline='
'
IFS=$newline
set -f
for folder in $folders; do # sh reads byte by byte, so a loop with `read` is slow
  k=0
  set --
  [ ! -h "$folder" ] || continue
  cd "$folder" 2> /dev/null || continue
  while [ -e "@START@$((k + 1))" ] || [ -e "@START@$((k + 1)).d" ]; do k=$((k + 1)); done
  for name in @RUN@ @PLAN@ @STATUS@ @EXIT@ @WINNER@ "@START@$k" @SENT@ @CANCEL@; do
    if [ -f "$name" ]; then
      set -- "$@" "$folder/$name"
    elif [ -f "$name.d/text" ]; then # on a disk without hard links
      set -- "$@" "$folder/$name.d/text"
    fi
  done
  [ $# -eq 0 ] || printf '%s\0' "$@"
done | tar --null --no-recursion -P -cf - -T - 2> /dev/null | head -c "$most"
