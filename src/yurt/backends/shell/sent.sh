# Which tasks of sweeps were submitted. arguments: the folders of the sweeps.
# The answer, for each: a line "= FOLDER", the lines of its file, and `cancelled` if all of it was.
for folder; do
  printf '= %s\n' "$folder"
  cat "$folder/@SENT@" 2> /dev/null
  [ ! -e "$folder/@CANCEL@" ] || echo cancelled
done
