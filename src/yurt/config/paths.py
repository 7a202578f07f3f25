"""Where yurt stores a user's files, and how it writes them: to a temporary file, then renamed, mode 0600.

What these files say, yurt does: a folder that another user can change is refused when it is first used.
Under sudo the files belong to the invoking user, not to root.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
from typing import TYPE_CHECKING

from yurt import private

if TYPE_CHECKING:
    from pathlib import Path  # `yurt ps` does without

    from yurt.errors import YurtError


_checked: set[str] = set()
"""The folders that were found to be safe."""

_above: set[str] = set()
"""The folders above them, and those above these, to which only the user and root can write."""

_STICKY = 0o1000
"""In a folder with this bit, such as /tmp, nobody replaces what belongs to others."""

_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)

_INDEX = ("yurt.db", "yurt.db-wal", "yurt.db-shm")
_DECIDING = (*_INDEX, "agent", "code", "envs", "homes.json", "outbox", "saved", "trusted", "uv", "wheels")
"""What in the data folder decides which code runs. It may be from a time when others could write to the folder."""


def config_home() -> Path:
    """Return $YURT_CONFIG_HOME, else the platform's folder. It may not exist."""
    from pathlib import Path

    return Path(config_folder())


def data_home() -> Path:
    """Return $YURT_DATA_HOME, else the platform's folder. It may not exist."""
    from pathlib import Path

    return Path(data_folder())


def config_folder() -> str:
    """Return `config_home` as text."""
    return safe(_home("YURT_CONFIG_HOME", "config"))


def data_folder() -> str:
    """Return `data_home` as text."""
    folder = _home("YURT_DATA_HOME", "data")
    return folder if folder in _checked else safe(folder, *(f"{folder}/{name}" for name in _DECIDING))


def safe(folder: str, *files: str) -> str:
    """Return a folder; UserError if another user can change or replace it, or can change these files in it."""
    if folder not in _checked:
        _check_above(folder)
        real = os.path.realpath(folder)
        if real != folder:
            _check_above(real)
        for each in (folder, *files):
            try:
                about = os.stat(each)
            except OSError:  # it does not exist yet; other faults show when it is used
                continue
            if not private.is_own(about):
                check_owner(each, about)
        _checked.add(folder)
    return folder


def _check_above(folder: str) -> None:
    """UserError if another user can replace a folder: they can write to one above it that is not sticky.

    The owner of a folder above may be anybody: in a container, the folders of root seem to belong to nobody.
    """
    above = folder
    while above != "/":
        above = above.rpartition("/")[0] or "/"
        if above in _above:
            return
        try:
            about = os.stat(above)
        except OSError:  # it does not exist yet
            continue
        if about.st_mode & 0o022 and not about.st_mode & _STICKY:
            _check_writers(folder, above, about)
        _above.add(above)


def _check_writers(folder: str, above: str, about: os.stat_result) -> None:
    from yurt.errors import UserError
    from yurt.node.writers import others_write

    person = invoking_user()
    user = person[0] if person is not None else os.geteuid()
    if others_write(above, about, user):
        own = about.st_uid in (user, os.geteuid())
        elsewhere = "or set `YURT_CONFIG_HOME` and `YURT_DATA_HOME` to folders elsewhere"
        raise UserError(
            f"cannot use {folder}: other users can write to {above}, so they could replace it and run programs as you",
            code="config-unsafe",
            hint=f"run `chmod go-w {as_typed(above)}`"
            if own
            else own_place(folder) or f"ask its owner to type `chmod go-w {as_typed(above)}`, {elsewhere}",
        )


def check_owner(file: str | Path, about: os.stat_result, opened: int | None = None) -> None:
    """UserError if another user than root owns a file or folder, or can write to it. `opened`: its descriptor."""

    from yurt.errors import UserError
    from yurt.node.writers import others_write

    person = invoking_user()
    user = person[0] if person is not None else os.geteuid()
    typed, each = as_typed(file), "-R " if stat.S_ISDIR(about.st_mode) else ""
    if about.st_uid not in (0, user, os.geteuid()):
        theirs = _owner_above(str(file)) != user
        raise UserError(
            f"cannot use {file}: it belongs to another user (uid {about.st_uid}), who could run programs as you",
            code="config-unsafe",
            hint=(theirs and own_place(str(file)))
            or f"check its content, then make it yours: `sudo chown {each}{user} {typed}`",
        )
    if others_write(str(file) if opened is None else opened, about, user):
        shared = about.st_uid != user or about.st_mode & stat.S_ISVTX or not (each or stat.S_ISREG(about.st_mode))
        raise UserError(
            f"cannot use {file}: other users can write to it, and could run programs as you",
            code="config-unsafe",
            hint=(shared and own_place(str(file))) or f"check its content, then run `chmod {each}go-w {typed}`",
        )


def _owner_above(file: str) -> int:
    """Return the user who owns the folder of a file or folder; -1 if it cannot be read."""
    try:
        return os.stat(file.rpartition("/")[0] or "/").st_uid
    except OSError:
        return -1


def own_place(file: str) -> str:
    """Return how to leave a folder that is not meant to be the user's; empty if no variable has chosen it."""
    for variable in ("YURT_CONFIG_HOME", "YURT_DATA_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        named = os.environ.get(variable)
        if named and f"{file}/".startswith(f"{named.rstrip('/')}/"):
            return f"use a folder of your own: `unset {variable}`"
    import pwd

    try:
        home = pwd.getpwuid((invoking_user() or (os.geteuid(), 0))[0]).pw_dir
    except KeyError:  # a container without this user
        return ""
    named = os.environ.get("HOME", "").rstrip("/")
    if named and named != home.rstrip("/") and file.startswith(f"{named}/"):
        return f"use your own home: `export HOME={as_typed(home)}`"
    return ""


def unwritable(error: OSError) -> YurtError | None:
    """Return the error for the user if yurt cannot use its own folders; None if the error is about something else."""
    from yurt.errors import UserError, YurtError, use_another

    if not isinstance(error.filename, str) or error.errno not in _UNWRITABLE:
        return None
    try:
        homes = {"YURT_DATA_HOME": data_folder(), "YURT_CONFIG_HOME": config_folder()}
    except YurtError as unsafe:
        return unsafe
    path = os.path.normpath(error.filename)
    for variable, folder in homes.items():
        if f"{path}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{path.rstrip('/')}/"):
            message = f"cannot use {path}: {error.strerror}"
            return UserError(message, code="config-unwritable", hint=use_another(variable))
    return None


def _home(variable: str, kind: str) -> str:
    named = os.environ.get(variable)
    if named:
        if named.startswith("/") and os.path.normpath(named) == named:
            return named
        from pathlib import Path

        return str(Path(named).expanduser().absolute())
    person = invoking_user()
    if person is not None:
        import pwd

        below = {"config": ".config", "data": ".local/share"}[kind]
        return f"{pwd.getpwuid(person[0]).pw_dir}/{below}/yurt"
    home = os.environ.get("HOME", "")
    if sys.platform == "linux" and home.startswith("/") and not os.environ.get(f"XDG_{kind.upper()}_HOME"):
        below = {"config": ".config", "data": ".local/share"}[kind]
        return os.path.normpath(f"{home}/{below}/yurt")  # as platformdirs, whose import takes long
    import platformdirs

    return platformdirs.user_config_dir("yurt") if kind == "config" else platformdirs.user_data_dir("yurt")


def as_typed(path: str | Path) -> str:
    """Return a path as typed in a shell: with ~ for the home folder, quoted if necessary."""
    from pathlib import Path

    home = f"{Path.home()}/"
    text = str(path)
    if text.startswith(home):
        return "~/" + shlex.quote(text[len(home) :])
    return shlex.quote(text)


def invoking_user() -> tuple[int, int] | None:
    """Return (uid, gid) of the user who called sudo; None without sudo."""
    if os.geteuid() != 0 or not os.environ.get("SUDO_UID", "").isdigit():
        return None
    uid, gid = int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", "0"))
    return None if uid == 0 else (uid, gid)


def hand_over(path: Path | str) -> None:
    """Change the owner of a file or folder to the user who called sudo, if any."""
    person = invoking_user()
    if person is not None:
        os.chown(path, *person, follow_symlinks=False)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700."""
    absent = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(absent):
        each.mkdir(mode=0o700, exist_ok=True)
        hand_over(each)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically, mode 0600. Readers see either the old content or the new one."""
    import tempfile

    make_private(path.parent)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        hand_over(temporary)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
