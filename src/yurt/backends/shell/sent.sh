# Lists the submitted tasks of sweeps. arguments: the folders of the sweeps.
# Output for each: a line "= FOLDER", the lines of its file, and `cancelled` if the sweep was.
for folder; do
  printf '= %s\n' "$folder"
  [ ! -e "$folder/@SENT@" ] || cat "$folder/@SENT@" || exit 1
  [ ! -e "$folder/@CANCEL@" ] || echo cancelled
done
