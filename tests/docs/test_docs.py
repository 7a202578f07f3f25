"""Docs that run: every console block of the README and the how-tos, in order, in a lab of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.lab
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks_run(page: Path, tmp_path: Path) -> None:
    found = commands(page)
    assert found, "a page without a command to type"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "YURT_CONFIG_HOME": str(tmp_path / "config"),
        "YURT_DATA_HOME": str(tmp_path / "data"),
    }
    try:
        for command in found:
            argv = ["bash", "-c", command]
            done = subprocess.run(
                argv,
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    finally:
        subprocess.run(["yurt", "lab", "down", "--wipe"], env=environment, capture_output=True, check=True)


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
    kinds = set(re.findall(r'render\.show\(\s*"([a-z-]+)"', sources))
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    assert kinds and kinds == set(re.findall(r"^## ([a-z-]+)$", page, re.MULTILINE))


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_picture_needs_nothing_from_elsewhere() -> None:
    text = (ROOT / "docs" / "pictures" / "lab.svg").read_text()
    ElementTree.fromstring(text)
    assert "alpha:ctl" in text and not re.search(r"(?<!xmlns=\")https?://", text)
