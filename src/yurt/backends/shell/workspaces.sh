# Prints what backups folders of workspaces contain: a line `folder` for each argument, then `holder TEXT`,
# `version FILE HEADER` for each complete version, `checked TEXT` about damaged files, `file` and what ls says of each
# file, and `size KB`.
for folder; do
  echo folder
  cd "$folder" 2> /dev/null || continue
  if [ -f holder ]; then printf 'holder %s\n' "$(head -n 1 holder)"; fi
  for file in v[0-9]*; do
    [ -f "$file" ] || continue
    printf 'version %s %s\n' "$file" "$(head -n 1 "$file")"
  done
  if [ -f checked ]; then printf 'checked %s\n' "$(head -n 1 checked)"; fi
  # After the versions, whose files are there before them.
  # shellcheck disable=SC2012 # find prints no sizes everywhere; these are names of yurt
  LC_ALL=C ls -ln | sed -n 's/^-/file -/p'
  printf 'size %s\n' "$(du -sk . | cut -f 1)"
done
