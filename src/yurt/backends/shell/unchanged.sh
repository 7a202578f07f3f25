# Finds out whether files are as they were written: by names, types, modes, sizes and times, in one pass. Only
# definitions: the script that needs them follows.

list_files() ( # list_files FOLDER: prints an entry for each file in it, without those of the name in left_out
  cd "$1" && find . -mindepth 1 ${left_out:+-name "$left_out" -prune -o} \( -type d -printf 'd %m %P\0' -o -type l -printf 'l %l %P\0' -o -printf '%y %m %s %T@ %P\0' \)
)
is_unchanged() { # is_unchanged FOLDER LIST: whether the files are as in a list of list_files
  [ -d "$1" ] && [ -e "$2" ] || return
  # cmp exits at the first difference, and find may then complain about the pipe. Other errors are printed below.
  if list_files "$1" 2> /dev/null | cmp -s - "$2"; then return 0; fi
  [ "$(changed_entries "$1" "$2")" = '= end' ] # the order may differ
}
changed_entries() { # changed_entries FOLDER LIST: prints each entry that is only in the list, or only in the folder, on a line; and `= end`
  { list_files "$1" | tr '\n\0' '?\n' | LC_ALL=C sort -u; tr '\n\0' '?\n' < "$2" | LC_ALL=C sort -u; echo '= end'; } | LC_ALL=C sort | uniq -u
}
save_list() { # save_list FOLDER LIST
  list_files "$1" > "$2.$$" && mv -f "$2.$$" "$2"
}
