# Sends the records in run folders as one tar file, in order.
# arguments: BYTES. Standard input: a run folder on each line. Output is truncated after BYTES.
folders=$(cat)
newline='
'
IFS=$newline
set -f
for folder in $folders; do # sh reads byte by byte, so a loop with `read` is slow
  k=0 files=
  [ ! -h "$folder" ] || continue
  cd "$folder" 2> /dev/null || continue
  while [ -e "@START@$((k + 1))" ] || [ -e "@START@$((k + 1)).d" ]; do k=$((k + 1)); done
  for name in @RUN@ @PLAN@ @STATUS@ @EXIT@ @WINNER@ "@START@$k" @SENT@ @CANCEL@; do
    if [ -f "$name" ]; then
      files=$files$folder/$name$newline
    elif [ -f "$name.d/text" ]; then # on a disk without hard links
      files=$files$folder/$name.d/text$newline
    fi
  done
  printf '%s' "$files"
done | tr '\n' '\0' | tar --null --no-recursion -P -cf - -T - 2> /dev/null | head -c "$1"
