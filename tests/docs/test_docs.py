"""Docs that run: the console and python blocks of the README, the tutorial and the how-tos, in order, in one shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = ROOT / "docs" / "tutorial" / "first-run.md"
PAGES = [ROOT / "README.md", TUTORIAL, *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


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


def needs_lab(page: Path) -> bool:
    return any(re.search(r"yurt lab|alpha|beta", step.command) for step in steps(page))


def follow(found: Sequence[Step], folder: Path) -> None:
    """Type the commands in one shell, in a home of its own; all must succeed and print what the page shows."""
    clone = folder / "clone"
    clone.mkdir()
    (clone / "examples").symlink_to(ROOT / "examples")
    (folder / "home").mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("YURT_")},
        "HOME": str(folder / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "YURT_CONFIG_HOME": str(folder / "config"),
        "YURT_DATA_HOME": str(folder / "data"),
    }
    files = [folder / f"{number}.txt" for number in range(len(found) + 1)]
    typed = [f"{{ {step.command}\n}} > {file} 2>&1 || exit 1" for step, file in zip(found, files, strict=False)]
    try:
        subprocess.run(
            ["bash", "-c", "\n".join([*typed, f": > {files[-1]}"])],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=240,
            check=False,
        )
    finally:
        if any("yurt lab" in step.command for step in found):
            subprocess.run(["yurt", "lab", "down", "--wipe"], env=environment, capture_output=True, check=True)
    for step, file, following in zip(found, files, files[1:], strict=False):
        output = file.read_text()
        assert following.exists(), f"this failed: {step.command}\n{output}"
        for shown in step.shown:
            pattern = ".*".join(re.escape(part.strip()) for part in shown.split("…"))
            assert re.search(pattern, output), f"{step.command}\n{shown!r} is not in\n{output}"


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.name, marks=[pytest.mark.lab] if needs_lab(page) else []) for page in PAGES]
)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    found = steps(page)
    assert found, "a page without a command to type"
    follow(found, tmp_path)


def test_the_tutorial_begins_without_root_or_a_cluster(tmp_path: Path) -> None:
    found = steps(TUTORIAL)
    first = next(number for number, step in enumerate(found) if "yurt lab" in step.command)
    assert first > 5
    if os.geteuid():  # else the whole page is followed
        follow(found[:first], tmp_path)


@pytest.mark.lab
def test_python_example_of_the_lab_fixture(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "use-the-lab.md").read_text()
    block = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert block is not None
    (tmp_path / "test_example.py").write_text(block.group(1))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("YURT_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout


def test_reference_says_what_the_code_says() -> None:
    argv = [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_kind_of_envelope_is_in_the_reference() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src" / "yurt" / "cli").glob("*.py"))
    kinds = set(re.findall(r'(?:render\.(?:show|stream)\(\s*|\bkind=)"([a-z-]+)"', sources))
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    assert kinds and kinds == set(re.findall(r"^## ([a-z-]+)$", page, re.MULTILINE))


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize(("name", "words"), [("lab", "alpha:ctl"), ("runs", "completed")])
def test_pictures_need_nothing_from_elsewhere(name: str, words: str) -> None:
    text = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()
    ElementTree.fromstring(text)
    assert words in text and not re.search(r"(?<!xmlns=\")https?://", text)
