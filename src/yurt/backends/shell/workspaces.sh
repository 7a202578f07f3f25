# Prints what backups folders of workspaces contain: a line `folder` for each argument, then `holder TEXT`,
# `version FILE HEADER` for each complete version, and `size KB`.
for folder; do
  echo folder
  cd "$folder" 2> /dev/null || continue
  if [ -f holder ]; then printf 'holder %s\n' "$(head -n 1 holder)"; fi
  for file in v[0-9]*; do
    [ -f "$file" ] || continue
    printf 'version %s %s\n' "$file" "$(head -n 1 "$file")"
  done
  printf 'size %s\n' "$(du -sk . | cut -f 1)"
done
