"""Files that a run writes into its working directory are its results: show, fetch and prune know them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.laptop import Laptop
from tests.lifecycle.test_fetch import without_rsync
from tests.user import User
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

SCRIPT = """\
set -e
mkdir -p out/deep __pycache__ .pytest_cache lib/__pycache__
echo model > out/model.pt
echo best > out/deep/best.pt
ln -s model.pt out/latest
echo cache | tee __pycache__/x.pyc .pytest_cache/x > lib/__pycache__/y.pyc
echo replaced > aside && mv aside lib/b.py
echo placeholder > results/x
"""

WRITTEN = {"out/model.pt", "out/deep/best.pt", "out/latest", "lib/b.py", "results/x"}


@pytest.fixture
def project(user: User) -> Path:
    return make(user)


def make(user: User) -> Path:
    for name in ("lib/a.py", "lib/b.py", "results/.gitkeep", "run.sh"):
        (user.project / name).parent.mkdir(exist_ok=True)
        (user.project / name).write_text(SCRIPT if name == "run.sh" else f"code of {name}\n")
    return user.project


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


def ended(user: User, *words: str, code: int = 0) -> str:
    done = user("--json", "run", "--wait", *words)
    assert done.code == code, done
    return str(done.json["data"]["run"]["id"])


def kept(user: User, run: str) -> dict[str, str]:
    found = user("prune", run, "--dry-run", "--json").json["data"]
    return {each["id"]: each["kept"] for each in found["kept"]}


def parts(user: User, run: str) -> dict[str, Any]:
    found: dict[str, Any] = user("show", run, "--json").json["data"]["on_site"]["parts"]
    return found


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("way", [[], ["--copy"]], ids=["links", "copy"])
def test_they_are_listed_fetched_and_protected(user: User, way: list[str]) -> None:
    run = ended(user, *way, "sh", "run.sh")
    assert parts(user, run)["work"]["files"] == len(WRITTEN)
    assert not kept(user, run)[run].endswith("--all`")
    assert kept(user, run)[run].startswith(
        "it was never fetched, so it has the only copy of its files in the working directory; run `yurt fetch"
    )
    (got,) = user("fetch", run, "--json").json["data"]
    assert (got["files"], got["complete"]) == (len(WRITTEN), True)
    target = user.project / "results" / run
    assert files(target) == WRITTEN and (target / "lib" / "b.py").read_text() == "replaced\n"
    assert kept(user, run) == {}
    assert user("fetch", run).out == f"{run}: results/{run} is up to date\n"
    (target / "out" / "model.pt").unlink()
    assert run in kept(user, run), "the copy is no longer complete"


@pytest.mark.usefixtures("project")
def test_show_names_them(user: User) -> None:
    few = ended(user, "sh", "-c", 'sh run.sh && echo 12 > "$YURT_OUTPUTS/b" && echo 7 > "$YURT_CHECKPOINTS/last"')
    text = user("show", few).out
    names = ["outputs/b", "work/lib/b.py", "work/out/deep/best.pt", "work/out/latest", "work/out/model.pt"]
    sizes = [3, 9, 5, 8, 6]
    lines = [f"  {size:>2} B  {name}" for size, name in zip(sizes, names, strict=True)]
    expected = "\n".join([*lines, "  12 B  work/results/x", ""])
    assert text.partition("\nresults\n")[2] == expected, "nothing more; checkpoints are not listed"
    many = ended(user, "sh", "-c", 'cd "$YURT_OUTPUTS" && seq 700 | while read n; do : > "$n"; done; : > "a\tb\nc"')
    shown = user("show", many)
    assert shown.out.count("  0 B  outputs/") == 10 and "\n  and 691 more\n" in shown.out
    listed = user("show", many, "--json").json["data"]["on_site"]["files"]
    assert len(listed) == 500 and listed == sorted(listed, key=lambda each: str(each["path"]))
    odd = ended(user, "sh", "-c", 'cd "$YURT_OUTPUTS" && echo 1 > "$(printf "a\\tb\\nc \\377\\r d")"')
    assert user("show", odd, "--json").json["data"]["on_site"]["files"] == [
        {"path": "outputs/a\tb\nc \\xff\r d", "bytes": 2}
    ]
    assert user("show", odd).code == 0
    assert "results\n" not in user("show", ended(user, "true")).out


@pytest.mark.usefixtures("project")
def test_only_some(user: User) -> None:
    run = ended(user, "sh", "run.sh")
    assert user("fetch", run, "--only", "*.pt").code == 0
    assert files(user.project / "results" / run) == {"out/model.pt", "out/deep/best.pt"}


@pytest.mark.usefixtures("project")
def test_with_outputs_and_the_same_names(user: User) -> None:
    run = ended(user, "sh", "-c", 'sh run.sh && mkdir "$YURT_OUTPUTS/out" && cp lib/a.py "$YURT_OUTPUTS/out/model.pt"')
    done = user("fetch", run, "--json")
    target = user.project / "results" / run
    assert (target / "out" / "model.pt").read_text() == "code of lib/a.py\n", "a file in outputs counts more"
    assert (
        not done.json["data"][0]["complete"] and "1 file has the same name in its outputs" in done.json["warnings"][0]
    )
    assert run in kept(user, run), "not all is here"
    assert user("fetch", run, "--all").code == 0
    assert kept(user, run) == {}


@pytest.mark.parametrize("method", ["rsync", "tar"])
def test_a_file_in_outputs_has_the_name_of_a_folder(
    user: User, method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = "mkdir -p a/b c d; echo 1 > a/x; echo 2 > a/b/y; echo 3 > c/z; echo 4 > d/w; cd $YURT_OUTPUTS; "
    run = ended(user, "sh", "-c", f"{script} echo 5 > a; ln -s nowhere c; mkdir d; echo 6 > d/v")
    if method == "tar":
        monkeypatch.setenv("PATH", without_rsync(tmp_path / "bin"))
    done = user("fetch", run, "--json")
    assert done.code == 0 and done.json["data"][0]["method"] == method, done
    target = user.project / "results" / run
    assert files(target) == {"a", "c", "d/w", "d/v"} and (target / "a").read_text() == "5\n"
    assert "3 files have the same names in its outputs" in done.json["warnings"][0]


@pytest.mark.usefixtures("project")
def test_of_a_killed_run(user: User) -> None:
    """It did not remove the links to its code."""
    run = user("--json", "run", "sh", "-c", f"sh run.sh; {PATIENT}").json["data"]["run"]
    (folder,) = (user.home / "data").glob(f"projects/*/runs/{run['id']}")
    eventually((folder / "work" / "results" / "x").exists)
    (half,) = user("fetch", run["id"], "--json").json["data"]
    assert (half["files"], half["complete"]) == (len(WRITTEN), False), "while it runs"
    os.kill(int(user("show", run["id"], "--json").json["data"]["status"]["job"]), signal.SIGKILL)
    eventually(lambda: user("show", run["id"], "--json").json["data"]["status"]["state"] == "lost")
    assert parts(user, run["id"])["work"]["files"] == len(WRITTEN)
    assert run["id"] in kept(user, run["id"])
    assert user("fetch", run["id"]).code == 0
    assert files(user.project / "results" / run["id"]) == WRITTEN and kept(user, run["id"]) == {}


@pytest.mark.usefixtures("project")
def test_nothing_is_written(user: User) -> None:
    run = ended(user, "true")
    assert user("fetch", run).out == f"{run}: no results\n" and kept(user, run) == {}
    (folder,) = (user.home / "data").glob(f"projects/*/runs/{run}")
    assert not {"work", "outputs", "checkpoints"} & {each.name for each in folder.iterdir()}


@pytest.mark.usefixtures("project")
def test_in_place(user: User) -> None:
    run = ended(user, "--no-snapshot", "sh", "-c", "echo here > made-here")
    done = user("fetch", run)
    assert done.out == f"{run}: no results\n"
    assert f"run {run} ran in {user.project}; yurt does not know which files it wrote there" in done.err
    assert kept(user, run) == {} and (user.project / "made-here").exists()


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_on_a_cluster(laptop: Laptop, context: str) -> None:
    make(laptop)
    run = laptop.run(context, "sh", "run.sh")["run"]["id"]
    sweep = laptop.run(context, "--grid", "n=1..3", "--copy", "sh", "run.sh")["run"]["id"]
    assert laptop.ended(run)["state"] == laptop.ended(sweep)["state"] == "completed"
    assert {run, sweep} == set(kept(laptop, run)) | set(kept(laptop, sweep))
    assert "of 3 of its tasks" in kept(laptop, sweep)[sweep]
    assert laptop("fetch", run, sweep).code == 0
    for each in (run, f"{sweep}.0", f"{sweep}.1", f"{sweep}.2"):
        assert files(laptop.project / "results" / each) == WRITTEN
    assert kept(laptop, run) == kept(laptop, sweep) == {}
    assert laptop("prune", run, sweep, "--yes").code == 0


def test_caches_count_only_in_the_working_directory(user: User) -> None:
    """What a user stores in the outputs is never taken for a cache."""
    folders = '"$YURT_OUTPUTS/.hf_cache" "$YURT_OUTPUTS/__pycache__" .model_cache'
    script = f'for d in {folders}; do mkdir "$d"; echo x > "$d/m"; done'
    run = ended(user, "sh", "-c", script)
    assert run in kept(user, run)
    assert user("fetch", run).code == 0
    assert files(user.project / "results" / run) == {".hf_cache/m", "__pycache__/m", ".model_cache/m"}
    assert kept(user, run) == {}


def test_two_runs_fetched_into_one_folder(user: User) -> None:
    """The second one replaces files of the first, which is then not here any more."""
    runs = [ended(user, "sh", "-c", f"echo {text} > model.pt") for text in ("one", "another")]
    for run in runs:
        assert user("fetch", run, "--to", "best").code == 0
    assert set(kept(user, runs[0])) == {runs[0]} and kept(user, runs[1]) == {}
    (user.project / "best" / "model.pt").unlink()
    (user.project / "best" / "larger").write_text("x" * 1000)
    assert set(kept(user, runs[1])) == {runs[1]}, "another file does not count"
