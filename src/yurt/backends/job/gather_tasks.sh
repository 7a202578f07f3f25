# Sends what the folders of tasks say of them, in few processes, however many they are.
# Standard input: the folder of a sweep on each line. The answer: a line "= FOLDER", then lines "TASK/NAME:TEXT", the
# first of each file; and for the last line that a task logged, "==> TASK/metrics.jsonl <==" and that line.
export LC_ALL=C
while IFS= read -r folder; do
  printf '= %s\n' "$folder"
  cd "$folder/@TASKS@" 2> /dev/null || continue
  # On a disk without hard links there are folders: NAME.d with a file `text`.
  find . -mindepth 2 -maxdepth 2 \( -type f \( -name @EXIT@ -o -name @STATUS@ -o -name @WINNER@ -o -name '@START@*' \) \
    -printf '%P\0' \) -o \( -type d \( -name @EXIT@.d -o -name @STATUS@.d -o -name @WINNER@.d -o -name '@START@*.d' \) \
    -printf '%P/text\0' \) 2> /dev/null < /dev/null | xargs -0 -r grep -a -s -H -m 1 '' -- || :
  find . -mindepth 2 -maxdepth 2 -type f -name @METRICS@ -size +0 -printf '%P\0' 2> /dev/null < /dev/null |
    xargs -0 -r tail -v -n 1 -- 2> /dev/null | cut -c 1-4000
done
