# Sends the records in task folders; the number of processes does not depend on the number of tasks.
# Standard input: a sweep folder on each line. Output: a line "= FOLDER", then lines "TASK/NAME:TEXT" with the first
# line of each file; for the last line that a task logged, "==> TASK/metrics.jsonl <==" and that line.
export LC_ALL=C
while IFS= read -r folder; do
  printf '= %s\n' "$folder"
  cd "$folder/@TASKS@" 2> /dev/null || continue
  # Without hard links, a record is a folder NAME.d with a file `text`.
  find . -mindepth 2 -maxdepth 2 \( -type f \( -name @EXIT@ -o -name @STATUS@ -o -name @WINNER@ -o -name '@START@*' \) \
    -printf '%P\0' \) -o \( -type d \( -name @EXIT@.d -o -name @STATUS@.d -o -name @WINNER@.d -o -name '@START@*.d' \) \
    -printf '%P/text\0' \) 2> /dev/null < /dev/null | xargs -0 -r grep -a -s -H -m 1 '' -- || :
  find . -mindepth 2 -maxdepth 2 -type f -name @METRICS@ -size +0 -printf '%P\0' 2> /dev/null < /dev/null |
    xargs -0 -r tail -v -n 1 -- 2> /dev/null | cut -c 1-4000
done
