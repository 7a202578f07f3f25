# Lists environments that nobody has used for a while, or removes them. Safe to repeat. Needs env_state.sh before it.
# arguments: RUNS BASE MINUTES UNFINISHED [CHOSEN]...
# RUNS and BASE: yurt's folders with runs and with environments, usually the same.
# UNFINISHED: addresses that unfinished runs of the caller's machine need. CHOSEN is what to remove: env:ADDRESS,
# replaced:ADDRESS or wheels. Without it the script only lists.
# Output, a line each: env|replaced ADDRESS FILES KILOBYTES USED DEFINITION, and wheels FILES KILOBYTES. `replaced` are
# environments that were built again after a purge. With CHOSEN: what was removed.
# The lock of a removed environment stays, so that it is built again with the same packages.
export LC_ALL=C
[ "$(find / -prune | sort | head -n 1 | tail -n 1 | cat)" = / ] || exit 1 # without these, every environment would look unused
runs=$1 base=$2 minutes=$3 needed=" $4 "
shift 4
chosen=" $* "
[ -d "$base/envs" ] || exit 0
cd "$base/envs" || exit 1

needed_by_jobs() { # prints the addresses that jobs of the user need, from any machine
  names=$(queue -u "$(id -un)" -o %j) || return
  printf '%s\n' "$names" | sort -u | while IFS= read -r name; do
    case $name in
      yurt-env-*) printf '%s\n' "${name#yurt-env-}" ;; # builds it
      yurt-*)
        id=${name#yurt-}
        for job in "$runs"/projects/*/runs/"${id%%+*}"/@JOB@ "$runs"/projects/*/sweeps/"${id%%+*}"/@JOB@; do
          [ ! -e "$job" ] || sed -n 's,^  use_env .*/envs/\([0-9a-f]\{16\}\).*,\1,p' "$job"
        done
        ;;
    esac
  done
}
is_chosen() { case $chosen in *" $1 "*) ;; *) return 1 ;; esac; }
is_needed() {
  case $needed in *" $1 "*) return ;; esac
  env_is_building "$1"
}
last_use() { # last_use FOLDER: the newest time of the files directly in it
  find "$1" -maxdepth 1 -type f -printf '%T@\n' | sort -n | tail -n 1
}
is_old() { # is_old ADDRESS
  ! is_needed "$1" && [ -z "$(find "$1" -maxdepth 1 -type f -mmin "-$minutes" | head -n 1)" ]
}
is_removed() { # is_removed ADDRESS: whether only its lock is left
  [ -z "$(find "$1" -mindepth 1 -maxdepth 1 ! -name lock ! -name explicit | head -n 1)" ]
}
describe() { # describe WORD ADDRESS FOLDER FILE...: the sizes are in these files
  word=$1 address=$2 folder=$3
  shift 3
  size=$(cat "$@" 2> /dev/null | awk '{ files += $2; kilobytes += $3 } END { print files + 0, kilobytes + 0 }')
  printf '%s %s %s %s %s\n' "$word" "$address" "$size" "$(last_use "$folder")" "$(head -n 1 "$folder/definition.json" 2> /dev/null)"
}
finish_removal() { # finish_removal ADDRESS
  mkdir -p "$1"
  for each in lock explicit; do
    [ ! -e ".going.$1/$each" ] || [ -e "$1/$each" ] || mv -f ".going.$1/$each" "$1/$each"
  done
  remove_env_files ".going.$1"
}
remove_env() { # remove_env ADDRESS: whether it was removed
  # A submission renews `used` before it looks whether the environment is complete; this looks after the renaming.
  before=$(last_use "$1")
  mv -T "$1" ".going.$1" || return
  if [ "$(last_use ".going.$1")" != "$before" ] && mv -T ".going.$1" "$1" 2> /dev/null; then return 1; fi
  finish_removal "$1"
}
remove_replaced() { # remove_replaced ADDRESS
  name='' old=
  read -r name _ < "$1/ready"
  while read -r old _; do
    case $old in "$name" | */*) ;; env-?*) remove_env_files "${1:?}/$old" ;; esac
  done < "$1/retired"
  rm -f "$1/retired"
}
unused_wheels() { # unused_wheels ADDRESS...: wheels that none of these environments lists, and nobody asked for in a day
  { for each; do sed 's/^/= /' "$each/wheels" 2> /dev/null; done; find ../wheels -mindepth 2 -maxdepth 2 -type f -mmin +1440 -printf '%s %P\n' 2> /dev/null; } |
    awk '$1 == "=" { listed[$2] = 1; next } !($2 in listed)'
}

umask 077
found=$(needed_by_jobs) || exit 1
for each in $found; do needed="$needed$each "; done
for each in .going.*; do [ ! -d "$each" ] || finish_removal "${each#.going.}"; done # left by a removal that was killed
kept=
for address in *; do
  if [ ! -d "$address" ] || is_removed "$address"; then continue; fi
  if is_old "$address"; then
    if [ $# -eq 0 ]; then
      describe env "$address" "$address" "$address/ready" "$address/retired"
      continue
    fi
    line=$(describe env "$address" "$address" "$address/ready" "$address/retired")
    if is_chosen "env:$address" && remove_env "$address"; then printf '%s\n' "$line" && continue; fi
  elif [ -e "$address/ready" ] && [ -e "$address/retired" ] && ! is_needed "$address"; then
    line=$(describe replaced "$address" "$address" "$address/retired")
    [ $# -eq 0 ] || { is_chosen "replaced:$address" && remove_replaced "$address"; } || line=
    [ -z "$line" ] || printf '%s\n' "$line"
  fi
  kept="$kept $address"
done
# shellcheck disable=SC2086 # addresses, which are words
wheels=$(unused_wheels $kept)
[ -n "$wheels" ] && { [ $# -eq 0 ] || is_chosen wheels; } || exit 0
printf '%s\n' "$wheels" | awk '{ bytes += $1 } END { print "wheels", NR, int(bytes / 1024) }'
[ $# -gt 0 ] || exit 0
printf '%s\n' "$wheels" | while read -r _ file; do
  find "../wheels/$file" -mmin +1440 -delete
  rmdir "../wheels/${file%/*}"
done 2> /dev/null
:
