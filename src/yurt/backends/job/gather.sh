# Sends what the folders of runs say of them, as one tar file, the folders in order.
# arguments: BYTES. Standard input: the folder of a run on each line. The answer is cut off after so many bytes.
while IFS= read -r folder; do
  k=0
  while [ -e "$folder/@START@$((k + 1))" ] || [ -e "$folder/@START@$((k + 1)).d" ]; do k=$((k + 1)); done
  for name in @RUN@ @PLAN@ @STATUS@ @EXIT@ @WINNER@ "@START@$k" @SENT@ @CANCEL@; do
    for file in "$folder/$name" "$folder/$name.d/text"; do # on a disk without hard links
      [ ! -f "$file" ] || printf '%s\0' "$file"
    done
  done
done | tar --null --no-recursion -P -cf - -T - 2> /dev/null | head -c "$1"
