# Receives code into a project folder on a host. Needs unchanged.sh before it, and only defines functions.
# A project folder contains snapshots/TREE, read-only checkouts, each created by a rename and so complete;
# snapshots/.TREE, lists of their files; .TREE.folders, of folders for working directories; code.git, their objects; and incoming/, what is being created or removed.
# The five functions below are subshells: the caller's variables, options, folder and traps do not change.

# keep_code PROJECT TREE: whether the checkout exists; if so, it is not removed in the next days.
keep_code() (
  [ -n "$2" ] && touch "$1/snapshots/$2/." 2> /dev/null # the dot makes it fail without the folder
)

# have_code PROJECT TREE: whether the checkout exists and its files are as they were uploaded; keeps it.
# Otherwise prints lines "changed COUNT FILE" for the first of the files that a purge removed or a run changed.
have_code() (
  keep_code "$1" "$2" && cd "$1" && umask 077 && code_unchanged "$2"
)

# known_code PROJECT: prints "plain" if there is no git, else the trees on this host, newest first.
known_code() (
  command -v git > /dev/null 2>&1 || { echo plain && exit 0; }
  # shellcheck disable=SC2012 # names of trees are hexadecimal
  ls -t "$1/snapshots" 2> /dev/null | head -n 20
)

# receive_code PROJECT KIND TREE BASE SIZE: makes a checkout from exactly SIZE bytes of standard input.
# KIND is git or tar; BASE is a tree on this host that the pack is a delta to, or empty.
# 0: the checkout exists; 45: the input ended early; 46: no git; 47: BASE is missing or broken: send everything;
# 1: another error, printed on standard error.
receive_code() (
  set +efu
  unset IFS CDPATH
  # Always read SIZE bytes: the rest of the input is for the caller.
  head -c "$5" | { code_make "$@" || { code=$? && cat > /dev/null && exit $code; }; }
)

# collect_code PROJECT [all]: removes unused checkouts. Keeps the newest five, those of the last seven days, and
# those of runs (runs/ID/code names a tree) without an exit.json, and of sweeps (sweeps/ID/code). With `all`: keeps only
# the used ones and the newest, to which the next upload is a delta; nothing if the project has no runs left.
collect_code() (
  set +efu
  unset IFS CDPATH
  umask 077
  cd "$1" 2> /dev/null || exit 0
  newest=5 minutes=10080
  if [ -n "${2-}" ]; then
    newest=0 minutes=
    for run in runs/* sweeps/*; do [ ! -e "$run" ] || newest=1; done
  fi
  # shellcheck disable=SC2046 # names of trees are words
  set -- $(ls -t snapshots 2> /dev/null)
  [ $# -gt "$newest" ] || exit 0
  shift "$newest"
  idle=
  for tree; do idle="$idle snapshots/$tree"; done
  # shellcheck disable=SC2086 # paths of trees are words
  idle=$(code_idle $idle)
  [ -n "$idle" ] || exit 0
  used=$(code_used)
  mkdir -p incoming && aside=$(mktemp -d incoming/old.XXXXXX) || exit 1
  # A checkout may come into use before the rename, but have_code touches it first: check again after the rename.
  for path in $idle; do
    tree=${path#snapshots/}
    case " $used " in *" $tree "*) continue ;; esac
    if ! chmod u+w "$path" || ! mv -T "$path" "$aside/$tree"; then continue; fi
    [ -n "$(code_idle "$aside/$tree")" ] || code_back
  done
  used=$(code_used)
  gone=
  for path in "$aside"/*; do
    [ -d "$path" ] || continue
    tree=${path##*/}
    case " $used " in *" $tree "*) code_back ;; *) gone=yes ;; esac
    # A list without its checkout, or the reverse, costs at most an upload.
    [ -e "snapshots/$tree" ] || rm -f "snapshots/.$tree" "snapshots/.$tree.folders"
  done
  # Without refs git cannot tell which objects are needed. Once there are many, remove all: the next sender then
  # sends everything.
  set -- code.git/objects/17/* code.git/objects/pack/*.pack
  if [ -n "$gone" ] && { [ $# -gt 40 ] || [ "$newest" -eq 0 ]; }; then mv -T code.git "$aside/code.git"; fi
  code_remove "$aside"
)

code_back() {
  mv -T "$aside/$tree" "snapshots/$tree" 2> /dev/null && chmod a-w "snapshots/$tree"
}

code_idle() {
  find "$@" -maxdepth 0 ${minutes:+-mmin "+$minutes"} 2> /dev/null
}

code_used() {
  for run in runs/*/ sweeps/*/; do
    case $run in runs/*) [ ! -e "${run}@EXIT@" ] || continue ;; esac
    [ -r "${run}@CODE@" ] || continue
    tree=
    read -r tree < "${run}@CODE@" # reads the line even if it fails for lack of a newline
    printf '%s ' "$tree"
  done
}

code_remove() {
  # Folders only: a file may be hard-linked to another checkout.
  rm -rf "$@" 2> /dev/null || { find "$@" -type d -exec chmod u+w {} + 2> /dev/null; rm -rf "$@"; }
}

code_make() (
  project=$1 kind=$2 tree=$3 base=$4 size=$5
  umask 077
  [ -d "$project/snapshots" ] && [ -d "$project/incoming" ] || mkdir -p "$project/snapshots" "$project/incoming" || exit 1
  cd "$project" || exit 1
  broken=
  if [ -d "snapshots/$tree" ]; then
    have_code . "$tree" && cat > /dev/null && exit 0
    broken=yes
  fi
  [ "$kind" = tar ] || command -v git > /dev/null 2>&1 || exit 46
  for left in incoming/*; do # leftovers of a killed upload
    # shellcheck disable=SC2046 # names that mktemp made of trees are words
    [ -e "$left" ] && code_remove $(find incoming -mindepth 1 -maxdepth 1 -mmin +1440 2> /dev/null)
    break
  done
  aside=$(mktemp -d "incoming/$tree.XXXXXX") || exit 1
  trap 'wait; code_remove "$aside"' EXIT
  case $kind,$base in
    tar,*) code_from_tar ;;
    *,) code_from_nothing ;;
    *) code_from_base ;;
  esac || exit
  # It must be writable to be moved. If another upload was first, its content is the same.
  [ -z "$broken" ] || { chmod u+w "snapshots/$tree" && mv -T "snapshots/$tree" "$aside/broken.tree"; } 2> /dev/null
  if mv -T "$aside/files" "snapshots/$tree" 2> "$aside/said"; then
    chmod a-w "snapshots/$tree"
    save_list "snapshots/$tree" "snapshots/.$tree" &
    code_folders || exit
    wait
  else
    [ -d "snapshots/$tree" ] || { cat "$aside/said" >&2 && exit 1; }
  fi
)

# Lists for working directories: the number of entries and the size of the files; then folders that contain only a
# placeholder such as .gitkeep, which runs write to, as long as they cost few links.
code_folders() {
  find "snapshots/$tree" -mindepth 1 -printf '%y %s %P\n' | LC_ALL=C awk '
    function above(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "" }
    {
      path = substr($0, length($1 " " $2 " ") + 1)
      if ($1 == "f") bytes += $2
      within[above(path)]++
      name = path
      sub(/.*\//, "", name)
      if ($1 == "d") folders[++many] = path
      if ($1 == "d" || name !~ /^(\.gitkeep|\.keep|\.gitignore|README(\.[a-z]+)?)$/) used[above(path)]
    }
    END {
      printf "%d %.0f\n", NR, bytes
      for (at = 1; at <= many; at++) {
        if (folders[at] in used) continue
        cost = 0
        for (path = folders[at]; path != ""; path = above(path)) if (!(path in real)) cost += within[path] + 1
        if (total + cost > 100) continue
        total += cost
        for (path = folders[at]; path != ""; path = above(path)) real[path]
        print folders[at]
      }
    }' > "snapshots/.$tree.folders.$$" && mv -f "snapshots/.$tree.folders.$$" "snapshots/.$tree.folders"
}

code_unchanged() ( # code_unchanged TREE
  tree=$1 list=snapshots/.$1
  [ -e "$list.folders" ] || code_folders
  is_unchanged "snapshots/$tree" "$list" && exit
  # The times may differ, such as after a move to another disk: then the content decides.
  mkdir -p incoming && aside=$(mktemp -d "incoming/check.XXXXXX") || exit 1
  trap 'code_remove "$aside"' EXIT
  git=code.git work=snapshots/$tree
  if command -v git > /dev/null 2>&1 && code_git read-tree "$tree" 2> /dev/null; then
    code_git update-index -q --really-refresh > /dev/null 2>&1
    { code_git diff-files --name-only -z && code_git ls-files --others -z; } 2> /dev/null | tr '\n\0' '?\n' > "$aside/changed"
    if [ ! -s "$aside/changed" ]; then
      chmod -R a-w,go= "$work" && save_list "$work" "$list"
      exit
    fi
  elif [ -e "$list" ]; then
    changed_entries "$work" "$list" | sed -e '/^= end$/d' -e 's/^d [0-7]* //' -e 's/^[^ ]* [0-7]* [0-9]* [0-9.]* //' | sort -u > "$aside/changed"
  fi
  count=$(wc -l < "$aside/changed" 2> /dev/null) || count=0
  head -n 3 "$aside/changed" 2> /dev/null | while IFS= read -r name; do echo "changed $((count)) $name"; done
  exit 1
)

code_from_tar() {
  mkdir "$aside/files" && cat > "$aside/tar" || return 1
  [ "$(wc -c < "$aside/tar")" -eq "$size" ] || return 45
  tar -x -o -f "$aside/tar" -C "$aside/files" && code_protect
}

# Input: the length of a pack's index in eleven bytes, the index, the pack. The sender made both, to save work here.
# They go into a new git folder, so that a broken old one does not matter.
code_from_nothing() {
  git=$aside/code.git pack=objects/pack/pack-$tree
  mkdir -p "$aside/files" "$git/objects/pack" "$git/refs" "$git/info" || return 1
  echo 'ref: refs/heads/none' > "$git/HEAD" || return 1
  echo '* -text -filter -ident -export-subst -export-ignore -working-tree-encoding -eol' > "$git/info/attributes"
  # shellcheck disable=SC2086 # the length is padded with spaces
  length=$(head -c 11) && head -c ${length:-0} > "$git/$pack.idx" && cat > "$git/$pack.pack" || return 1
  [ $((11 + $(wc -c < "$git/$pack.idx") + $(wc -c < "$git/$pack.pack"))) -eq "$size" ] || return 45
  code_git read-tree "$tree" && code_git checkout-index --all && code_protect || return 1
  # Later uploads build on it. If the existing one is unusable, such as after a power failure, replace it.
  mv -T "$git" code.git 2> /dev/null && return
  git=code.git
  ln -f "$aside/$git/$pack.pack" "$aside/$git/$pack.idx" "$git/objects/pack/" 2> /dev/null &&
    code_git cat-file -e "$tree" 2> /dev/null && return
  mv -T "$git" "$aside/broken" 2> /dev/null
  mv -T "$aside/$git" "$git" 2> /dev/null
  return 0
}

# Input: a pack of what is new. Unchanged files are hard links to those of the base, and folders keep its modes.
code_from_base() {
  git=code.git
  [ -d "snapshots/$base" ] || return 47
  have_code . "$base" < /dev/null & # what it finds counts before anything is moved to its place
  checking=$!
  cp -rlP "snapshots/$base" "$aside/files" 2> /dev/null &
  copying=$!
  cat > "$aside/pack" || return 1
  # Unpack small packs, or there would soon be too many packs to search.
  if [ "$size" -lt 1000000 ]; then
    code_git unpack-objects -q
  else
    code_git index-pack --stdin --fix-thin
  fi < "$aside/pack" > /dev/null 2> "$aside/said" || code_excuse || return
  code_differ > "$aside/changed" 2> /dev/null &
  changed=$!
  code_differ --diff-filter=AMT > "$aside/new" 2> /dev/null &
  new=$!
  code_git read-tree "$tree" 2> "$aside/said" && wait $changed && wait $new || code_excuse || return
  wait $checking || return 47 # files of the base are broken
  if wait $copying; then
    code_each 'above "chmod u+w ." "$@" && rm -rf -- "$@" && { above rmdir "$@" 2> /dev/null || :; }' || return 1
    code_git checkout-index -z --stdin < "$aside/new" 2> "$aside/said" || code_excuse || return
    code_each 'protect "$@" && above "chmod a-w" "$@"'
  else # a file system without hard links
    code_remove "$aside/files" && mkdir "$aside/files" || return 1
    code_git checkout-index --all 2> "$aside/said" || code_excuse || return
    code_protect
  fi
}

# Runs a script on the names of all changed files, in another shell, because only xargs can read every name.
code_each() {
  (cd "$aside/files" && xargs -0 -r sh -c '
    above() { # COMMAND FILES: runs it on their parent folders
      what=$1 last=
      shift
      for file; do
        shift
        case $file in */*) file=${file%/*} ;; *) continue ;; esac
        [ "$file" != "$last" ] || continue
        last=$file
        while :; do
          if [ -d "$file" ] && [ ! -h "$file" ]; then set -- "$@" "./$file"; fi
          case $file in */*) file=${file%/*} ;; *) break ;; esac
        done
      done
      [ $# -eq 0 ] && [ "$what" = "${what% .}" ] || $what "$@"
    }
    protect() { # FILES; not links: chmod would follow them
      for file; do
        shift
        if [ -f "$file" ] && [ ! -h "$file" ]; then set -- "$@" "./$file"; fi
      done
      [ $# -eq 0 ] || chmod a-w "$@"
    }
    '"$1" sh < ../changed)
}

code_differ() {
  code_git diff-tree -r -z --no-renames --name-only "$@" "$base" "$tree"
}

# If git failed with the base, it may succeed with a complete upload, unless the disk is full.
code_excuse() {
  [ "$(wc -c < "$aside/pack")" -eq "$size" ] || return 45
  grep -i -e 'no space left' -e 'quota exceeded' "$aside/said" >&2 && return 1
  return 47
}

code_git() (
  unset GIT_WORK_TREE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS
  export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent LC_ALL=C
  export GIT_DIR="$git" GIT_INDEX_FILE="$PWD/$aside/index"
  exec git -c core.bare=false -c core.autocrlf=false -c core.symlinks=true -c core.protectNTFS=false \
    -c core.protectHFS=false -c gc.auto=0 -c checkout.workers=8 --work-tree="${work:-$aside/files}" "$@"
)

code_protect() {
  chmod -R a-w,go= "$aside/files" && chmod u+w "$aside/files"
}
