# Unison takes times that differ by a second for equal, so it does not see an edit that keeps the size of a file and comes
# right after another one. After a sync, each side saves the ctimes of the files that were new then; if the next sync finds
# other ctimes, it compares contents first. Only definitions. Set before: UNISON.
sure_enter() { # sure_enter ROOT: enters a root: absolute, below the home, or empty for the home
  case $1 in
    /*) cd -- "$1" || return ;;
    *) cd -- "$HOME/$1" || return ;;
  esac
}
sure_begin() { # sure_begin RECORD TOKEN: remembers when a sync began, by the clock of the file system
  echo "$2" > "$UNISON/yurt/began.$1"
}
sure_find() { # sure_find EXPRESSION: prints what find prints about the paths on standard input; a newline in a path is \001
  tr '\n\001' '\000\n' | xargs -0 sh -c "exec find \"\$@\" $1" sh 2> /dev/null | tr '\000\n' '\n\001'
}
sure_save() { # sure_save RECORD ROOT PATHS: prints `unsure RECORD` if there are such files
  # PATHS are lines; a newline in a path is \001.
  sure_state=$UNISON/yurt/unsure.$1
  if [ -z "$3" ]; then
    rm -f -- "$sure_state"
  elif ! sure_began=$(find "$UNISON/yurt/began.$1" -printf '%C@' 2> /dev/null) ||
    [ "$(echo . | sure_find '-prune -printf "%y\0"')" != d ]; then
    echo '? .' > "$sure_state" && echo "unsure $1" # always differs: a tool fails, or this find does not know -printf
  else
    # A file is new if its last edit came less than three seconds before the sync, or later. It is the one that Unison
    # saw if its ctime is older than the sync, or if Unison wrote it: then its time was set, in whole microseconds.
    (sure_enter "$2" && printf '%s\n' "$3" | sure_find '! -type d -printf "%T@ %C@ %p\0"') |
      awk -v began="$sure_began" '$1 >= began - 3 {
        seen = $2 < began || ($1 != $2 && $1 ~ /0000$/)
        print (seen ? $2 : "?") " " substr($0, length($1) + length($2) + 3)
      }' > "$sure_state.$$" || echo '? .' > "$sure_state.$$"
    if [ -s "$sure_state.$$" ]; then
      mv -f -- "$sure_state.$$" "$sure_state" || echo '? .' > "$sure_state"
      echo "unsure $1"
    else
      rm -f -- "$sure_state" "$sure_state.$$"
    fi
  fi
}
sure_check() { # sure_check RECORD ROOT HOW: whether these files are as they were; HOW is no-check, if-saved or required;
  # home_sync.sh has no-begin for a Unison that is not the first of its sync
  sure_state=$UNISON/yurt/unsure.$1
  case $3 in no-*) return 0 ;; esac
  [ -e "$sure_state" ] || { [ "$3" = if-saved ] && return || return 1; }
  (sure_enter "$2" && sed 's/^[^ ]* //' "$sure_state" | sure_find '-prune -printf "%C@ %p\0"') | cmp -s - "$sure_state"
}
