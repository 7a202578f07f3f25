"""The working directory of a run behaves like a checkout, as far as that needs few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.laptop import Laptop
from tests.user import User
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually


def write(project: Path, *names: str) -> None:
    for name in names:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}\n")


def fill(project: Path, many: int) -> None:
    write(project, *(f"src/part{number % 10}/{number}.py" for number in range(many)))


def kinds(work: Path) -> dict[str, str]:
    """Return `link` or `folder` for each entry at the first two levels of a working directory."""
    return {
        str(path.relative_to(work)): "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
        for path in [
            *work.glob("*"),
            *(each for path in work.glob("*") if not path.is_symlink() for each in path.glob("*")),
        ]
    }


def running(user: User, *words: str, cwd: Path | None = None) -> Path:
    """Start a run that waits; return its working directory."""
    done = user("--json", "run", *words, "sh", "-c", PATIENT, cwd=cwd, YURT_LOCAL_CPUS="8")
    assert done.code == 0, done
    folder = Path(done.json["data"]["run"]["folder"])
    work = folder / ("tasks/0/work" if "sweeps" in str(folder) else "work")
    eventually(work.is_dir)
    return work


def test_few_files_are_links_in_real_folders(user: User) -> None:
    write(user.project, "a.py", "lib/b.py", "lib/deep/c.py", "results/.gitkeep")
    found = kinds(running(user))
    assert found["lib"] == found["lib/deep"] == found["results"] == "folder"
    assert found["a.py"] == found["lib/b.py"] == "link"


def test_many_files(user: User) -> None:
    """Only folders that cost little are real: placeholders, the start folder, and those in `writable`."""
    fill(user.project, 300)
    write(user.project, "results/.gitkeep", "data/cache/.gitignore", "data/README.md", "docs/guide.md", "start/x.py")
    write(user.project, "logs/old/x", "logs/y")
    (user.project / "yurt.yaml").write_text("writable: [logs, new/folder]\n")
    found = kinds(running(user, cwd=user.project / "start"))
    assert {name for name, kind in found.items() if kind == "folder"} == {
        *("results", "data", "data/cache", "start", "logs", "logs/old", "new", "new/folder")
    }
    assert found["src"] == found["docs"] == found["data/README.md"] == "link"


def test_few_links_for_each_task(user: User) -> None:
    fill(user.project, 60)
    found = kinds(running(user, "--grid", "n=1..2"))
    assert found["src"] == "link", "a run on its own has real folders up to 200 entries, a task up to 50"
    assert kinds(running(user))["src"] == "folder"


def test_placeholders_that_cost_many_links(user: User) -> None:
    fill(user.project, 300)
    write(user.project, *(f"wide/{number}/code.py" for number in range(120)), "wide/out/.gitkeep")
    write(user.project, *(f"outs/{number}/.gitkeep" for number in range(200)))
    work = running(user)
    assert kinds(work)["wide"] == "link"
    assert sum(1 for _each in work.rglob("*")) < 200


@pytest.mark.parametrize("path", ["/abs", "../up", "..", ".", "~/x"])
def test_writable_folders_are_in_the_project(user: User, path: str) -> None:
    (user.project / "yurt.yaml").write_text(f"writable: ['{path}']\n")
    done = user("run", "true")
    assert done.code == 2 and f"`writable` names '{path}'" in done.err, done


WRITES = """\
set -e
echo new > results/new.txt
echo more > top.txt
sed -i s/content/CHANGED/ lib/b.py
grep -q CHANGED lib/b.py
echo replaced > aside && mv aside a.py
mkdir -p lib/made && echo x > lib/made/x
echo through >> lib/deep/c.py
"""


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_a_script_writes_into_its_own_folder(laptop: Laptop, context: str) -> None:
    write(laptop.project, "a.py", "lib/b.py", "lib/deep/c.py", "results/.gitkeep")
    run = laptop.run(context, "sh", "-c", WRITES)["run"]["id"]
    assert laptop.ended(run)["state"] == "failed", "a file of the code cannot be written to"
    err = laptop("logs", run).err + laptop("logs", run).out
    assert "c.py: Permission denied" in err
    assert "yurt: files of the code are read-only in a run; use `--copy`, or list the folder" in err
    again = laptop.run(context, "sh", "-c", WRITES.rpartition("echo")[0])["run"]["id"]
    assert laptop.ended(again)["state"] == "completed"
