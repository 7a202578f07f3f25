# Lists what can be fetched. Needs measure.sh before it. Standard input: a run folder on each line.
# Output: rsync if the site has it, else tar; a line for each run: ended, going or gone; then a line of measure_all
# for each folder that is not empty.
if command -v rsync > /dev/null 2>&1; then echo rsync; else echo tar; fi
exec 3>&1
can_measure || exit
while IFS= read -r folder; do
  if [ ! -d "$folder" ]; then echo gone >&3 && continue; fi
  cd "$folder" || exit 1
  if [ -e "$folder/@EXIT@" ] || [ -e "$folder/@EXIT@.d" ]; then echo ended >&3; else echo going >&3; fi
  for part in @OUTPUTS@ @CHECKPOINTS@ @WORK@; do
    [ ! -d "$folder/$part" ] || printf '%s\n' "$folder/$part"
  done
done | measure_all
