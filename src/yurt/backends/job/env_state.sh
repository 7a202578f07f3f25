# The folder of an environment, ENVS/ADDRESS, and what is in it. Only definitions: the script that needs them follows.
# `ready` names the folder in it that is complete, and the number of its entries; `.packages` in that one lists what was
# installed. `builder` names the process that is building, which changes `beat` every few seconds. `failed` is why the
# last build failed. A file wait.JOB is a job held until the end; the word in it is empty, or says that the job also waits
# for a home sync: see homesync/gate.sh.
# shellcheck disable=SC2034 # for the script that needs it
env_is_ready() { # env_is_ready FOLDER: sets yurt_env_path, yurt_env_entries and yurt_env_kilobytes
  yurt_env_path='' yurt_env_entries='' yurt_env_kilobytes=''
  { read -r yurt_env_path yurt_env_entries yurt_env_kilobytes < "$1/ready"; } 2> /dev/null && [ -n "$yurt_env_path" ] || return
  yurt_env_path=$1/$yurt_env_path
  [ -d "$yurt_env_path" ]
}
env_is_whole() { # env_is_whole FOLDER: whether it is ready, no purge has removed files from it, and nobody has changed it
  env_is_ready "$1" && [ -x "$yurt_env_path/bin/python" ] &&
    [ "$(find "$yurt_env_path" | wc -l)" -ge "$yurt_env_entries" ] && [ -z "$(env_changes "$yurt_env_path")" ] &&
    [ -z "$(env_edits "$yurt_env_path" "$1/checked")" ]
}
env_packages() { # env_packages PATH: prints the packages of an environment: names in one or two folders, no file is read
  (cd "$1" && ls conda-meta lib/python*/site-packages) 2> /dev/null |
    sed -n 's/[.]dist-info$//p; s/[.]egg-info$//p; s/[.]json$//p' | LC_ALL=C sort -u
}
env_changes() { # env_changes PATH: prints how its packages differ from those that were built: `six-1.17.0 is missing`
  [ -e "$1/.packages" ] || return 0 # an earlier version of yurt built it
  env_packages "$1" | LC_ALL=C comm -3 "$1/.packages" - |
    awk -F '\t' 'NR < 6 { text = text (NR > 1 ? ", " : "") ($2 == "" ? $1 " is missing" : $2 " was added") } END { print text }'
}
env_edits() { # env_edits PATH [CHECKED]: prints which code in it was edited since it was built: `six.py was edited`
  # Every file is looked at, which takes a shared disk seconds: with CHECKED, at most once an hour if nothing was found.
  [ -e "$1/.packages" ] || return 0
  [ -z "${2-}" ] || [ -z "$(find "$2" -mmin -60 2> /dev/null)" ] || return 0
  yurt_edits=$(cd "$1" && find . -type f \( -name '*.py' -o -name '*.pth' -o -name '*.so' -o -name '*.so.*' -o -path './bin/*' \) -newer .packages |
    sed 's|^\./||; s|^lib/python[^/]*/site-packages/||' |
    awk 'NR < 6 { text = text (NR > 1 ? ", " : "") $0 " was edited" } END { print text }')
  if [ -n "$yurt_edits" ]; then
    printf '%s\n' "$yurt_edits"
  elif [ -n "${2-}" ]; then
    : > "$2"
  fi
}
remove_env_files() { # remove_env_files PATH...: those of environments are read-only
  rm -rf -- "$@" 2> /dev/null || { find "$@" -type d -exec chmod u+w {} + 2> /dev/null; rm -rf -- "$@"; }
}
env_is_packed() { # env_is_packed FOLDER: whether it is ready, and also one file, NAME.tar, for the disks of nodes
  env_is_ready "$1" && [ -s "$yurt_env_path.tar" ]
}
env_is_complete() { # env_is_complete FOLDER: whether there is nothing to build; a file `pack` means that it is packed too
  env_is_whole "$1" && { [ ! -e "$1/pack" ] || env_is_packed "$1"; }
}
env_is_idle() { # env_is_idle FOLDER: whether nobody builds it, or is about to
  [ ! -e "$1/builder" ] && [ -z "$(find "$1" -maxdepth 1 -name 'starting.*' -mmin -10 2> /dev/null)" ]
}
env_is_building() { # env_is_building FOLDER: by the clock of the file system, which is not always that of this host
  [ -n "$(find "$1" -maxdepth 1 \( -name beat -mmin -2 -o -name 'starting.*' -mmin -10 \) 2> /dev/null)" ]
}
release_built() { # release_built FOLDER JOB: releases a job that waits for this environment, and not for a home sync
  if [ -s "$1/wait.$2" ]; then
    is_unsynced "$2" || [ $? -eq 1 ] || return 0 # the queue cannot be read: the next yurt command repeats it
    rm -f "$1/wait.$2" # before the second look: a sync changes the comment, and then looks for this file
    is_unsynced "$2" && return 0
  fi
  scontrol release "$2" 2> /dev/null
  rm -f "$1/wait.$2"
}
is_unsynced() { # is_unsynced JOB: 0 if it waits for a home sync, 1 if not, 2 if the queue cannot be read
  yurt_comments=$(queue -u "$(id -un)" -o '%F %k' 2> /dev/null) || return 2
  printf '%s\n' "$yurt_comments" | grep -q -E -e "^$1 home_sync( |\$)"
}
env_failure() { # env_failure FOLDER: prints why the last build failed, in one line
  head -n 1 "$1/failed" 2> /dev/null
}
