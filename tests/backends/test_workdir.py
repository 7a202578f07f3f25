"""The working directory of a run behaves like a checkout, as far as that needs few files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.backends import scripts
from yurt.lab import Lab


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


def write(project: Path, *names: str) -> None:
    for name in names:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}\n")


def fill(project: Path, many: int) -> None:
    write(project, *(f"src/part{number % 10}/{number}.py" for number in range(many)))


LIST = "find . -mindepth 1 -maxdepth 2 -printf '%P %y\\n'"
KINDS = {"l": "link", "d": "folder", "f": "file"}


def kinds(laptop: Laptop, *options: str, cwd: Path | None = None) -> dict[str, str]:
    """Return the kind of each entry at the first two levels of the working directory of a run on alpha.

    Not of one on this machine: a run of root gets copies.
    """
    script = f"cd ./$(dirname $0) && {LIST}"
    top = "." if cwd is None else "../" * len(cwd.relative_to(laptop.project).parts) + "x"
    done = laptop("--context", "alpha", "--json", "run", *options, "sh", "-c", script, top, cwd=cwd)
    assert done.code == 0, done
    run = done.json["data"]["run"]["id"]
    assert laptop.ended(run)["state"] == "completed"
    name = f"{run}.0" if options else run
    lines = [line.rpartition(" ") for line in laptop("logs", name).out.splitlines()]
    return {name: KINDS[kind] for name, _space, kind in lines}


@pytest.mark.lab
def test_few_small_files_are_copies(laptop: Laptop) -> None:
    write(laptop.project, "a.py", "lib/b.py", "lib/deep/c.py", "results/.gitkeep")
    found = kinds(laptop)
    assert found["lib"] == found["lib/deep"] == found["results"] == "folder"
    assert found["a.py"] == found["lib/b.py"] == "file"


@pytest.mark.lab
def test_few_large_files_are_links_in_real_folders(laptop: Laptop) -> None:
    write(laptop.project, "a.py", "lib/b.py")
    (laptop.project / "data").write_bytes(os.urandom(11_000_000))
    found = kinds(laptop)
    assert found["lib"] == "folder" and found["a.py"] == found["data"] == found["lib/b.py"] == "link"


@pytest.mark.lab
def test_many_files(laptop: Laptop) -> None:
    """Only folders that cost little are real: placeholders, the start folder, and those in `writable`."""
    fill(laptop.project, 300)
    write(laptop.project, "results/.gitkeep", "data/cache/.gitignore", "data/README.md", "docs/guide.md", "start/x.py")
    write(laptop.project, "logs/old/x", "logs/y")
    (laptop.project / "yurt.yaml").write_text("writable: [logs, new/folder]\n")
    found = kinds(laptop, cwd=laptop.project / "start")
    assert {name for name, kind in found.items() if kind == "folder"} == {
        *("results", "data", "data/cache", "start", "logs", "logs/old", "new", "new/folder")
    }
    assert found["src"] == found["docs"] == found["data/README.md"] == "link" and found["logs/y"] == "file"


@pytest.mark.lab
def test_few_files_for_each_task(laptop: Laptop) -> None:
    fill(laptop.project, 60)
    found = kinds(laptop, "--grid", "n=1..2")
    assert found["src"] == "link", "a run on its own has real folders up to 200 entries, a task up to 50"
    assert kinds(laptop)["src"] == "folder"


@pytest.mark.lab
def test_placeholders_that_cost_many_links(laptop: Laptop) -> None:
    fill(laptop.project, 300)
    write(laptop.project, *(f"wide/{number}/code.py" for number in range(120)), "wide/out/.gitkeep")
    write(laptop.project, *(f"outs/{number}/.gitkeep" for number in range(200)))
    found = kinds(laptop)
    assert found["wide"] == "link" and len(found) < 200


@pytest.mark.lab
@pytest.mark.parametrize("many", [0, 300], ids=["few files", "many files"])
@pytest.mark.parametrize("options", [[], ["--copy"], ["--grid", "n=1"], ["--grid", "n=1", "--copy"]], ids=" ".join)
@pytest.mark.slow(
    "--copy-many files", "--copy-few files", "--grid n=1-few files", "--grid n=1 --copy-few files", "-many files"
)
def test_a_start_folder_without_files(laptop: Laptop, many: int, options: list[str]) -> None:
    """Neither git nor a snapshot has empty folders."""
    subprocess.run(["git", "init", "-q", laptop.project], check=True)
    fill(laptop.project, many)
    start = laptop.project / "src" / "new folder" / "empty"
    start.mkdir(parents=True)
    for context in ("local", "alpha"):
        words = ("run", "--json", *options, "--wait", "sh", "-c", "echo mine > here && pwd")
        done = laptop("--context", context, *words, cwd=start)
        assert done.code == 0, done
        run = done.json["data"]["run"]["id"]
        log = laptop("logs", f"{run}.0" if "--grid" in options else run)
        assert log.out.endswith("/work/src/new folder/empty\n"), log


def test_root_gets_a_copy(user: User) -> None:
    """Root can write to read-only files: through a link, it would change the code of other runs."""
    assert os.geteuid() == 0, "the tests run as root"
    fill(user.project, 300)
    write(user.project, "notes.txt")
    words = ("sh", "-c", "echo mine >> notes.txt; echo mine > src/part1/new.txt")
    run = user("--json", "run", "--wait", *words).json["data"]["run"]["id"]
    other = user("--json", "run", "--wait", "sh", "-c", "cat notes.txt; ls src/part1").json
    assert other["warnings"] == [] and "mine" not in user("logs", "-").out and "new.txt" not in user("logs", "-").out
    assert user("fetch", run).code == 0
    target = user.project / "results" / run
    assert (target / "notes.txt").read_text() == "content of notes.txt\nmine\n"
    assert {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} == {
        *("notes.txt", "src/part1/new.txt")
    }


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
cp lib/deep/c.py copy.py && echo more >> copy.py
touch -d 2001-01-01 copy.py
"""
THROUGH = "echo through >> lib/deep/c.py\n"


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.parametrize("grid", [[], ["--grid", "n=1"]], ids=["run", "sweep"])
@pytest.mark.slow("beta")
def test_a_small_project_is_like_a_checkout(laptop: Laptop, ssh: Ssh, context: str, grid: list[str]) -> None:
    write(laptop.project, "a.py", "lib/b.py", "lib/deep/c.py", "lib/same.py", "results/.gitkeep")
    (laptop.project / "link").symlink_to("a.py")
    run = laptop.run(context, *grid, "sh", "-c", WRITES + THROUGH)["run"]
    assert laptop.ended(run["id"])["state"] == "completed"
    written = {"results/new.txt", "top.txt", "lib/b.py", "a.py", "lib/made/x", "copy.py", "lib/deep/c.py"}
    folder = run["folder"] + ("/tasks/0" if grid else "")
    left = ssh(context, f"cd {folder} && find work ! -type d && ls -d copied 2> /dev/null || true").splitlines()
    assert {each for each in left if "work/" in each or each == "copied"} == {f"work/{name}" for name in written}
    assert laptop.quick("fetch", run["id"]).code == 0
    target = laptop.project / "results" / (run["id"] + ".0" * bool(grid))
    assert {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()} == written
    again = laptop.run(context, "cat", "a.py", "lib/deep/c.py")
    assert again["warnings"] == [] and laptop.ended(again["run"]["id"])["state"] == "completed"
    assert laptop.quick("logs", again["run"]["id"]).out == "content of a.py\ncontent of lib/deep/c.py\n"


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_a_large_project_has_read_only_files(laptop: Laptop, context: str) -> None:
    write(laptop.project, "a.py", "lib/b.py", "lib/deep/c.py", "results/.gitkeep")
    (laptop.project / "data").write_bytes(os.urandom(11_000_000))
    run = laptop.run(context, "sh", "-c", THROUGH)["run"]["id"]
    assert laptop.ended(run)["state"] == "failed", "a file of the code cannot be written to"
    err = laptop("logs", run).err + laptop("logs", run).out
    assert "c.py: Permission denied" in err
    assert "yurt: files of the code are read-only in a run; use `--copy`, or list the folder" in err
    (laptop.project / "fit.sh").write_text(f"#!/bin/sh\n#SBATCH --output=fit.log\n{THROUGH}\n")
    joined = laptop.run(context, "fit.sh")["run"]["id"]
    assert laptop.ended(joined)["state"] == "failed"
    out = laptop("logs", joined).out
    assert "c.py: Permission denied" in out, "both streams go to one file"
    assert out.count("yurt: files of the code are read-only in a run") == 1
    (laptop.project / "yurt.yaml").write_text("writable: [lib/deep]\n")
    again = laptop.run(context, "sh", "-c", THROUGH)["run"]["id"]
    assert laptop.ended(again)["state"] == "completed"
    assert laptop.quick("fetch", again).code == 0
    target = laptop.project / "results" / again
    assert [str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()] == ["lib/deep/c.py"]


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_results_are_not_read_to_find_copies_of_the_code(tmp_path: Path, shell: str) -> None:
    """They may have terabytes, and a pipe has no end: the job would keep its node."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs the Debian package {shell}")
    code, work = tmp_path / "code", tmp_path / "run" / "work"
    for folder in (code, work):
        for name in ("same.py", "changed.py", "linked.py", "piped.py", "sub/same too.py", "grown.bin"):
            write(folder, name)
    (work / "changed.py").write_text("mine\n")
    for name in ("linked.py", "piped.py"):
        (work / name).unlink()
    (work / "linked.py").symlink_to("sparse.bin")
    os.mkfifo(work / "piped.py")
    (work / "sparse.bin").touch()
    os.truncate(work / "sparse.bin", 3 * 10**12)
    (tmp_path / "run" / "copied").touch()
    compare = tmp_path / "bin" / "cmp"
    write(tmp_path, "bin/cmp")
    compare.write_text(f'#!/bin/sh\necho "$2" >> {tmp_path}/compared\nexec {shutil.which("cmp")} "$@"\n')
    compare.chmod(0o755)
    tidy = f"PATH={compare.parent}:$PATH; code={code}; copy=; {scripts.text('ending.sh', 'job')}\ntidy; ls -d copied"
    done = subprocess.run([shell, "-c", tidy], cwd=tmp_path / "run", capture_output=True, text=True, check=False)
    left = {str(path.relative_to(work)) for path in work.rglob("*") if not path.is_dir()}
    assert left == {"changed.py", "linked.py", "piped.py", "sparse.bin"}, done
    assert done.stdout == "", "nothing is left to compare"
    assert (tmp_path / "compared").read_text() == "work/changed.py\n", "a process for each file takes long"
