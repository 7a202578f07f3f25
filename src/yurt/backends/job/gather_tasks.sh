# Sends the records in task folders; the number of processes does not depend on the number of tasks.
# Standard input: a sweep folder on each line. Output: a line "= FOLDER", then lines "TASK/NAME:TEXT" with the first
# line of each file; for the last line that a task logged, "==> TASK/metrics.jsonl <==" and that line.
export LC_ALL=C
print_all() { # print_all COMMAND…: prints what it finds in `files`; some of them may just have been deleted, but not all
  [ -n "$files" ] || return 0
  lines=$(printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 "$@" -- 2> /dev/null | cut -c 1-4000)
  [ -n "$lines" ] || exit 1
  printf '%s\n' "$lines"
}
while IFS= read -r folder; do
  printf '= %s\n' "$folder"
  [ -d "$folder/@TASKS@" ] || continue
  cd "$folder/@TASKS@" || exit 1
  # Without hard links, a record is a folder NAME.d with a file `text`.
  files=$(find . -mindepth 2 -maxdepth 2 \( -type f \( -name @EXIT@ -o -name @STATUS@ -o -name @WINNER@ -o -name '@START@*' \) \
    -printf '%P\n' \) -o \( -type d \( -name @EXIT@.d -o -name @STATUS@.d -o -name @WINNER@.d -o -name '@START@*.d' \) \
    -printf '%P/text\n' \) < /dev/null) || exit 1
  print_all grep -a -s -H -m 1 ''
  files=$(find . -mindepth 2 -maxdepth 2 -type f -name @METRICS@ -size +0 -printf '%P\n' < /dev/null) || exit 1
  print_all tail -v -n 1
done
