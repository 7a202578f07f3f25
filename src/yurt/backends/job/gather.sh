# Sends the records in run folders as one tar file, in order.
# arguments: BYTES. Standard input: a run folder on each line. Output is truncated after BYTES.
while IFS= read -r folder; do
  k=0
  while [ -e "$folder/@START@$((k + 1))" ] || [ -e "$folder/@START@$((k + 1)).d" ]; do k=$((k + 1)); done
  for name in @RUN@ @PLAN@ @STATUS@ @EXIT@ @WINNER@ "@START@$k" @SENT@ @CANCEL@; do
    for file in "$folder/$name" "$folder/$name.d/text"; do # on a disk without hard links
      [ ! -f "$file" ] || printf '%s\0' "$file"
    done
  done
done | tar --null --no-recursion -P -cf - -T - 2> /dev/null | head -c "$1"
