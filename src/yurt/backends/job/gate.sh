job_id() { # job_id TEXT: prints the line that is a job id, or one with a cluster: a site's sbatch may print more lines
  while IFS= read -r line; do
    case ${line%%;*} in '' | *[!0-9]*) ;; *) echo "${line%%;*}" && return ;; esac
  done << job_id_end
$1
job_id_end
}
insist() { # insist COMMAND…: repeats it for up to half a minute: the disk may be full for a moment
  insisted=0
  until "$@"; do
    insisted=$((insisted + 1))
    [ "$insisted" -lt "${patience:-30}" ] || return 1
    sleep 1
  done
}
make_files() { # make_files FILE…: creates empty files; `:` with a redirection that fails would end the shell
  for each in "$@"; do true >> "$each" || return; done 2> /dev/null
}
read_written() { # read_written NAME: prints the text written once under a name and sets `text` to it; fails if there is none
  [ ! -p "$1" ] || return # it would wait for a writer
  { IFS= read -r text < "$1" || IFS= read -r text < "$1.d/text"; } 2> /dev/null && [ -n "$text" ] && printf '%s\n' "$text"
}
rename_folder() { # rename_folder FROM TO: fails if TO exists and is not empty; mv of macOS has no -T
  mv -T "$1" "$2" 2> /dev/null || perl -e 'rename $ARGV[0], $ARGV[1] or die "$!\n"' "$1" "$2"
}
write_once() { # write_once NAME TEXT: the first text under a name is permanent; prints it
  tries=0
  while :; do
    if [ -e @NO_LINKS@ ]; then # no hard links on this disk: rename a filled folder instead
      mkdir "$1.$me" && printf '%s\n' "$2" > "$1.$me/text" && rename_folder "$1.$me" "$1.d"
      rm -rf "$1.$me"
    else
      { printf '%s\n' "$2" | dd of="$1.$me" conv=fsync || printf '%s\n' "$2" > "$1.$me"; } && ln "$1.$me" "$1"
      rm -f "$1.$me"
    fi 2> /dev/null
    # Only the text read back counts: over NFS, ln may report failure to the winner.
    read_written "$1" && return
    tries=$((tries + 1))
    [ "$tries" -lt "${patience:-30}" ] || return 1
    [ -d "$PWD" ] || [ ! -d "${PWD%/*}" ] || return 1 # the folder was removed: it does not come back
    sleep 1
  done
}
