"""The page about the architecture is true: its picture shows the layers, its walk is the one the commands take."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import yurt
from tests.user import User

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
MOST = 30

FOLLOW = """\
import json, sys
here, argv = sys.argv[1], sys.argv[2:]
entered = []
def follow(frame, event, _value):
    code = frame.f_code
    # A class body runs when its module is imported, and `backend.runs` is only a door: nobody has gone there.
    went = code.co_flags & 2 and code.co_name[0] != "<" and code.co_name not in ("__init__", "runs", "files")
    if event == "call" and went and code.co_filename.startswith(here):
        name = code.co_filename[len(here):]
        if name not in entered:
            entered.append(name)
from yurt.cli import main
sys.setprofile(follow)
main.run(argv)
sys.setprofile(None)
print(json.dumps(entered))
"""


def walks() -> list[list[str]]:
    """The files of each table that a command heads."""
    found: list[list[str]] = []
    for part in re.split(r"^`yurt (?:run|ps)[^`]*`$", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        found.append(re.findall(r"^\| \d+ \| `([^`]+)`", part, re.MULTILINE))
    return found


def entered(user: User, *argv: str) -> list[str]:
    here = f"{Path(yurt.__file__).parent}/"
    words = [sys.executable, "-c", FOLLOW, here, *argv]
    done = subprocess.run(
        words, env=user.environment, cwd=user.project, capture_output=True, text=True, timeout=120, check=True
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_few_files_and_none_twice() -> None:
    both = [file for walk in walks() for file in walk]
    assert len(both) <= MOST and len(set(both)) == len(both)
    assert all((ROOT / "src" / "yurt" / file).is_file() for file in both)


def test_the_commands_take_this_way(user: User) -> None:
    (user.project / "train.py").write_text("print(1)\n")
    run, ps = walks()
    there = entered(user, "run", "train.py")
    assert [file for file in there if file in run] == run
    there = entered(user, "ps")
    assert [file for file in there if file in ps] == ps


def test_the_picture_is_of_these_layers() -> None:
    check = [sys.executable, str(ROOT / "tools" / "architecture.py"), "--check"]
    assert subprocess.run(check, check=False).returncode == 0, "make docs"
