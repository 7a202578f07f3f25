"""Which tests `make test CHANGED=1` runs, in a small repository."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tools import changed, lint
from tools.changed import Tree
from tools.test import pages

FILES = {
    "src/yurt/dev/fetch.py": "from yurt.model import grid\n",
    "src/yurt/model/__init__.py": "",
    "src/yurt/model/grid.py": "",
    "src/yurt/model/lonely.py": "",
    "src/yurt/errors.py": "",
    "src/yurt/clocks.py": "",
    "src/yurt/model/broken.py": "from yurt.model import grid\ndef",
    "src/yurt/backends/job/main.sh": "",
    "src/yurt/backends/job/script.py": "PARTS = ['main.sh']\n",
    **{f"src/yurt/store/part{number}.py": "from yurt.errors import CODES\n" for number in range(changed.FEW + 1)},
    "tests/test_clocks.py": "",
    "tests/user.py": "from yurt import model\n",
    "tests/backends/test_script.py": "",
    "tests/dev/test_fetch_lab.py": "",
    "tests/docs/test_links.py": "",
    "tests/lab/test_fetch.py": "",
    "tests/lab/conftest.py": "",
    "tests/lifecycle/test_sweeps.py": "def test_it():\n    import yurt.model.grid\n",
    "tests/model/test_grid.py": "",
    "tests/model/test_grid_text.py": "",
    "tests/model/test_gridded.py": "from yurt.errors import CODES\n",
    "tests/store/test_part0.py": "",
    "tests/dev/test_fetch.py": "from tests.user import User\n",
    "docs/how-to/fetch.md": "",
    "Makefile": "",
}


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


SAME, IMPORTS, STEP, FOLDER = changed.REASONS[1:]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/lab/test_fetch.py", {"tests/lab/test_fetch.py": "changed"}),
        ("tests/lab/test_deleted.py", {}),
        (
            "src/yurt/dev/fetch.py",
            {"tests/dev/test_fetch_lab.py": SAME, "tests/dev/test_fetch.py": SAME},
        ),
        (
            "src/yurt/model/grid.py",
            {
                "tests/model/test_grid.py": SAME,
                "tests/model/test_grid_text.py": SAME,
                "tests/lifecycle/test_sweeps.py": IMPORTS,
                "tests/dev/test_fetch_lab.py": STEP,
                "tests/dev/test_fetch.py": STEP,
            },
        ),
        ("src/yurt/errors.py", {"tests/model/test_gridded.py": IMPORTS}),  # too many modules import it for their tests
        ("src/yurt/clocks.py", {"tests/test_clocks.py": SAME}),
        (
            "src/yurt/model/lonely.py",
            {path: FOLDER for path in FILES if "tests/model/" in path},
        ),
        ("src/yurt/backends/job/main.sh", {"tests/backends/test_script.py": STEP}),
        ("tests/user.py", {"tests/dev/test_fetch.py": IMPORTS}),
        ("tests/lab/conftest.py", {"tests/lab/test_fetch.py": IMPORTS}),
        ("docs/how-to/fetch.md", {"tests/docs/test_links.py": FOLDER}),
        ("Makefile", {}),
    ],
)
def test_the_tests_of_a_file(root: Path, path: str, expected: dict[str, str]) -> None:
    tree = Tree(root)
    found = tree.choose([path])
    assert found == expected
    assert list(found) == sorted(found, key=lambda each: changed.REASONS.index(found[each]))
    assert tree.unmapped(path) == (not expected)


def test_lines_name_the_reason_and_some_files() -> None:
    found = {"tests/test_a.py": "changed", **{f"tests/test_{number}.py": IMPORTS for number in range(9)}}
    first, second = changed.lines(found, most=2)
    assert first == "changed (1): tests/test_a.py"
    assert second == f"{IMPORTS} (9): tests/test_0.py tests/test_1.py and 7 more"


def test_only_the_blocks_of_changed_pages_run() -> None:
    page, test = "docs/how-to/fetch.md", "tests/docs/test_docs.py"
    assert pages([page, "Makefile"], {test: FOLDER}) == ["-k", "not test_blocks_run or fetch.md"]
    assert pages([page, test], {test: "changed"}) == pages([page], {}) == []


def test_types_of_changed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    (tmp_path / "wrong.py").write_text("number: int = 'a'\n")
    paths = ["wrong.py", "deleted.py", "page.md"]
    with lint.types_of(paths, time.time() + 300) as failed:
        assert not failed() and "without a cache" in capfd.readouterr().out
    (tmp_path / ".mypy_cache").mkdir()
    with lint.types_of(paths, time.time() + 300) as failed:
        assert failed()
    assert "mypy of 1 files: FAILED" in (shown := capfd.readouterr().out) and "wrong.py:1" in shown
    (tmp_path / "wrong.py").write_text("number: int = 1\n")
    with lint.types_of(paths, time.time() + 300) as failed:
        assert not failed()


def test_what_changed(root: Path) -> None:
    assert changed.base(root) == "HEAD", "there is one commit"
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    git(root, "checkout", "-q", "-b", "work")
    (root / "Makefile").write_text("all:\n")
    git(root, "commit", "-q", "-a", "-m", "on the branch")
    git(root, "rm", "-q", "tests/user.py")
    (root / "src/yurt/errors.py").write_text("CODES = ()\n")
    (root / "tests/model/test_späť.py").write_text("")
    (root / ".gitignore").write_text("*.log\n")
    (root / "build.log").write_text("")
    here = [".gitignore", "Makefile", "src/yurt/errors.py", "tests/model/test_späť.py", "tests/user.py"]
    assert changed.changed_since(root, changed.base(root)) == here
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "work")
    assert changed.changed_since(root, changed.base(root)) == here, "on main: the last commit"
    git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert "Makefile" not in changed.changed_since(root, changed.base(root)), "on main: since origin's"
