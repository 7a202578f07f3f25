"""prune removes only finished runs, never the only copy of results, and removes them completely even if killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.calls import YURT, Called
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.lifecycle.test_fetch import Here
from tests.store.test_runs import run as run_number
from yurt.backends import scripts
from yurt.backends.local import place
from yurt.lab import Lab
from yurt.lifecycle.prune import judge
from yurt.model.files import Survey as Found
from yurt.model.run import Status
from yurt.model.state import Observation
from yurt.store import Entry, Store
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

RESULT = "echo 1 > $YURT_OUTPUTS/a"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with Here(tmp_path) as made:
        yield made


def folder(here: Here, run: str) -> Path:
    return next(here.data.glob("projects/*/runs")) / run


def split(done: Called) -> tuple[set[str], dict[str, str]]:
    """Return the runs that are removed, and those that are kept, with the reason."""
    data = done.json["data"]
    return {each["id"] for each in data["removed"]}, {each["id"]: each["kept"] for each in data["kept"]}


def test_runs_of_a_removed_context_are_skipped(here: Here) -> None:
    """As after `yurt lab down --wipe`."""
    mine = here.run("true")
    with Store(str(here.data / "yurt.db")) as store:
        removed = [run_number(number, context="wiped") for number in (1, 2)]
        for each in removed:
            store.add(each, Status(state="completed"))
    warning = "skipped 2 runs whose context was removed (wiped)"
    shown = here.quick("prune", "--dry-run", "--json")
    assert shown.code == 0 and shown.json["warnings"] == [warning] and split(shown) == ({mine}, {})
    done = here.quick("prune", "--yes", "--json")
    assert done.code == 0 and done.json["warnings"] == [warning] and not folder(here, mine).exists()
    named = here.quick("prune", "--yes", removed[0].id)
    assert named.code == 3 and "context 'wiped' not found; nothing was removed" in named.err


def test_removes_nothing_without_confirmation(here: Here) -> None:
    empty, result = here.run("true"), here.run("sh", "-c", RESULT)
    running = here.patient()
    try:
        shown = here.quick("prune", "--json")
        assert shown.code == 2
        assert "--yes" in shown.json["warnings"][0]
        why = f"it was never fetched, so it has the only copy of its outputs; run `yurt fetch {result}`"
        assert split(shown) == ({empty}, {result: why})
        assert shown.json["data"]["done"] is False
        assert shown.json["data"]["removed"][0]["size"] > 0
        assert folder(here, empty).is_dir()
        assert "would remove: 1 run" in here.quick("prune").out

        done = here.quick("prune", empty, running, "--yes", "--json")
        assert (done.code, done.json["warnings"]) == (5, [f"kept {running}"])
        assert split(done) == ({empty}, {running: "it has not finished (running)"})
        assert not folder(here, empty).exists()
        assert folder(here, running).is_dir() and folder(here, result).is_dir()
    finally:
        here.quick("cancel", running)
    assert empty in here.quick("ps", "--json").out
    assert "removed 20" in here.quick("show", empty).out
    assert here.quick("show", empty, "--json").json["data"]["on_site"]["there"] is False
    again = here.quick("prune", empty, "--yes", "--json")
    assert (again.code, split(again)) == (0, (set(), {empty: "its folder is already removed"}))
    gone = here.quick("fetch", empty)
    assert (gone.code, "`yurt prune` removed its folder from local" in gone.err) == (3, True)
    assert split(here.quick("prune", "--unfetched", "--yes", "--json"))[0] >= {result}
    assert not folder(here, result).exists()


def test_a_copy_counts_while_it_exists_and_is_the_same(here: Here) -> None:
    def kept(run: str) -> str:
        going, staying = split(here.quick("prune", run, "--json"))
        assert going == (set() if staying else {run})
        return staying.get(run, "")

    run = here.run("sh", "-c", f"{RESULT}; echo 2 > $YURT_OUTPUTS/b")
    fetch = f"run `yurt fetch {run}`"
    assert kept(run) == f"it was never fetched, so it has the only copy of its outputs; {fetch}"
    assert here.quick("fetch", run, "--only", "a").code == 0
    assert kept(run) == f"its outputs were only partly fetched; {fetch}"
    assert here.quick("fetch", run).code == 0
    assert kept(run) == ""
    (here.project / "results" / run / "b").rename(here.project / "b")
    deleted = f"its outputs were deleted or changed on this machine after they were fetched; {fetch}"
    assert kept(run) == deleted, "a part of the copy was deleted"
    assert here.quick("fetch", run, "--only", "a").code == 0
    assert kept(run) == deleted, "a partial copy does not replace the record of the complete one"
    (here.project / "b").rename(here.project / "results" / run / "b")
    assert kept(run) == ""
    (folder(here, run) / "outputs" / "b").write_text("3\n")
    os.utime(folder(here, run) / "outputs" / "b", (later := time.time() + 5, later))  # rsync counts whole seconds
    assert kept(run) == f"its outputs changed on local after they were fetched; {fetch}"
    assert here.quick("fetch", run).code == 0
    assert kept(run) == ""
    shutil.rmtree(here.project / "results")
    assert kept(run) == deleted
    (folder(here, run) / "checkpoints").mkdir(exist_ok=True)  # removed at the end of the run, because it was empty
    (folder(here, run) / "checkpoints" / "last").write_text("7")
    assert here.quick("fetch", run).code == 0
    assert kept(run) == f"its checkpoints were not fetched; run `yurt fetch {run} --all`", "they are results too"
    assert here.quick("fetch", run, "--all").code == 0
    assert kept(run) == ""


def test_a_copy_of_a_running_run_does_not_count(here: Here) -> None:
    script = f"echo 1 > $YURT_OUTPUTS/a; {PATIENT}; echo 2 > $YURT_OUTPUTS/b"
    run = here.quick("run", "--json", "sh", "-c", script).json["data"]["run"]["id"]
    eventually((folder(here, run) / "outputs" / "a").exists)
    assert here.quick("fetch", run).code == 0
    time.sleep(1)  # the times in exit.json are whole seconds
    (folder(here, run) / "go").touch()
    assert here.quick("wait", run).code == 0
    why = f"its outputs were fetched before it finished; run `yurt fetch {run}`"
    assert split(here.quick("prune", run, "--json")) == (set(), {run: why})


def test_a_named_run_that_is_kept_is_an_error(here: Here) -> None:
    run, other = here.run("sh", "-c", RESULT), here.run("true")
    done = here.quick("prune", run, "--yes")
    assert done.code == 5 and f"kept {run}" in done.err and "it was never fetched" in done.out
    assert here.quick("prune", run, "--dry-run").code == 0, "a dry run only lists"
    assert here.quick("prune", "--yes").code == 0, "the user named no run"
    assert not folder(here, other).exists()
    assert here.quick("prune", other, "--yes").code == 0, "it is removed, as requested"
    assert here.quick("prune", run, other, "--yes", "--unfetched").code == 0


def test_filters_and_invalid_options(here: Here) -> None:
    good = here.run("true")
    failed = here.quick("run", "--wait", "--json", "false").json["data"]["run"]["id"]
    assert split(here.quick("prune", "--state", "failed", "--json"))[0] == {failed}
    assert split(here.quick("prune", "--older-than", "1h", "--json"))[0] == set()
    assert split(here.quick("prune", good, "--state", "failed", "--json")) == (set(), {})
    with Store(str(here.data / "yurt.db")) as store:
        import msgspec

        store.change([good], lambda _run, status: msgspec.structs.replace(status, ended=time.time() - 7200))
    assert split(here.quick("prune", "--older-than", "1h", "--json"))[0] == {good}
    assert split(here.quick("prune", "--context", "local", "--json"))[0] == {good, failed}
    assert here.quick("--context", "other", "prune", "--json").code == 3
    for words in (["--state", "running"], ["--older-than", "soon"], ["--all", "local", good], ["--all", "nowhere"]):
        assert here.quick("prune", *words, "--yes").code in (2, 3)
    assert here.quick("prune", "nosuch", "--yes").code == 3
    assert folder(here, good).is_dir() and folder(here, failed).is_dir()


def test_nothing_outside_the_run_folder_is_changed(here: Here, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "below").mkdir(parents=True)
    (outside / "below" / "dear").write_text("dear")
    outside.chmod(0o500)
    script = f"cd $YURT_OUTPUTS && ln -s {outside} link && mkdir shut && echo 1 > shut/a && chmod 0 shut"
    run = here.run("sh", "-c", script)
    swapped, moved = here.run("true"), here.run("true")
    shutil.rmtree(folder(here, swapped))
    folder(here, swapped).symlink_to(outside)
    (folder(here, moved) / "run.json").write_text('{"id":"another"}')
    done = here.quick("prune", "--unfetched", "--yes", "--json")
    reason = "its folder was not created by yurt or has been replaced"
    assert split(done) == ({run}, {swapped: reason, moved: reason})
    assert not folder(here, run).exists()
    assert folder(here, moved).is_dir()
    assert (outside / "below" / "dear").read_text() == "dear"
    assert outside.stat().st_mode & 0o777 == 0o500


def test_an_interrupted_removal_continues(here: Here, tmp_path: Path) -> None:
    """The first `rm` kills the shell that called it: renamed folders are left, and the next prune removes them."""
    runs = [here.run("sh", "-c", "seq 200 | while read n; do echo > $YURT_OUTPUTS/$n; done") for _each in range(2)]
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "rm").write_text('#!/bin/sh\nkill -KILL "$PPID"\n')
    (tools / "rm").chmod(0o700)
    killed = here("prune", *runs, "--unfetched", "--yes", PATH=f"{tools}:{os.environ['PATH']}")
    assert killed.code == 4
    places = folder(here, runs[0]).parent
    assert sorted(each.name for each in (places / ".going").iterdir()) == sorted(runs)
    assert "removed" not in here.quick("show", runs[0]).out
    # They are removed though their results were not fetched: they are not complete runs any more.
    done = here.quick("prune", "--yes", "--json")
    assert (done.code, split(done)[0]) == (0, set(runs))
    assert list(places.iterdir()) == []
    assert "(removed 20" in here.quick("show", runs[0]).out


def under_way(mark: str) -> list[str]:
    """Processes with this variable, given as NAME=value, in their environment; children inherit it."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # the process has exited
            if mark.encode() in file.read_bytes().split(b"\0"):
                found.append(file.parent.name)
    return found


def test_the_caller_killed_at_any_moment(here: Here) -> None:
    script = "seq 300 | while read n; do echo > $YURT_OUTPUTS/$n; done"
    runs = [here.quick("run", "--json", "sh", "-c", script).json["data"]["run"]["id"] for _each in range(4)]
    assert here.quick("wait", *runs).code == 0
    environment = {**os.environ, **here.environment, "KILLED": str(here.home)}
    for number, run in enumerate(runs):
        words = [YURT, "prune", run, "--unfetched", "--yes"]
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3 + 0.05 * number)
        process.send_signal(signal.SIGKILL)
        process.wait()
    # The commands on the site continue without their caller.
    eventually(lambda: not under_way(f"KILLED={here.home}"))
    assert here.quick("prune", *runs, "--unfetched", "--yes").code == 0
    assert list(folder(here, runs[0]).parent.iterdir()) == []
    for run in runs:
        shown = here.quick("show", run, "--json").json["data"]
        assert shown["on_site"]["there"] is False, "removed, and recorded as removed"


def test_the_confirmation_prompt(here: Here) -> None:
    run = here.run("true")

    def answer(word: str) -> Any:
        child = here.spawn("prune")
        child.expect(r"permanently remove 1 run \(.*\)\?")
        child.sendline(word)
        child.expect(pexpect.EOF)
        child.close()
        return child.exitstatus

    assert answer("n") == 130
    assert folder(here, run).is_dir()
    assert answer("y") == 0
    assert not folder(here, run).exists()


def test_unused_snapshots_are_removed_too(here: Here) -> None:
    runs = []
    for number in range(7):
        (here.project / "code.py").write_text(str(number))
        runs.append(here.quick("run", "--json", "true").json["data"]["run"]["id"])
    assert here.quick("wait", *runs).code == 0
    snapshots = folder(here, runs[0]).parent.parent / "snapshots"
    waits = here.quick("run", "--json", "sh", "-c", PATIENT).json["data"]["run"]["id"]
    eventually((folder(here, waits) / "work").is_dir)
    (here.project / "code.py").write_text("newest")
    newest = here.run("true")
    assert here.quick("prune", *runs[:3], "--yes").code == 0
    kept = [each.name for each in snapshots.iterdir() if not each.name.startswith(".")]
    assert len(kept) == 2, "that of the run that has not finished, and the newest"
    assert len([*snapshots.iterdir()]) == 6, "with two lists for each"
    (folder(here, waits) / "go").touch()
    assert here.quick("wait", waits).code == 0
    assert here.quick("prune", *runs[3:], waits, newest, "--yes").code == 0
    assert [*snapshots.iterdir()] == [] and not (snapshots.parent / "code.git").exists(), "no run is left"
    assert here.run("true"), "the next run uploads everything again"


@pytest.mark.parametrize("ordinary", [True, False], ids=["ordinary", "by scripts"])
def test_code_removed_during_a_submission(here: Here, monkeypatch: pytest.MonkeyPatch, ordinary: bool) -> None:
    """A prune removes the code after the submission found it and before the run folder exists: it is uploaded again."""
    here.run("true")
    real, make, done = scripts.text, place._make_folder, here.home / "removed"

    def text(name: str, package: str = "shell") -> str:
        found = real(name, package)
        if name != "place.sh" or ordinary:
            return found
        remove = f'[ -e "{done}" ] || {{ : > "{done}" && rm -rf "$project/snapshots/$tree" "$project/code.git"; }}'
        assert "make_folder $sizes" in found
        return found.replace("make_folder $sizes", f"{remove}\n  make_folder $sizes")

    def make_folder(aside: Path, run: Path, files: Mapping[str, bytes]) -> None:
        if not ordinary:
            raise OSError("left to the scripts")
        project = run.parent.parent
        for folder in (*(project / "snapshots").iterdir(), project / "code.git"):
            if folder.is_dir():
                subprocess.run(["rm", "-rf", str(folder)], check=True)
        done.touch()
        make(aside, run, files)

    monkeypatch.setattr(scripts, "text", text)
    monkeypatch.setattr(place, "_make_folder", make_folder)
    run = here.quick("run", "--json", "cat", "train.py").json["data"]["run"]["id"]
    assert done.exists() and here.quick("wait", run).code == 0
    assert "trained" in here.quick("logs", run).out


def test_all_of_a_context(here: Here) -> None:
    result = here.run("sh", "-c", RESULT)
    running = here.patient()
    project = folder(here, result).parent.parent
    refused = here.quick("prune", "--all", "local", "--yes", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (5, "run-not-finished")
    assert running in refused.json["error"]["message"]
    here.quick("cancel", running)
    here.quick("wait", running)
    refused = here.quick("prune", "--all", "local", "--yes", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (5, "only-copy")
    assert here.quick("fetch", result).code == 0
    shown = here.quick("prune", "--all", "local", "--json")
    assert shown.code == 2
    assert [(each["project"], each["runs"]) for each in shown.json["data"]["projects"]] == [(project.name, 2)]
    assert folder(here, result).is_dir()
    (project / "runs" / "notes").write_text("mine")
    done = here.quick("prune", "--all", "local", "--yes", "--json")
    assert (done.code, done.json["data"]["left"]) == (0, [str(project / "runs")])
    assert [each.name for each in (project / "runs").iterdir()] == ["notes"]
    assert (project / "snapshots").is_dir(), "kept while there may be a run"
    (project / "runs" / "notes").unlink()
    (project / "mine").write_text("mine")
    done = here.quick("prune", "--all", "local", "--yes", "--json")
    assert (done.code, done.json["data"]["left"]) == (0, [str(project)])
    assert [each.name for each in project.iterdir()] == ["mine"]
    assert (here.data / "node").is_dir(), "kept while there is a project"
    (project / "mine").unlink()
    version = here.data / "workspaces" / "default" / "v1"
    version.parent.mkdir(parents=True)
    version.write_text("a backup")
    done = here.quick("prune", "--all", "local", "--yes")
    assert done.code == 0 and f"kept, because it contains the backups of dev nodes: {version.parent.parent}" in done.out
    assert version.read_text() == "a backup"
    assert not project.parent.exists() and not (here.data / "node").exists()
    assert (here.data / "yurt.db").exists()
    assert "(removed 20" in here.quick("show", result).out
    assert "nothing to remove on local" in here.quick("prune", "--all", "local").out
    assert here.run("true"), "the context can be used again"


def test_the_hint_names_the_runs_of_the_message(here: Here) -> None:
    def submit(times: int, command: str) -> list[str]:
        words = ["run", "--json", "sh", "-c", command]
        return sorted(here.quick(*words).json["data"]["run"]["id"] for _each in range(times))

    unfinished = submit(5, PATIENT)
    error = here.quick("prune", "--all", "local", "--json").json["error"]
    assert ", ".join(unfinished) in error["message"] and f"`yurt cancel {' '.join(unfinished)}`" in error["hint"]
    assert here.quick("cancel", *unfinished).code == 0
    runs = submit(9, RESULT)
    assert here.quick("wait", *runs).code == 0 and here.quick("wait", *unfinished).code == 1
    error = here.quick("prune", "--all", "local", "--json").json["error"]
    named = runs[:8]
    assert f"{', '.join(named)} and 1 more" in error["message"]
    assert f"`yurt fetch --all {' '.join(named)}` and repeat this command for the others" in error["hint"]


@pytest.mark.parametrize(
    ("state", "live", "what", "stays"),
    [
        ("completed", None, "there", False),
        ("completed", "queued", "there", True),
        ("lost", "running", "there", True),
        ("running", None, "there", True),
        ("completed", None, "foreign", True),
        ("completed", "queued", "going", False),
    ],
)
def test_a_run_with_a_job_in_the_queue_is_kept(tmp_path: Path, state: Any, live: Any, what: str, stays: bool) -> None:
    """A finished run may still have a job: a duplicate, or one that was considered lost."""
    entry = Entry(run_number(1), Status(state=state))
    with Store(str(tmp_path / "yurt.db")) as store:
        found = judge(store, entry, Found(what), Observation(live=live), unfetched=True)
        assert bool(found.kept) == stays
        unseen = judge(store, entry, Found("there"), None, unfetched=True)
        assert unseen.kept, "a run that the query did not return is kept"


@pytest.mark.lab
def test_on_both_sites(laptop: Laptop, lab: Lab) -> None:
    ssh = Ssh(lab)
    made = {name: [laptop.run(name, "sh", "-c", RESULT)["run"] for _each in range(2)] for name in ("alpha", "beta")}
    ids = [run["id"] for runs in made.values() for run in runs]
    held = laptop.run("alpha", "--hold", "true")["run"]["id"]
    assert laptop.quick("wait", *ids, "--timeout", "240").code == 0
    fetched = [made["alpha"][0]["id"], made["beta"][0]["id"]]
    assert laptop.quick("fetch", *fetched).code == 0
    done = laptop.quick("prune", *ids, held, "--yes", "--json")
    assert done.code == 5, done
    going, staying = split(done)
    assert going == set(fetched)
    assert {run: why.partition(";")[0] for run, why in staying.items()} == {
        made["alpha"][1]["id"]: "it was never fetched, so it has the only copy of its outputs",
        made["beta"][1]["id"]: "it was never fetched, so it has the only copy of its outputs",
        held: "it has not finished (held)",
    }
    for name, runs in made.items():
        left = ssh(name, f"ls -A {runs[0]['folder'].rpartition('/')[0]}").split()
        assert runs[0]["id"] not in left and runs[1]["id"] in left
        assert not [each for each in left if each.startswith(".going")]
    laptop.quick("cancel", held)


@pytest.mark.lab
def test_nothing_is_removed_while_slurm_does_not_respond(laptop: Laptop, lab: Lab) -> None:
    ssh = Ssh(lab)
    run = laptop.run("alpha", "true")["run"]
    laptop.ended(run["id"])
    # Slurm commands retry for as long as slurm.conf says; give alice a shorter timeout.
    ssh("alpha", "sed '/^MessageTimeout=/d; $ a MessageTimeout=2' /etc/slurm/slurm.conf > ~/hasty.conf")
    ssh("alpha", "cp ~/.bashrc ~/.bashrc.kept; sed -i '1i export SLURM_CONF=$HOME/hasty.conf' ~/.bashrc")
    lab.faults.stop_ctld("alpha")
    try:
        silent = laptop.quick("prune", run["id"], "--yes")
        assert silent.code == 4
        assert silent.err.splitlines()[0].endswith("; nothing was removed")
        assert "Slurm does not respond" in silent.err
    finally:
        lab.faults.start_ctld("alpha")
        ssh("alpha", "mv ~/.bashrc.kept ~/.bashrc; rm ~/hasty.conf")
    assert ssh("alpha", f"ls -d {run['folder']}").strip().endswith(run["id"])


@pytest.mark.lab
def test_nothing_is_removed_from_an_unreachable_site(laptop: Laptop, lab: Lab) -> None:
    run = laptop.run("alpha", "true")["run"]
    laptop.ended(run["id"])
    laptop.quick("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        away = laptop.quick("prune", run["id"], "--yes")
        assert (away.code, "nothing was removed" in away.err) == (4, True)
    finally:
        lab.faults.heal("alpha")
    assert Ssh(lab)("alpha", f"ls -d {run['folder']}").strip().endswith(run["id"])


@pytest.mark.lab
@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_all_of_a_cluster_including_runs_of_another_laptop(
    laptop: Laptop, second_laptop: Laptop, lab: Lab, cluster: str
) -> None:
    ssh, other = Ssh(lab), second_laptop
    base = f"/lustre/scratch/alice/apart-{time.time_ns()}"
    name = f"{cluster}-apart"
    for each in (laptop, other):
        assert each.quick("context", "copy", cluster, name).code == 0
        file = each.home / "config" / "contexts.yaml"
        head, mark, tail = file.read_text().partition(f"  {name}:\n")
        file.write_text(head + mark + re.sub("storage_dir: .*", f"storage_dir: {base}", tail, count=1))
    try:
        own = laptop.run(name, "true")["run"]["id"]
        theirs = other.run(name, "sh", "-c", PATIENT)["run"]["id"]
        laptop.ended(own)
        other.starts(theirs)
        refused = laptop.quick("prune", "--all", name, "--yes", "--json")
        assert (refused.code, refused.json["error"]["code"]) == (5, "run-not-finished")
        assert theirs in refused.json["error"]["message"]
        other.quick("cancel", theirs)
        other.ended(theirs)
        eventually(lambda: theirs not in ssh(cluster, "squeue -h -o %j"))  # a completing job may still write
        done = laptop.quick("prune", "--all", name, "--yes", "--json")
        assert done.code == 0, done
        assert sum(each["runs"] for each in done.json["data"]["projects"]) == 2
        assert ssh(cluster, f"ls -A {base} | wc -l").split()[-1] == "0"
    finally:
        ssh(cluster, f"chmod -R u+w {base}; rm -rf {base}")  # a waiting run exits when its folder is gone


def test_logs_are_downloaded_before_the_folder_is_removed(here: Here) -> None:
    run = here.run("sh", "-c", "echo out; echo err >&2")
    with sqlite3.connect(here.data / "yurt.db") as index:  # as if they had not been downloaded yet
        index.execute("DELETE FROM mirror")
        index.execute("DELETE FROM to_mirror")
    assert here.quick("prune", "--yes", run).code == 0
    shown = here.quick("logs", run)
    assert "out\n" in shown.out + shown.err and "err\n" in shown.out + shown.err
