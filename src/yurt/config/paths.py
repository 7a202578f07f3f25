"""Where yurt stores a user's files, and how it writes them: to a temporary file, then renamed, mode 0600.

Under sudo the files belong to the invoking user, not to root.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path  # `yurt ps` does without


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
    return _home("YURT_CONFIG_HOME", "config")


def data_folder() -> str:
    """Return `data_home` as text."""
    return _home("YURT_DATA_HOME", "data")


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

    from yurt import quoting

    home = f"{Path.home()}/"
    text = str(path)
    if text.startswith(home):
        return "~/" + quoting.quote(text[len(home) :])
    return quoting.quote(text)


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
