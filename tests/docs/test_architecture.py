"""Checks the architecture page: its picture shows the layers, its tables list the files that the commands use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import yurt
from tests.user import User
from tools.architecture import layers

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
MOST = 30

RECORD = """\
import json, sys
package, argv = sys.argv[1], sys.argv[2:]
entered = []
def record(frame, event, _value):
    code = frame.f_code
    # Ignore class bodies, which run at import, and trivial accessors such as `backend.runs`.
    counts = code.co_flags & 2 and code.co_name[0] != "<" and code.co_name not in ("__init__", "runs", "files")
    if event == "call" and counts and code.co_filename.startswith(package):
        name = code.co_filename[len(package):]
        if name not in entered:
            entered.append(name)
from yurt.cli import main
sys.setprofile(record)
main.run(argv)
sys.setprofile(None)
print(json.dumps(entered))
"""


def tables() -> list[list[str]]:
    """Return the files of the tables for `yurt run` and `yurt ps`."""
    found: list[list[str]] = []
    for part in re.split(r"^`yurt (?:run|ps)[^`]*`$", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        found.append(re.findall(r"^\| \d+ \| `([^`]+)`", part, re.MULTILINE))
    return found


def entered(user: User, *argv: str) -> list[str]:
    """Run a command; return the files of yurt whose functions it calls, in order of the first call."""
    package = f"{Path(yurt.__file__).parent}/"
    command = [sys.executable, "-c", RECORD, package, *argv]
    done = subprocess.run(
        command, env=user.environment, cwd=user.project, capture_output=True, text=True, timeout=120, check=True
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_tables_are_short_and_list_each_file_once() -> None:
    both = [file for table in tables() for file in table]
    assert len(both) <= MOST and len(set(both)) == len(both)
    assert all((ROOT / "src" / "yurt" / file).is_file() for file in both)


def test_the_commands_use_these_files_in_this_order(user: User) -> None:
    (user.project / "train.py").write_text("print(1)\n")
    run, ps = tables()
    assert [file for file in entered(user, "run", "train.py") if file in run] == run
    assert [file for file in entered(user, "ps") if file in ps] == ps


def test_the_picture_is_up_to_date() -> None:
    check = [sys.executable, str(ROOT / "tools" / "architecture.py"), "--check"]
    assert subprocess.run(check, check=False).returncode == 0, "run `make docs`"


def test_every_package_has_a_layer() -> None:
    """The maps in CONTRIBUTING.md and architecture.md are made from these; see tools/reference/maps.py."""
    source = ROOT / "src" / "yurt"
    found = {f"yurt.{each.parent.name}" for each in source.glob("*/__init__.py")}
    found |= {f"yurt.{each.stem}" for each in source.glob("[!_]*.py")}
    assert {name for layer in layers() for name in layer} == found
