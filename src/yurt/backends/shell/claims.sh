# The folder of a race's claims, and the keys with which jobs of other sites reach it. Needs gate.sh and claim.sh before it.
umask 077
keys=$HOME/.ssh/authorized_keys
real_path() { # real_path FILE: the file that a symbolic link leads to
  readlink -f "$1" 2> /dev/null || printf '%s\n' "$1"
}
open_race() { # open_race FOLDER
  mkdir -p -- "$1" && cd "$1" || return
  true > .file && { ln .file .link 2> /dev/null || true > @NO_LINKS@; }
  rm -f .file .link
}
holders() { # holders FOLDER: prints each claim, ITEM.ROUND HOLDER, and each ITEM.ROUND.dead WHO
  cd "$1" || return
  for each in [0-9]*; do
    each=${each%.d}
    case $each in *[!0-9.dea]* | *.) continue ;; esac
    ! read_written "$each" > /dev/null || printf '%s %s\n' "$each" "$text"
  done
}
end_claim() { # end_claim FOLDER ITEM WHO: the holder counts no more; prints it, or nothing if there is none
  cd "$1" || return
  round=1
  while read_written "$2.$round.dead" > /dev/null; do round=$((round + 1)); done
  holder=$(read_written "$2.$round") || return 0
  write_once "$2.$round.dead" "$3" > /dev/null && printf '%s\n' "$holder"
}
wants() { # wants FOLDER…: prints each claim to carry: NUMBER-OF-FOLDER TASK WORD ITEM CANDIDATE; TASK is - without a sweep
  number=0
  for folder; do
    for each in "$folder"/@WANT@* "$folder"/@TASKS@/*/@WANT@*; do
      [ -e "$each" ] || continue
      word=${each##*/@WANT@} task=${each%/*} task=${task#"$folder"} task=${task##*/}
      if [ -e "${each%/*}/@ANSWER@$word" ] || [ -e "${each%/*}/@ANSWER@$word.d" ]; then continue; fi
      case $word in *[!a-z0-9-]*) continue ;; esac
      ! read -r item candidate < "$each" || printf '%s %s %s %s %s\n' "$number" "${task:--}" "$word" "$item" "$candidate"
    done
    number=$((number + 1))
  done
}
answer() { # answer: from standard input, lines FOLDER|WORD|HOLDER
  while IFS='|' read -r folder word holder; do
    (cd "$folder" 2> /dev/null && patience=3 write_once "@ANSWER@$word" "$holder") > /dev/null < /dev/null
  done
}
locked() { # locked COMMAND…: changes the file of keys, while no other process of yurt changes it
  waited=0
  until mkdir "$keys.yurt-lock" 2> /dev/null; do
    [ -d "$keys.yurt-lock" ] || waited=$((waited + 9)) # it cannot be created
    waited=$((waited + 1))
    [ "$waited" -le 60 ] || break # of a killed process
    sleep 0.1 2> /dev/null || sleep 1
  done
  "$@"
  code=$?
  rmdir "$keys.yurt-lock" 2> /dev/null
  return "$code"
}
add_keys() { # add_keys FOLDER OPTIONS: from standard input, the script of the arbiter; then a public key on each line
  cd "$1" && head -c "$3" > arbiter.sh && mkdir -p "$HOME/.ssh" || return
  file=$(real_path "$keys")
  { [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || echo; while read -r kind key _rest; do printf '%s %s %s yurt-race-%s\n' "$2" "$kind" "$key" "${1##*/}"; done; } > keys.new &&
    locked append_keys && rm -f keys.new || return
  # The keys of the sshd behind this very connection, asked on its own host.
  # shellcheck disable=SC2086 # CLIENT PORT SERVER PORT
  set -- ${SSH_CONNECTION-}
  timeout 20 ssh-keyscan -p "${4:-22}" "${3:-127.0.0.1}" 2> /dev/null | sed -n 's/^[^# ][^ ]* //p' | grep .
}
append_keys() {
  cat keys.new >> "$file"
}
make_key() { # make_key FOLDER: prints the public key; the other one stays in the folder
  mkdir -p -- "$1" && cd "$1" && { [ -s key.pub ] || ssh-keygen -q -t ed25519 -N '' -C yurt-race -f key < /dev/null; } > /dev/null && cat key.pub
}
close_race() { # close_race FOLDER: removes its keys and its claims
  file=$(real_path "$keys")
  if grep -q " yurt-race-${1##*/}\$" "$file" 2> /dev/null; then locked remove_keys "${1##*/}" || return; fi
  case $1 in */races/?*) rm -rf -- "$1" ;; esac
}
remove_keys() { # remove_keys RACE: the file always has all other keys, also if the disk is full
  removed=1
  for _try in 1 2 3; do # somebody may be editing the file
    if ! cp -p "$file" "$file.yurt.$$" || ! cp -p "$file" "$file.yurt.new.$$"; then break; fi
    grep -v " yurt-race-$1\$" "$file.yurt.$$" > "$file.yurt.new.$$"
    [ $? -le 1 ] || break # 1: no other keys
    if cmp -s "$file" "$file.yurt.$$" && mv -f "$file.yurt.new.$$" "$file"; then removed=0 && break; fi
  done
  rm -f "$file.yurt.$$" "$file.yurt.new.$$"
  return "$removed"
}
