"""`yurt storage keep` on this machine, on a cluster with real limits, and when it is killed or cut."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls import YURT
from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab

WRITE = 'mkdir -p "$YURT_OUTPUTS/a b"; echo 1 > "$YURT_OUTPUTS/a b/c"; ln -s c "$YURT_OUTPUTS/a b/l"; echo 2 > own.txt'
FILES = {"outputs/a b/c", "outputs/a b/l", "work/own.txt", "run.json", "exit.json", "out.log"}


def tree(folder: Path) -> set[str]:
    """The files in a folder."""
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_symlink() or not each.is_dir()}


def with_tiers(user: User, *, purge: str = "5d", more: str = "") -> tuple[Path, Path]:
    """Give a user a context `here` with a purged scratch and a lasting project; return both."""
    scratch, project = user.home / "scratch", user.home / "project"
    for each in (scratch, project, user.home / "config"):
        each.mkdir(exist_ok=True)
    tiers = f"tiers: {{scratch: {scratch}, project: {project}}}, tier_purge: {{scratch: {purge}}}"
    text = f"contexts:\n  here: {{type: local, storage_dir: {scratch}, {tiers}{more}}}\n"
    (user.home / "config" / "contexts.yaml").write_text(text)
    return scratch, project


def finished(user: User, command: str = WRITE, *words: str) -> str:
    done = user.quick("--context", "here", "--json", "run", *words, "--wait", "--", "sh", "-c", command)
    assert done.code == 0, done
    data = done.json["data"]
    return str((data[0] if isinstance(data, list) else data)["run"]["id"])


def test_a_run(user: User) -> None:
    scratch, project = with_tiers(user)
    run = finished(user)
    (row,) = user.quick("ps", "--json").json["data"]
    assert 4 < (row["deleted_at"] - time.time()) / 86_400 < 5
    assert "deleted in 4 days" in user.quick("ps", "--cached").out
    shown = user.quick("show", run)
    assert f"its results are deleted in 4 days; copy them with `yurt storage keep {run}`" in shown.out
    assert "in 2 files" in shown.out
    found = user.quick("storage", "keep", run, "--json").json
    assert found["kind"] == "results-kept" and found["data"][0]["copied"] and found["data"][0]["tier"] == "project"
    copy = Path(found["data"][0]["path"])
    assert copy.is_relative_to(project) and tree(copy) >= FILES and (copy / "outputs/a b/l").read_text() == "1\n"
    assert copy.stat().st_mode & 0o777 == 0o700 and [each.name for each in copy.parent.iterdir()] == [run]
    assert "up to date" in user.quick("storage", "keep", run).out
    (row,) = user.quick("ps", "--json", "--cached").json["data"]
    assert row["deleted_at"] is None and "kept in" in user.quick("show", run, "--cached").out
    assert user.quick("show", run, "--json", "--cached").json["data"]["site_copy"]["path"] == str(copy)
    # A part of the results is deleted, then all of them.
    (folder,) = scratch.glob("yurt/projects/*/runs/*")
    shutil.rmtree(folder / "outputs")
    assert "1 file" not in user.quick("fetch", run).out
    assert (user.project / "results" / run / "a b" / "c").read_text() == "1\n"
    shutil.rmtree(folder)
    assert "up to date" in user.quick("storage", "keep", run).out
    shutil.rmtree(user.project / "results")
    assert user.quick("fetch", run).code == 0
    assert tree(user.project / "results" / run) >= {"a b/c", "own.txt"}
    shutil.rmtree(copy)
    assert user.quick("fetch", run).code == 3


def test_nothing_is_lost_by_a_later_copy(user: User) -> None:
    scratch, _project = with_tiers(user)
    run = finished(user)
    (copy,) = (Path(each["path"]) for each in user.quick("storage", "keep", run, "--json").json["data"])
    (folder,) = scratch.glob("yurt/projects/*/runs/*")
    (folder / "outputs" / "a b" / "c").unlink()
    (folder / "outputs" / "new").write_text("3")
    assert user.quick("storage", "keep", run, "--json").json["data"][0]["copied"]
    assert (copy / "outputs/a b/c").read_text() == "1\n" and (copy / "outputs/new").read_text() == "3"
    # Killed while it replaced the earlier copy.
    copy.rename(copy.parent / f".{run}.old")
    assert user.quick("storage", "keep", run).code == 0
    assert tree(copy) >= {*FILES, "outputs/new"} and [each.name for each in copy.parent.iterdir()] == [run]


def test_without_rsync(user: User, tmp_path: Path) -> None:
    with_tiers(user)
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for each in Path(folder).iterdir():
            if each.name != "rsync" and not (programs / each.name).exists():
                (programs / each.name).symlink_to(each)
    run = finished(user)
    found = user("storage", "keep", run, "--json", PATH=f"{Path(YURT).parent}:{programs}")
    assert found.code == 0 and tree(Path(found.json["data"][0]["path"])) >= FILES


def test_a_sweep_and_a_place(user: User) -> None:
    scratch, project = with_tiers(user)
    sweep = finished(user, WRITE, "--grid", "x=1,2")
    assert "deleted in 4 days" in user.quick("ps").out
    data = user.quick("storage", "keep", sweep, "--json").json["data"]
    assert [each["what"] for each in data] == [f"{sweep}.0", f"{sweep}.1"]
    assert all(tree(Path(each["path"])) >= {"outputs/a b/c", "work/own.txt"} for each in data)
    assert "deleted" not in user.quick("ps").out
    shutil.rmtree(next(scratch.glob("yurt/projects/*/sweeps/*")))
    assert user.quick("fetch", sweep).code == 0 and (user.project / "results" / f"{sweep}.1" / "own.txt").is_file()
    (scratch / "data").mkdir()
    (scratch / "data" / "x").write_text("1")
    assert user.quick("storage", "keep", "here:scratch:data", "here:scratch:data/x").code == 0
    kept = project / "yurt-kept" / "places" / "scratch"
    assert (kept / "data" / "x").read_text() == "1" and tree(kept) == {"data/x"}


def test_refusals(user: User) -> None:
    _scratch, project = with_tiers(user, more=", tier_quota: {project: 1M}")
    run = finished(user, 'head -c 2000000 /dev/zero > "$YURT_OUTPUTS/big"')
    found = user.quick("storage", "keep", run)
    assert found.code == 5 and "project has 1.0 MB free, and the copy needs 3.0 MB; nothing was copied" in found.err
    assert f"run `yurt fetch {run}` instead" in found.err and not list(project.iterdir())
    project.rmdir()
    found = user.quick("storage", "keep", run, "--to", "project")
    assert found.code == 5 and "cannot be written to" in found.err
    assert user.quick("storage", "keep", run, "--to", "tape").code == 3
    assert user.quick("storage", "keep", "here:scratch:nothing").code in (3, 5)
    assert user.quick("storage", "keep", "here:scratch:").code == 2
    assert user.quick("storage", "keep", "nothing").code == 3


def test_a_run_that_is_gone(user: User) -> None:
    with_tiers(user)
    run = finished(user)
    shutil.rmtree(user.quick("show", run, "--json").json["data"]["run"]["folder"])
    found = user.quick("storage", "keep", run)
    assert found.code == 3 and f"the folder of run {run} was deleted, by a purge or by hand" in found.err
    assert f"run it again with `yurt retry {run}`" in found.err


def test_the_note_in_ps(user: User) -> None:
    with_tiers(user)
    finished(user, "true")
    assert "deleted" not in user.quick("ps").out and "deleted next" not in user.quick("storage", "here").out
    assert "wrote " in (shown := user.quick("show", "-").out) and "no files" in shown
    user.quick("--context", "here", "run", "--wait", "sh", "-c", 'echo 1 > "$YURT_OUTPUTS/x"; exit 3')
    assert "exit code 3; deleted in 4 days" in user.quick("ps").out


def warnings(user: User, *words: str) -> list[str]:
    """Submit a run, wait for it, and return the warnings of the submission."""
    done = user.quick("--context", "here", "--json", "run", *words)
    assert done.code == 0, done
    assert user.quick("wait", done.json["data"]["run"]["id"]).code == 0
    found: list[str] = done.json["warnings"]
    return found


def test_a_run_that_may_not_fit(user: User) -> None:
    with_tiers(user, more=", tier_quota: {scratch: 150M 100 files}")
    assert user.quick("--context", "here", "run", "--output-size", "lots", "true").code == 2
    assert user.quick("--context", "here", "run", "--output-size", "", "true").code == 2
    (warned,) = warnings(user, "--output-size", "1G", "true")
    assert "scratch on here has 157 MB free, but it may need 1.1 GB (its output_size is 1G)" in warned
    (warned,) = warnings(user, "--output-size", "999 files", "true")
    assert "room for 100 files, but it may need 999 files" in warned
    assert warnings(user, "--output-size", "1M", "true") == []
    big = ("--", "sh", "-c", 'head -c 101000000 /dev/zero > "$YURT_OUTPUTS/big"')
    assert warnings(user, *big) == []
    (warned,) = warnings(user, "--grid", "x=1,2", *big)
    assert "its 2 tasks may need 202 MB (earlier runs of this command used up to 101 MB each)" in warned
    assert warnings(user, "--output-size", "1M", *big) == []


def test_what_yurt_uses(user: User) -> None:
    with_tiers(user)
    finished(user)
    (found,) = user.quick("storage", "here", "--yurt", "--json").json["data"]
    kinds = {each["kind"]: each["files"] for each in found["own"]}
    assert kinds["runs"] > 5 and not found["own_partly"] and "snapshots" in kinds
    assert "yurt uses" in user.quick("storage", "show", "here", "--yurt").out


@pytest.fixture
def small(lab: Lab) -> Iterator[Lab]:
    lab.faults.limit("alpha:project", megabytes=16, files=100)
    yield lab
    lab.faults.unlimit("alpha:project")


@pytest.mark.lab
def test_real_limits(laptop: Laptop, small: Lab) -> None:
    write = 'mkdir -p "$YURT_OUTPUTS"; cd "$YURT_OUTPUTS"; '
    few = laptop.run("alpha", "--wait", "--", "sh", "-c", write + "head -c 4000000 /dev/zero > x")["run"]["id"]
    large = laptop.run("alpha", "--wait", "--", "sh", "-c", write + "head -c 40000000 /dev/zero > x")["run"]["id"]
    many = laptop.run("alpha", "--wait", "--", "sh", "-c", write + "for i in $(seq 200); do : > $i; done")["run"]["id"]
    (alpha,) = laptop.quick("storage", "alpha", "--json").json["data"]
    (project,) = [each["use"] for each in alpha["tiers"] if each["place"]["name"] == "project"]
    assert project["total"] < 20_000_000 and project["files_total"] < 150
    found = laptop.quick("storage", "keep", large)
    assert found.code == 5 and "alpha: project has 1" in found.err and "and the copy needs 41 MB" in found.err
    found = laptop.quick("storage", "keep", many)
    assert found.code == 5 and "and the copy needs 210 files" in found.err
    found = laptop.quick("storage", "keep", few, "--json")
    assert found.code == 0 and found.json["data"][0]["path"].startswith("/lustre/project/alice/yurt-kept/")
    small.faults.full("alpha:home")
    try:
        assert laptop.quick("storage", "keep", few, "--to", "home").code == 5
    finally:
        small.faults.free("alpha:home")
    shown = laptop.quick("storage", "alpha").out
    assert "all nodes" in shown or "deleted after" in shown


@pytest.mark.lab
def test_full_in_the_middle(laptop: Laptop, small: Lab) -> None:
    """Sparse files look larger than they are on the way out, and smaller on the way in."""
    write = 'mkdir -p "$YURT_OUTPUTS"; head -c 9000000 /dev/urandom > "$YURT_OUTPUTS/x"; echo 1 > own.txt'
    run = laptop.run("alpha", "--wait", "--", "sh", "-c", write)["run"]["id"]
    folder = laptop.quick("show", run, "--json").json["data"]["run"]["folder"]
    # Another process fills the tier after the query: as if, with a quota check that sees more than there is.
    ssh = ["ssh", "-F", str(small.instance.client / "ssh_config"), "alpha"]
    fill = "head -c 11000000 /dev/zero > /lustre/project/alice/other"
    before = subprocess.run(
        [*ssh, f"find {folder} -type f -exec cksum {{}} + | sort; {fill}"], capture_output=True, check=True
    )
    from yurt.backends.shell import keep as copying
    from yurt.contexts import connect
    from yurt.model.files import KeepItem

    with pytest.MonkeyPatch.context() as patch:
        for name, value in laptop.environment.items():
            patch.setenv(name, value)
        host = connect.named_backend("alpha").files._host  # type: ignore[attr-defined]
        target = f"/lustre/project/alice/yurt-kept/p/{run}"
        item = KeepItem(source=folder, target=target)
        (done,) = copying.copy(host, "/lustre/project/alice", [item], checkpoints=False, copied=lambda _at: None)
    assert "No space left" in done.failed
    after = subprocess.run([*ssh, f"find {folder} -type f -exec cksum {{}} + | sort"], capture_output=True, check=True)
    assert after.stdout == before.stdout
    left = subprocess.run([*ssh, "ls -A /lustre/project/alice/yurt-kept/p"], capture_output=True, check=True)
    assert left.stdout == b""
    subprocess.run([*ssh, "rm /lustre/project/alice/other"], check=True)
    assert laptop.quick("storage", "keep", run).code == 0


@pytest.mark.lab
@pytest.mark.parametrize("fault", ["kill", pytest.param("cut", marks=pytest.mark.slow)])
def test_interrupted_at_drawn_moments(laptop: Laptop, lab: Lab, fault: str) -> None:
    write = 'mkdir -p "$YURT_OUTPUTS"; cd "$YURT_OUTPUTS"; for i in $(seq 300); do echo $i > $i; done; '
    write += "head -c 3000000 /dev/urandom > x"
    run = laptop.run("alpha", "--wait", "--", "sh", "-c", write)["run"]["id"]
    folder = laptop.quick("show", run, "--json").json["data"]["run"]["folder"]
    ssh = ["ssh", "-F", str(lab.instance.client / "ssh_config"), "alpha"]
    sums = "find . -type f -exec cksum {} + | sort"

    def outputs(place: str) -> bytes:
        return subprocess.run([*ssh, f"cd {place}/outputs && {sums}"], capture_output=True, check=False).stdout

    wanted = outputs(folder)
    kept = f"/lustre/project/alice/yurt-kept/{laptop.row(run)['project']}/{run}"
    drawn = random.Random(f"keep/{fault}")
    began = time.monotonic()
    assert laptop("storage", "keep", run).code == 0
    usual = time.monotonic() - began
    for _time in range(5):
        if outputs(kept) == wanted:
            subprocess.run([*ssh, f"rm -rf {kept}"], check=True)
        process = subprocess.Popen(
            [YURT, "storage", "keep", run],
            env={**os.environ, **laptop.environment},
            cwd=laptop.project,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(drawn.uniform(0.3, 1) * usual)
        if fault == "cut":
            lab.faults.cut("alpha")
        process.kill()
        process.wait()
        if fault == "cut":
            lab.faults.heal("alpha")
        there = outputs(kept)
        assert there in (b"", wanted), "a half copy"
    done = laptop("storage", "keep", run)
    assert done.code == 0, done
    assert outputs(kept) == wanted == outputs(folder)
    names = subprocess.run([*ssh, f"ls -A {kept}/.."], capture_output=True, check=True).stdout.split()
    assert names == [run.encode()]
    subprocess.run([*ssh, f"rm -rf {kept}"], check=True)
