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
give_up() { # give_up FOLDER ITEM CANDIDATE WHO: a candidate that never starts again counts no more; prints it if it ever held the item
  cd "$1" || return
  round=1 found=
  while holder=$(read_written "$2.$round"); do
    if [ "$holder" = "$3" ]; then write_once "$2.$round.dead" "$4" > /dev/null && found=$3 || return; fi
    round=$((round + 1))
  done
  [ -z "$found" ] || printf '%s\n' "$found"
}
end_lost() { # end_lost FOLDER K LEASE: prints "over" once start K-1, which was lost, has ended for good and has no successor, or "wait"
  # Prints "keeps" if it may have a successor: it was not lost, it left checkpoints, or start K has begun.
  cd "$1" || return
  lost=$(($2 - 1))
  case $(read_written @EXIT@) in *'"cause":"raced"'*) echo over && return ;; ?*) echo keeps && return ;; esac
  if ! read_written "@START@$2" > /dev/null && { read_written "@END@$lost" || find @CHECKPOINTS@ -type f 2> /dev/null | grep .; } > /dev/null; then
    echo keeps && return
  fi
  # No job makes start K after this.
  job=$(read_written "@START@$lost") && job=${job#*.}
  case $(write_once "@START@$2" "raced.${job%%.*}.$me") in raced.*) ;; ?*) echo keeps && return ;; *) return 1 ;; esac
  # As `fence` of heartbeat.sh, in several calls. A renamed file has the time at which it was renamed.
  ran=$(stat -c '%Y %Z' "@BEAT@$lost.a" "@BEAT@$lost.b" 2> /dev/null | head -n 1)
  write_once "@FENCED@$lost" "$me $ran" > /dev/null || return
  for _try in 1 2 3 4 5 6; do
    if mv -f "@BEAT@$lost.a" "@BEAT@$lost.gone" || mv -f "@BEAT@$lost.b" "@BEAT@$lost.gone"; then break; fi 2> /dev/null
  done
  make_files "@BEAT@$lost.gone" ".now.$me" || return
  now=$(stat -c %Z ".now.$me") since=$(stat -c %Z "@BEAT@$lost.gone") # the clock of the disk
  rm -f ".now.$me"
  if [ -e "@BEAT@$lost.a" ] || [ -e "@BEAT@$lost.b" ] || [ "$now" -le $((since + $3 / 2 + $3 / 6)) ]; then echo wait && return; fi
  read -r _who from to _rest << end
$(read_written "@FENCED@$lost") $since $since
end
  write_once @EXIT@ "{\"code\":137,\"signal\":9,\"cause\":\"raced\",\"started\":$from,\"ended\":$to,\"seconds\":$((to - from)),\"restarts\":$((lost - 1))}" > /dev/null && echo over
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
