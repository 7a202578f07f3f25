# One side of a sync: its folder, its lock, its root and its Unison. Shared by serve.sh and client.sh.
# Set before: token stamp client client_name place identity root unison backups known record check again partly here,
# refill=1 if it has lost everything and is filled again, and direct=1 if a person reads along.

say() { # WORD [TEXT]: a line for yurt on standard error; Unison passes it on
    if [ -z "$direct" ]; then
        printf '\nyurt-side %s %s %s %s\n' "$token" "$place" "$1" "${2-}" >&2
    else
        case $1 in
        begun) ;;
        edited) printf 'files on %s were edited during the last sync\n' "$place" >&2 ;;
        locked) printf 'another sync of %s is running\n' "$place" >&2 ;;
        *-unison) printf '%s has no Unison 2.52 or newer; `yurt home sync` may install it\n' "$place" >&2 ;;
        emptied) printf '%s on %s has no files any more\n' "$2" "$place" >&2 ;;
        vanished) printf '%s on %s has lost its file .yurt-home: is it mounted?\n' "$2" "$place" >&2 ;;
        *) printf 'cannot sync %s: %s %s\n' "$place" "$1" "${2-}" >&2 ;;
        esac
    fi
}

refuse() { # WORD [TEXT]
    say "$@"
    exit 79
}

prepare() {
    user_umask=$(umask)
    umask 077
    # Without $UNISON, some versions of Unison use another folder on some systems.
    UNISON=${UNISON:-$HOME/.unison}
    export UNISON
    [ -d "$UNISON/yurt" ] || mkdir -p -- "$UNISON/yurt" || refuse folder "$UNISON/yurt"
    [ -O "$UNISON/yurt" ] || refuse folder "$UNISON/yurt"
    case $backups in
    '') backups=$UNISON/backup ;;
    /*) ;;
    *) backups=$HOME/$backups ;;
    esac
    # Unison creates only the last folder of a path. Others could read or replace backups in a folder of theirs.
    [ -d "$backups" ] || mkdir -p -- "$backups" || refuse folder "$backups"
    [ -O "$backups" ] || refuse folder "$backups"
}

take_lock() { # Unison inherits descriptor 9: the lock is held until it ends, also if it is killed
    command -v flock > /dev/null || refuse no-flock
    # Not `:` or exec: a failed redirection of these ends a shell.
    true 2> /dev/null >> "$UNISON/yurt/lock" || refuse folder "$UNISON/yurt"
    exec 9>> "$UNISON/yurt/lock"
    flock -n 9 || take_over
    note_owner
}

take_over() {
    # The client holds its own lock, so what it left here is at most a Unison whose connection is lost: sshd notices
    # that after hours. Only a process that has the token of the lock in its environment is killed.
    read -r its_client its_token its_pid its_host its_since its_name < "$UNISON/yurt/owner" || :
    if [ "$its_client" = "$client" ] && [ "$its_host" = "$(uname -n)" ]; then
        if tr '\0' '\n' < "/proc/$its_pid/environ" 2> /dev/null | grep -qx "YURT_HOME_SYNC=$its_token"; then
            kill "$its_pid" 2> /dev/null
            flock -w 5 9 && return
            kill -KILL "$its_pid" 2> /dev/null
        fi
        flock -w 5 9 && return # one that is ending has no environment any more, but still the lock
    fi
    refuse locked "$its_since $its_name"
}

note_owner() { # in one write: who reads it at that moment finds nothing, or all of it
    YURT_HOME_SYNC=$token
    export YURT_HOME_SYNC
    host=-
    [ -n "$here" ] || host=$(uname -n)
    printf '%s %s %s %s %s %s\n' "$client" "$token" $$ "$host" "$stamp" "$client_name" > "$UNISON/yurt/owner"
}

check_root() {
    # The file roots lists the roots that have got their .yurt-home; known=1: this root was synced before. One that has
    # lost it is not mounted. It has content once the home had files: then an empty home is not synced either.
    case $root in
    '') root=$HOME ;;
    /*) ;;
    *) root=$HOME/$root ;;
    esac
    if [ -n "$refill" ]; then
        { mkdir -p -- "$root" && true > "$root/.yurt-home"; } || refuse root "$root"
    elif [ -z "$known" ] && ! is_listed "$root"; then
        { mkdir -p -- "$root" && true >> "$root/.yurt-home"; } || refuse root "$root"
        printf '%s\n' "$root" >> "$UNISON/yurt/roots"
    fi
    [ -e "$root/.yurt-home" ] || refuse vanished "$root"
    if [ ! -r "$root" ] || [ ! -x "$root" ]; then refuse root "$root"; fi # it would look empty
    set -- "$root"/*
    if [ -e "$1" ] || [ -h "$1" ]; then
        [ -s "$root/.yurt-home" ] || echo files > "$root/.yurt-home" || :
    elif [ -s "$root/.yurt-home" ] && [ -z "$again" ]; then # this sync may have deleted all files itself
        refuse emptied "$root"
    fi
}

is_listed() { # is_listed ROOT: whether a root has got its .yurt-home
    [ -e "$UNISON/yurt/roots" ] || return
    while IFS= read -r each; do
        [ "$each" != "$1" ] || return 0
    done < "$UNISON/yurt/roots"
    return 1
}

find_unison() { # sets found and version: the first Unison that is new enough
    old='' found=''
    if [ -n "$unison" ]; then
        set -- "$unison"
    else
        set -- "$(command -v unison)" "$HOME/.local/bin/unison" "$UNISON/yurt/bin/unison"
    fi
    for each; do
        [ -x "$each" ] || continue
        version=$("$each" -version 2> /dev/null < /dev/null)
        version=${version#unison version }
        version=${version%% *}
        case $version in
        2.5[2-9]* | 2.[6-9][0-9]* | [3-9].*)
            found=$each
            return
            ;;
        *) old="$each $version" ;;
        esac
    done
    if [ -n "$old" ]; then
        refuse old-unison "$old"
    fi
    refuse no-unison "$unison"
}

list_waiting() { # in the background, as the scheduler takes its time; `start` waits for it. A part releases no jobs.
    # `?`: the queue could not be read, so jobs may wait.
    [ -n "$here$partly" ] ||
        { home_waiting > "$UNISON/yurt/waiting.$token" || echo '?' > "$UNISON/yurt/waiting.$token"; } 2> /dev/null 9>&- &
}

start() { # the environment of Unison; the archives are found under this name on every login host of a site
    # From the stamp on, an edit counts as made during this sync. So it comes before the files are looked at.
    [ -n "$again$partly" ] || [ "$check" = no-begin ] || sure_begin "$record" "$token"
    sure_check "$record" "$root" "$check" || refuse edited
    wait
    waits=waits
    if [ ! -s "$UNISON/yurt/waiting.$token" ]; then
        waits=''
        [ -n "$here" ] || rm -f -- "$UNISON/yurt/waiting.$token"
    fi
    UNISONLOCALHOSTNAME=$identity
    UNISONBACKUPDIR=$backups/$stamp-$token
    export UNISONLOCALHOSTNAME UNISONBACKUPDIR
    umask "$user_umask"
    cd || exit
    say begun "$version $waits"
}
