"""Docs that run: the blocks of the README, the tutorial, the how-tos and an explanation, in order, in one shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

import pytest

from tests.calls import YURT

if TYPE_CHECKING:
    from yurt.lab import Lab

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = ROOT / "docs" / "tutorial" / "first-run.md"
PAGES = [
    ROOT / "README.md",
    *(page for kind in ("tutorial", "how-to") for page in sorted((ROOT / "docs" / kind).glob("*.md"))),
    ROOT / "docs" / "explanation" / "private-services.md",
]


class Step(NamedTuple):
    """A command of a page, and what the page shows of its output; `…` stands for anything."""

    command: str
    shown: list[str]


BLOCK = re.compile(r"^```(console|python)\n(.*?)^```\n(?:\n?^```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def steps(page: Path) -> list[Step]:
    """What the blocks of a page have us do.

    A python block is a script that is run, and a text block right after it shows what it prints. If it begins with the
    name of a file, such as `# train.py`, it is only written to that file.
    """
    found: list[Step] = []
    for number, (kind, block, shown) in enumerate(BLOCK.findall(page.read_text())):
        if kind == "python":
            found.append(Step(python(block, number), shown.splitlines()))
        else:
            for line in block.splitlines():
                if line.startswith("$ "):
                    found.append(Step(line[2:], []))
                else:
                    found[-1].shown.append(line)
    return found


def python(block: str, number: int) -> str:
    """The command that does with a python block what is to be done with it."""
    named = re.match(r"# (\S+\.py)\n", block)
    file = named[1] if named else f"block_{number}.py"
    write = f"cat > {file} <<'END OF BLOCK'\n{block}END OF BLOCK"
    return write if named else f"{write}\npython {file}"


OWN_LAB = ("use-the-lab.md", "second-laptop.md")
"""Pages with a lab of their own, since it must be empty or go down; the others find the session's, which is up."""


def needs_lab(page: Path) -> bool:
    return any(re.search(r"yurt lab|alpha|beta", step.command) for step in steps(page))


SESSIONS = """\
#!/bin/sh
# The lab is the session's and stays up: there is none to take down where the runs of this page are kept.
case "$1 $2" in
"lab down") ;;
"lab "*) export YURT_DATA_HOME={data} ;;
esac
exec {yurt} "$@"
"""


def follow(found: Sequence[Step], folder: Path, lab: Lab | None = None) -> None:
    """Type the commands in one shell, in a home of its own; all must succeed and print what the page shows.

    With a lab, `yurt lab` is about that one. Without, it makes one of its own, which is taken down in the end.
    """
    clone = folder / "clone"
    clone.mkdir()
    (clone / "examples").symlink_to(ROOT / "examples")
    (folder / "home").mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("YURT_")},
        "HOME": str(folder / "home"),
        "YURT_CONFIG_HOME": str(folder / "config"),
        "YURT_DATA_HOME": str(folder / "data"),
        "YURT_CLOCKS": "slow=14 first_refresh=0.2 last_refresh=1",
    }
    if lab is not None:
        program = folder / "bin" / "yurt"
        program.parent.mkdir()
        data = lab.instance.folder.parent.parent
        program.write_text(SESSIONS.format(data=shlex.quote(str(data)), yurt=shlex.quote(YURT)))
        program.chmod(0o755)
        environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    files = [folder / f"{number}.txt" for number in range(len(found) + 1)]
    typed = [typing(step, file) for step, file in zip(found, files, strict=False)]
    try:
        subprocess.run(
            ["bash", "-c", "\n".join([*typed, f": > {files[-1]}"])],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
    finally:
        if any("yurt lab" in step.command for step in found):
            if lab is None:
                subprocess.run([YURT, "lab", "down", "--wipe"], env=environment, capture_output=True, check=True)
            elif not files[-1].exists():
                lab.faults.heal("alpha")  # what the page broke, it had no chance to mend
    for step, file, following in zip(found, files, files[1:], strict=False):
        output = file.read_text()
        assert following.exists(), f"this failed: {step.command}\n{output}"
        for shown in step.shown:
            assert re.search(pattern(shown), output), f"{step.command}\n{shown!r} is not in\n{output}"


def pattern(shown: str) -> str:
    return ".*".join(re.escape(part.strip()) for part in shown.split("…"))


def typing(step: Step, file: Path) -> str:
    """A command of a page in the shell's words. One that begins with a pause is repeated until it shows what it should:
    on a busy machine the pause may be too short."""
    once = f"{{ {step.command}\n}} > {file} 2>&1 || exit 1"
    if not step.command.startswith("sleep "):
        return once
    shows = " && ".join(f"grep -qP -e {shlex.quote(pattern(shown))} {file}" for shown in step.shown)
    return f"for again in {{1..40}}; do\n{once}\n{shows or 'true'} && break\ndone"


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.name, marks=[pytest.mark.lab] if needs_lab(page) else []) for page in PAGES]
)
@pytest.mark.slow(
    "a-cluster-without-internet.md",
    "a-desk-on-the-cluster.md",
    "add-your-cluster.md",
    "environments.md",
    "keep-your-homes-in-sync.md",
    "recipes.md",
    "second-laptop.md",
    "start-wherever-it-starts-first.md",
    "survive-the-time-limit.md",
    "use-the-lab.md",
    "your-own-mlflow-server.md",
)
def test_blocks_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = steps(page)
    assert found, "a page without a command to type"
    shared = needs_lab(page) and page.name not in OWN_LAB
    follow(found, tmp_path, request.getfixturevalue("lab") if shared else None)


def test_the_tutorial_begins_without_root_or_a_cluster(tmp_path: Path) -> None:
    found = steps(TUTORIAL)
    first = next(number for number, step in enumerate(found) if "yurt lab" in step.command)
    assert first > 5
    if os.geteuid():  # else the whole page is followed
        follow(found[:first], tmp_path)


@pytest.mark.lab
def test_python_example_of_the_lab_fixture(tmp_path: Path, lab: Lab, yurt_home: Path) -> None:
    """As in a project of the user's own; the session's lab is found up, which is also what YURT_TEST_HOME is for."""
    page = (ROOT / "docs" / "how-to" / "use-the-lab.md").read_text()
    block = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert block is not None
    (tmp_path / "test_example.py").write_text(block.group(1))
    foreign = ("YURT_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    before = lab.pids()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={**environment, "YURT_TEST_HOME": str(yurt_home)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if "1 passed" not in done.stdout:
        lab.faults.free("alpha:scratch")
    assert "1 passed" in done.stdout, done.stdout
    assert lab.pids() == before


NOTED = """\
import os
from yurt import lab

class Noted:
    def up(self, *, slurm):
        print("up in", os.environ["YURT_DATA_HOME"], os.environ["YURT_CONFIG_HOME"])

    def down(self, *, wipe):
        print("down", wipe)

lab.Lab = Noted
"""


@pytest.mark.parametrize("kept", [False, True])
def test_the_lab_fixture_takes_down_what_it_brought_up(tmp_path: Path, kept: bool) -> None:
    """In a folder of the session's own, once for all its tests, unless it is to be kept."""
    (tmp_path / "conftest.py").write_text(NOTED)
    (tmp_path / "test_two.py").write_text("def test_one(lab): pass\ndef test_other(lab): pass\n")
    foreign = ("YURT_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment["YURT_DATA_HOME"] = environment["YURT_CONFIG_HOME"] = str(tmp_path / "users")
    if kept:
        environment["YURT_TEST_HOME"] = str(tmp_path / "kept")
    argv = [sys.executable, "-m", "pytest", "-qs", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout
    (told,) = re.findall(r"up in (\S+)/data (\S+)/config\n", done.stdout)
    assert told[0] == told[1] != str(tmp_path / "users")
    assert (told[0] == str(tmp_path / "kept")) == kept and ("down True" in done.stdout) != kept


@pytest.mark.xdist_group("hints")  # in the process that has read the source code
def test_reference_is_up_to_date(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tools.reference.__main__ import main

    monkeypatch.setattr(sys, "argv", ["reference", "--check"])
    assert main() == 0, capsys.readouterr().err


def test_every_kind_of_envelope_has_a_schema() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src" / "yurt").rglob("*.py"))
    kinds = set(re.findall(r'(?:render\.(?:show|stream)\(\s*|\bkind=)"([a-z-]+)"', sources))
    assert kinds and kinds | {"error"} == {file.stem for file in (ROOT / "schema").glob("*.json")}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lab", "alpha:ctl"),
        ("runs", "completed"),
        ("sweep", "30/30"),
        ("cluster", "main*"),
        ("fault", "heal"),
        ("doctor", "fault"),
    ],
)
def test_pictures_load_nothing(name: str, words: str) -> None:
    text = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()
    ElementTree.fromstring(text)
    assert words in text and not re.search(r"(?:href|src)=|url\((?!#)|@import", text)
