"""prune removes sweeps completely or not at all, never with an unfinished task or the only copy of results."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.calls import Called
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.lifecycle.test_fetch import Here
from tests.lifecycle.test_prune import split
from yurt.backends.job import script
from yurt.backends.shell.removal import tools
from yurt.lab import Lab
from yurt.lifecycle import last_jobs
from yurt.model.run import Status
from yurt.store import Store
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually
from yurt.transport.local import LocalHost

RESULT = 'echo 1 > "$YURT_OUTPUTS/it is $2"'


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with Here(tmp_path) as made:
        yield made


def sweep(here: Here, command: str, *, sets: str = "n=1..3", wait: bool = True) -> str:
    words = ["run", "--json", *(["--wait"] if wait else []), "--grid", sets, "sh", "-c", command, "sh"]
    found: str = here.quick(*words).json["data"]["run"]["id"]
    return found


def folder(here: Here, run: str) -> Path:
    return next(here.data.glob("projects/*/sweeps")) / run


def why(done: Called, run: str) -> str:
    going, staying = split(done)
    assert (run in going) != (run in staying)
    return staying.get(run, "")


def test_a_sweep_is_kept_until_all_results_are_fetched(here: Here) -> None:
    run = sweep(here, f'{RESULT}; [ "$2" != 2 ] || echo 7 > "$YURT_CHECKPOINTS/last"')
    shown = here.quick("prune", "--json")
    assert shown.code == 0 and shown.json["data"]["kept"][0]["files"] == 4
    never = "the outputs and checkpoints of {} of its tasks were never fetched"
    assert why(shown, run) == f"{never.format(3)}; run `yurt fetch {run} --all`"
    assert here.quick("fetch", f"{run}.0").code == here.quick("fetch", f"{run}.2").code == 0
    assert why(here.quick("prune", "--json"), run).startswith(f"{never.format(1)};")
    (here.project / "results" / f"{run}.0" / "it is 1").unlink()
    assert why(here.quick("prune", "--json"), run) == (
        f"{never.format(1)}, and the outputs of 1 of its tasks were deleted or changed on this machine after they were"
        f" fetched; run `yurt fetch {run} --all`"
    )
    assert here.quick("fetch", run).code == 0
    assert why(here.quick("prune", "--json"), run).startswith("the checkpoints of 1 of its tasks were not fetched;")
    assert here.quick("fetch", run, "--all").code == 0
    (folder(here, run) / "tasks" / "1" / "outputs" / "late").touch()
    changed = "the outputs of 1 of its tasks changed on local after they were fetched"
    assert why(here.quick("prune", "--json"), run).startswith(changed)
    (folder(here, run) / "tasks" / "1" / "outputs" / "late").unlink()
    done = here.quick("prune", "--yes", "--json")
    assert (done.code, split(done)[0]) == (0, {run})
    assert list(folder(here, run).parent.iterdir()) == []
    assert "removed 20" in here.quick("show", f"{run}.1").out
    gone = here.quick("fetch", run)
    sentence, _hint = gone.err.splitlines()
    assert gone.code == 3 and sentence.startswith(
        f"yurt: sweep {run} cannot be fetched: `yurt prune` removed its folder from local on 20"
    )
    assert "; earlier copies are in " in sentence and sentence.count("cannot be fetched") == 1
    assert why(here.quick("prune", run, "--json"), run) == "its folder is already removed"
    assert split(here.quick("prune", "--json")) == (set(), {})


def test_logs_of_tasks_are_downloaded_first(here: Here) -> None:
    run = sweep(here, 'echo "this is $2"')
    with Store(str(here.data / "yurt.db")) as index:  # as if they had not been downloaded yet
        index._db.execute("DELETE FROM mirror")
        index._db.execute("DELETE FROM to_mirror")
    assert here.quick("prune", "--yes").code == 0
    logs = here.quick("logs", run)
    assert sorted(line.partition("this is ")[2] for line in logs.out.splitlines() if "this is" in line) == [
        "1",
        "2",
        "3",
    ]


def test_a_sweep_is_kept_while_a_task_is_unfinished(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sweep(here, f'[ "$2" != 2 ] || {{ {PATIENT}; }}', wait=False)
    eventually((folder(here, run) / "tasks" / "1" / "gen.1").exists)
    eventually((folder(here, run) / "tasks" / "2" / "exit.json").exists)
    for words in (["prune", run, "--unfetched", "--yes", "--json"], ["prune", "--unfetched", "--yes", "--json"]):
        done = here.quick(*words)
        assert run not in split(done)[0]
    assert why(here.quick("prune", run, "--json"), run) == "it has not finished (running)"
    refused = here.quick("prune", "--all", "local", "--unfetched", "--yes", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (5, "run-not-finished") and run in refused.out
    assert folder(here, run).is_dir()
    # The index says that it has finished, but the process is still running.
    monkeypatch.setattr(last_jobs, "PAUSES", (0.0, 0.0))
    with Store(str(here.data / "yurt.db")) as index:
        index.change_tasks(run, range(3), lambda _number, _status: Status(state="completed", started=1.0, ended=2.0))
    assert why(here.quick("prune", run, "--unfetched", "--json"), run) == "it still has a job on local"
    (folder(here, run) / "tasks" / "1" / "go").touch()
    eventually((folder(here, run) / "tasks" / "1" / "exit.json").exists)
    eventually(lambda: here.quick("prune", run, "--unfetched", "--yes", "--json").json["data"]["removed"])
    assert not folder(here, run).exists()


def test_a_task_is_not_removed_alone(here: Here) -> None:
    """Its folder contains its gate, and the sweep's job script could start the task again."""
    run = sweep(here, f'[ "$2" = 1 ] || {{ {RESULT}; }}')
    done = here.quick("prune", f"{run}.1", "--yes", "--json")
    assert done.code == 5
    assert why(done, f"{run}.1") == f"a task is removed with its sweep; run `yurt prune {run}`"
    assert (folder(here, run) / "tasks" / "1" / "exit.json").exists()

    def results(number: int) -> tuple[int, bool, bool]:
        (task,) = here.quick("prune", f"{run}.{number}", "--json").json["data"]["kept"]
        return task["files"], task["fetched"], task["size"] > 0

    assert [results(number) for number in range(3)] == [(0, True, True), (1, False, True), (1, False, True)]
    assert " not fetched " in here.quick("prune", f"{run}.1").out
    assert here.quick("fetch", f"{run}.1").code == 0
    assert results(1) == (1, True, True)


def test_a_dry_run_shows_and_removes_nothing(here: Here) -> None:
    run, single = sweep(here, "true"), here.run("true")
    for words in ([], ["--all", "local"]):
        done = here.quick("prune", "--dry-run", *words, "--json")
        assert (done.code, done.json["data"]["done"], done.json["warnings"]) == (0, False, [])
        assert "would remove" in here.quick("prune", "--dry-run", *words).out
    assert split(here.quick("prune", "--dry-run", "--json"))[0] == {run, single} and folder(here, run).is_dir()
    assert here.quick("prune", "--dry-run", "--yes").code == 2


def test_filters(here: Here) -> None:
    good, bad = sweep(here, "true"), sweep(here, "exit 1")
    # A moment after the end of `run --wait`, the process of the sweep may still exist.
    eventually(lambda: split(here.quick("prune", "--state", "failed", "--json"))[0] == {bad})
    assert split(here.quick("prune", "--older-than", "1h", "--json"))[0] == set()
    with Store(str(here.data / "yurt.db")) as index:
        then = time.time() - 7200
        index.change_tasks(good, whole=lambda status: msgspec.structs.replace(status, ended=then))
    assert split(here.quick("prune", "--older-than", "1h", "--json"))[0] == {good}


def test_an_interrupted_removal_continues(here: Here, tmp_path: Path) -> None:
    runs = [sweep(here, RESULT) for _each in range(2)]
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "rm").write_text('#!/bin/sh\nkill -KILL "$PPID"\n')
    (tools / "rm").chmod(0o700)
    killed = here("prune", "--unfetched", "--yes", PATH=f"{tools}:{os.environ['PATH']}")
    assert killed.code == 4
    places = folder(here, runs[0]).parent
    assert sorted(each.name for each in (places / ".going").iterdir()) == sorted(runs)
    done = here.quick("prune", "--yes", "--json")
    assert (done.code, split(done)[0]) == (0, set(runs))
    assert list(places.iterdir()) == []


def test_a_replaced_folder_is_kept(here: Here, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "dear").write_text("dear")
    swapped, moved = sweep(here, "true"), sweep(here, f"ln -s {outside} $YURT_OUTPUTS/link")
    shutil.rmtree(folder(here, swapped))
    folder(here, swapped).symlink_to(outside)
    done = here.quick("prune", "--unfetched", "--yes", "--json")
    assert split(done) == ({moved}, {swapped: "its folder was not created by yurt or has been replaced"})
    assert (outside / "dear").read_text() == "dear"


def test_all_of_a_context(here: Here) -> None:
    run, single = sweep(here, RESULT), here.run("true")
    refused = here.quick("prune", "--all", "local", "--yes", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (5, "only-copy") and run in refused.out
    assert here.quick("fetch", run).code == 0
    project = folder(here, run).parent.parent
    shown = here.quick("prune", "--all", "local", "--json")
    assert [(each["project"], each["runs"]) for each in shown.json["data"]["projects"]] == [(project.name, 2)]
    (project / "sweeps" / "notes").write_text("mine")
    done = here.quick("prune", "--all", "local", "--yes", "--json")
    assert (done.code, done.json["data"]["left"]) == (0, [str(project / "sweeps")])
    assert (project / "snapshots").is_dir(), "kept while there may be a sweep"
    (project / "sweeps" / "notes").unlink()
    assert here.quick("prune", "--all", "local", "--yes").code == 0
    assert not project.parent.exists()
    for each in (run, single):
        assert "removed 20" in here.quick("show", f"{each}.0" if each == run else each).out


def test_all_of_a_context_without_an_index(here: Here) -> None:
    """The folder of a sweep that is not in the index must say that all its tasks have finished."""
    over, running = sweep(here, "true"), sweep(here, PATIENT, wait=False)
    eventually((folder(here, running) / "tasks" / "0" / "gen.1").exists)
    for file in here.data.glob("yurt.db*"):
        file.unlink()
    refused = here.quick("prune", "--all", "local", "--yes", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (5, "run-not-finished")
    assert running in refused.out and over not in refused.out
    for number in range(3):
        eventually(lambda number=number: (folder(here, running) / "tasks" / str(number)).is_dir())  # type: ignore[misc]
        (folder(here, running) / "tasks" / str(number) / "go").touch()
        eventually(lambda number=number: (folder(here, running) / "tasks" / str(number) / "exit.json").exists())  # type: ignore[misc]
    eventually(lambda: here.quick("prune", "--all", "local", "--yes").code == 0)


def test_tasks_are_measured_like_runs(tmp_path: Path) -> None:
    """With any file names; a folder that cannot be read affects only its own task."""
    made = tmp_path / "projects" / "p" / "sweeps" / "s"
    for number in (0, 3, 12):
        (made / "tasks" / str(number) / "outputs" / "below").mkdir(parents=True)
        (made / "tasks" / str(number) / "outputs" / "below" / "a\nb 'c").write_text("x" * number)
        (made / "tasks" / str(number) / "outputs" / "z").write_text("z")
    (made / "tasks" / "3" / "checkpoints").mkdir()
    (made / "tasks" / "3" / "checkpoints" / "last").symlink_to("/nowhere")
    (made / "tasks" / "5").mkdir()
    host = LocalHost()
    (made / "tasks" / "12" / "work" / "__pycache__").mkdir(parents=True)
    for name in ("written", "__pycache__/x"):
        (made / "tasks" / "12" / "work" / name).write_text(name)
    one_by_one = 'cd "$1/tasks" && for t in *; do echo "+$t $(measure_run "$t")"; done'
    expected = host.run(tools() + one_by_one, str(made)).text.splitlines()
    output = host.run(tools() + 'measure_tasks "$1"', str(made)).text.splitlines()
    assert sorted(output) == sorted(line for line in expected if not line.startswith("+5 ")) and len(output) == 3
    if os.geteuid():
        (made / "tasks" / "3" / "outputs" / "below").chmod(0)
        output = host.run(tools() + 'measure_tasks "$1"', str(made)).text.splitlines()
        (made / "tasks" / "3" / "outputs" / "below").chmod(0o700)
        assert {line.split()[0]: line.split()[1] == "?" for line in output} == {
            "+0": False,
            "+12": False,
            "+3": True,
            "+5": False,
        }
    assert script.gate() in tools()


@pytest.mark.lab
@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_on_a_cluster(laptop: Laptop, lab: Lab, cluster: str) -> None:
    grid = ["--cpus", "1", "--mem", "50", "--grid", "n=1..3", "sh", "-c"]
    run = laptop.run(cluster, *grid, RESULT, "sh")["run"]
    held = laptop.run(cluster, "--hold", *grid, "true")["run"]["id"]
    assert laptop.quick("wait", run["id"], "--timeout", "240").code == 0
    kept = laptop.quick("prune", run["id"], held, "--yes", "--json")
    assert "outputs of 3 of its tasks" in why(kept, run["id"]) and why(kept, held) == "it has not finished (held)"
    assert laptop.quick("fetch", run["id"]).code == 0
    done = laptop.quick("prune", run["id"], held, "--yes", "--json")
    assert done.code == 5 and split(done)[0] == {run["id"]}
    left = Ssh(lab)(cluster, f"ls -A {run['folder'].rpartition('/')[0]}").split()
    assert held in left and not [name for name in left if run["id"] in name]
    # The index says that it has finished, but it is still in the queue.
    with Store(str(laptop.home / "data" / "yurt.db")) as index:
        index.change_tasks(held, range(3), lambda _number, _status: Status(state="lost", ended=2.0))
        kept = laptop.quick("prune", held, "--unfetched", "--yes", "--json")
        assert why(kept, held) == f"it still has a job on {cluster}"
        index.change_tasks(held, range(3), lambda _number, _status: Status(state="queued"))
    assert laptop.quick("cancel", held).code == 0
    eventually(lambda: split(laptop.quick("prune", held, "--yes", "--json"))[0] == {held})
