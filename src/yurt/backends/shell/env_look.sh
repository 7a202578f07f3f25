# Prints the state of environments. Needs env_state.sh before it. arguments: BRIEF WAIT EDITS FOLDER...
# BRIEF: leave out the packages, if not empty. EDITS: look at all files now, if not empty.
# WAIT: tenths of a second to wait for the end of builds.
export LC_ALL=C
[ "$(find / -prune | head -n 1 | wc -l)" -eq 1 ] || exit 1 # without these, every environment would look as if it had been purged
brief=$1 left=$2 edits=$3
shift 3
for folder; do
  while [ "$left" -gt 0 ] && ! env_is_idle "$folder"; do
    sleep 0.1
    left=$((left - 1))
  done
done
for folder; do
  cd "$folder" 2> /dev/null || { echo "= none $folder" && continue; }
  [ -z "$edits" ] || rm -f checked
  if env_is_whole .; then
    echo "= ready $folder"
  elif env_is_building .; then
    echo "= building $folder"
  elif [ -e failed ]; then
    echo "= failed $folder"
  elif [ -e ready ]; then
    changes=$(env_changes "$yurt_env_path")
    [ -n "$changes" ] || changes=$(env_edits "$yurt_env_path")
    case $changes in
      *' was added'* | *' was edited'*) printf '= changed %s\nchange %s\n' "$folder" "$changes" ;;
      *) echo "= purged $folder" ;;
    esac
  else
    echo "= none $folder"
  fi
  while read -r _name entries kilobytes; do echo "size $entries $kilobytes"; done 2> /dev/null < ready
  find used ready -maxdepth 0 -printf '%f %T@\n' 2> /dev/null
  if env_is_building .; then echo "phase $(cat phase 2> /dev/null || echo starting)"; fi
  if env_is_packed .; then find "$yurt_env_path.tar" -printf 'pack %k\n'; fi
  while read -r word; do echo "lacking $word"; done 2> /dev/null < lacking
  echo "installed $(find env-*/lib/python*/site-packages -maxdepth 1 -name '*.dist-info' 2> /dev/null | wc -l)"
  while IFS= read -r line || [ -n "$line" ]; do printf 'definition %s\n' "$line"; done 2> /dev/null < definition.json
  parts='failed lock'
  [ -z "$brief" ] || parts=failed
  for each in $parts; do
    [ ! -e "$each" ] || { head -c 400000 "$each" | sed "s/^/$each /" && echo; }
  done
done
