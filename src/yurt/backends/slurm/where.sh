# Continues live.sh: asks when jobs would start, with `sbatch --test-only`, which submits nothing but uses up a job id.
# arguments: MARK, an empty word, the most job ids to use, and the sbatch options of all requests.
# Input, a line each: `path NUMBER PATH`: report whether PATH exists. `ask NUMBER OPTION...`: a request.
# `less NUMBER OPTION...`: one for less, which is asked only while no request starts within a minute.
most=$3
shift 3
section where
set -f
printf 'now %s %s\n' "$(date +%s)" "$(date +%Y-%m-%dT%H:%M:%S)"
used=0 soon='' silent=''

epoch() { # the time in seconds; empty if this date cannot convert it
  case $1 in
    *[!0-9]*) date -d "$1" +%s 2> /dev/null ;;
    *) echo "$1" ;;
  esac
}

ask() { # ask NUMBER OPTION...
  number=$1
  shift
  if [ "$used" -ge "$most" ] || [ -n "$silent" ]; then return; fi
  used=$((used + 1))
  reply=$(drop_rivals "$@" && limited sbatch --test-only "$@" --output=/dev/null --error=/dev/null --wrap=true 2>&1 < /dev/null)
  code=$?
  printf 'reply %s %s %s\n' "$number" "$code" "$(printf '%s' "$reply" | tr '\n|' '| ' | cut -c 1-600)"
  case $reply in *'nable to contact slurm controller'*) silent=yes ;; esac
  if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then silent=yes; fi # the limit of time
  case $reply in
    *' to start at '*)
      at=${reply#* to start at }
      at=$(epoch "${at%% *}")
      if [ -n "$at" ] && [ "$at" -le $(($(date +%s) + 60)) ]; then soon=yes; fi
      ;;
  esac
}

# shellcheck disable=SC2086 # the client sends options without spaces, in words
while read -r what number words; do
  case $what in
    path) if [ -e "$words" ]; then echo "there $number"; fi ;;
    ask) ask "$number" "$@" $words ;;
    less) if [ -z "$soon" ]; then ask "$number" "$@" $words; fi ;;
  esac
done
