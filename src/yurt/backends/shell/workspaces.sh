# Prints what backups folders of workspaces contain: a line `folder` for each argument, then `holder TEXT`,
# `version FILE HEADER` for each complete version, `checked TEXT` about damaged files, `file` and what ls says of each
# file, and `size KB`.
for folder; do
  echo folder
  [ -d "$folder" ] || continue
  cd "$folder" || exit 1
  if [ -f holder ]; then head=$(head -n 1 holder) && printf 'holder %s\n' "$head" || exit 1; fi
  for file in v[0-9]*; do
    [ -f "$file" ] || continue
    head=$(head -n 1 "$file") && printf 'version %s %s\n' "$file" "$head" || exit 1
  done
  if [ -f checked ]; then head=$(head -n 1 checked) && printf 'checked %s\n' "$head" || exit 1; fi
  # After the versions, whose files are there before them.
  # shellcheck disable=SC2012 # find prints no sizes everywhere; these are names of yurt
  files=$(LC_ALL=C ls -ln 2> /dev/null) # fails if a file was just deleted, as du does
  [ -n "$files" ] && printf '%s\n' "$files" | sed -n 's/^-/file -/p' || exit 1
  size=$(du -sk . 2> /dev/null) # fails if a file was just deleted
  [ -n "$size" ] && printf 'size %s\n' "${size%%[!0-9]*}" || exit 1
done
