"""A Python for uv that describes the Python of yurt and runs nothing: no code of a package runs while uv reads it.

uv takes the metadata of wheels, and that of source archives that is static. For anything else it runs the build code of
the package with the Python that it was given. This one answers uv's question about itself from a file, and fails then.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from shlex import quote

from yurt import private
from yurt.config import paths
from yurt.errors import UserError

REFUSED = "yurt runs no code of a package here"
ANSWER = "answer.json"

RECORDER = """\
#!/bin/sh
exec {python} "$@" >{answer}
"""

INERT = """\
#!/bin/sh
case $1 in
-I) exec cat {answer} ;;
esac
echo '{refused}' >&2
exit 1
"""
"""uv asks with -I and runs the build code of a package with -c. Both get nothing but the file."""


def path(uv: str, environment: dict[str, str]) -> str:
    """Return the path of a Python for this uv. It is made once for each version of uv and of Python."""
    about = [(each, os.stat(each).st_mtime_ns) for each in (uv, sys.executable)]
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    folder = paths.data_home() / "uv" / f"inert-{key}"
    paths.safe(str(folder), f"{folder}/python")
    if not (folder / "python").exists():
        paths.make_private(folder.parent)
        with tempfile.TemporaryDirectory(prefix="inert-", dir=folder.parent) as name:
            _make(Path(name), folder, uv, environment)
    return str(folder / "python")


def _make(aside: Path, folder: Path, uv: str, environment: dict[str, str]) -> None:

    answer = aside / "recorded.json"
    _write(aside / "recorder", RECORDER.format(python=quote(sys.executable), answer=quote(str(answer))))
    (aside / "none.txt").touch()
    # The file is empty and there is no network: uv only asks the Python about itself. It reads the answer from a file.
    words = ["pip", "compile", "--no-config", "--offline", "--quiet", "none.txt", "--python", str(aside / "recorder")]
    done = subprocess.run(
        [uv, *words], cwd=aside, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    try:
        told = json.loads(answer.read_text())
    except (OSError, ValueError):
        raise UserError(
            f"uv does not ask the Python of yurt about itself in a known way: {done.stderr.strip()[:200]}",
            code="program-missing",
            hint="run `pip install --upgrade uv yurt`",
        ) from None
    for name in ("sys_executable", "sys_base_executable"):
        told[name] = str(folder / "python")
    made = aside / "made"
    private.make_folder(made)
    private.write(made / ANSWER, json.dumps(told).encode())
    _write(made / "python", INERT.format(answer=quote(str(folder / ANSWER)), refused=REFUSED))
    with suppress(OSError):  # another process was faster
        made.rename(folder)


def _write(file: Path, text: str) -> None:
    private.write(file, text.encode())
    file.chmod(0o700)
