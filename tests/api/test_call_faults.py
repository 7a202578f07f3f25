"""Calls whose site, machine or function fails: every future gets a result or an error."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import yurt
from tests.api.conftest import Here
from yurt.contexts import folders
from yurt.errors import RefusedError
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.model import calls
from yurt.store import calls as kept
from yurt.testing.waiting import eventually

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 120.0

HERE_AND_ALPHA = ["local", pytest.param("alpha", marks=pytest.mark.lab)]
HERE_AND_SLOWLY_ALPHA = ["local", pytest.param("alpha", marks=[pytest.mark.lab, pytest.mark.slow])]


def after(seconds: float, value: int) -> int:
    time.sleep(seconds)
    return value


def many_by_hand(values: list[int]) -> list[int]:
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map(doubled, values)


def doubled(value: int) -> int:
    return 2 * value


def in_three_starts() -> tuple[int, int]:
    with yurt.checkpointing() as saved:
        done = int(saved.load("done") or b"0") + 1
        saved.save("done", str(done))
        if done < 3:
            saved.leave()
    return done, saved.restarts


def the_environment_is_gone() -> str:
    os.chdir("/")
    os.environ.clear()
    return "here"


@pytest.mark.parametrize("context", HERE_AND_ALPHA)
def test_functions_that_clear_the_environment_exit_or_fork(here: Here, context: str) -> None:
    with yurt.executor(context, snapshot=False) as executor:
        cleared, left = executor.submit(the_environment_is_gone), executor.submit(os._exit, 0)
        if context == "local":
            many_by_hand.__module__ = doubled.__module__ = "__main__"
            assert executor.submit(many_by_hand, [1, 2]).result(SECONDS) == [2, 4]
        assert cleared.result(SECONDS) == "here"
        error = left.exception(SECONDS)
    assert isinstance(error, yurt.CallError) and "without a result (completed)" in error.message


@pytest.mark.parametrize("broken", ["sender", "receiver"])
def test_a_thread_of_the_executor_that_fails(here: Here, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls get its error, the other thread stops too, and shutdown returns."""
    store = folders.store

    def fails() -> Any:
        if threading.current_thread().name == f"yurt {broken}":
            raise RefusedError("the index of runs cannot be used", code="index-unavailable")
        return store()

    monkeypatch.setattr(folders, "store", fails)
    executor = yurt.executor("local", snapshot=False)
    with pytest.raises(RefusedError, match="cannot be used"):
        executor.submit(doubled, 1).result(SECONDS)
    with pytest.raises(yurt.CallError, match="the executor failed: the index"):
        executor.submit(doubled, 1)
    ending = threading.Thread(target=executor.shutdown)
    ending.start()
    ending.join(SECONDS)
    assert not ending.is_alive()


@pytest.mark.parametrize("context", HERE_AND_SLOWLY_ALPHA)
def test_a_requeued_call_continues(here: Here, context: str) -> None:
    with yurt.executor(context, requeue=True) as executor:
        assert executor.submit(in_three_starts).result(SECONDS) == (3, 2)


@pytest.mark.parametrize("context", HERE_AND_ALPHA)
def test_secrets_reach_functions_and_no_file(here: Here, context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "sesame-4711")
    with yurt.executor(context, secrets=["HF_TOKEN"]) as executor:
        call = executor.submit(lambda: os.environ["HF_TOKEN"][::-1])
        assert call.result(SECONDS) == "1174-emases"
        sweep = yurt.runs(sweep=call.task.partition(".")[0])[0].folder.rpartition("/tasks/")[0]
        find = "grep -rl sesame-471[1] $1; stat -c %a $1 $1/calls $1/tasks $1/tasks/0 $1/tasks/0/result"
        looked = executor.submit(subprocess.run, ["sh", "-c", find, "sh", sweep], capture_output=True, text=True)
        assert looked.result(SECONDS).stdout.split() == ["700", "600", "700", "700", "600"]
    here_kept = Path(here.environment["YURT_DATA_HOME"], "calls")
    assert stat.S_IMODE(here_kept.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in here_kept.iterdir()} == {0o600}
    assert not any(b"sesame-4711" in each.read_bytes() for each in here_kept.iterdir())


TAMPERED = {
    "others": "chmod o+w result",
    "group": "chmod g+w result",
    "link": "mv result mine; ln -s mine result",
    "owner": "chown 4711 result",
    "pipe": "rm result; mkfifo result",
    "folder": "rm result; mkdir result",
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_result_that_others_could_have_written_is_not_unpickled(here: Here, how: str) -> None:
    """A pickle can run any code: only a regular file of the user that nobody else can write to is read."""
    if how == "owner" and os.geteuid() != 0:
        pytest.skip("needs root, to change the owner of a file")
    with yurt.executor("local", snapshot=False) as executor:
        call, untouched = executor.submit(doubled, 1), executor.submit(doubled, 2)
        assert (call.result(SECONDS), untouched.result(SECONDS)) == (2, 4)
    runs = {run.id: run for run in yurt.runs(sweep=call.task.partition(".")[0])}
    subprocess.run(["sh", "-c", TAMPERED[how]], cwd=runs[call.task].folder, check=True)
    with pytest.raises(yurt.CallError, match="does not unpickle the result") as refused:
        runs[call.task].result()
    assert refused.value.code == "result-unsafe"
    if untouched.task in runs:
        assert runs[untouched.task].result() == 4


def test_calls_cancelled_or_removed_by_others(here: Here) -> None:
    with yurt.executor("local", snapshot=False) as executor:
        ended = executor.submit(after, 100, 1)
        eventually(ended.running)
        assert here.yurt("cancel", ended.task.partition(".")[0]).code == 0
        error = ended.exception(SECONDS)
        assert isinstance(error, yurt.CallError) and "(cancelled)" in error.message
        removed = executor.submit(after, 0, 1)
        assert removed.result(SECONDS) == 1
        (task,) = yurt.runs(sweep=removed.task.partition(".")[0])
        eventually(lambda: _removed(task.folder))
        with pytest.raises(yurt.CallError, match="the run folder no longer exists on local"):
            task.result()
        damaged = executor.submit(_damage)
        error = damaged.exception(SECONDS)
        assert isinstance(error, yurt.CallError) and error.code == "result-not-sent" and "damaged" in error.message
        assert executor.submit(after, 0, 3).result(SECONDS) == 3


def _removed(folder: str) -> bool:
    """Remove a folder, in which the run may still remove files itself; return whether it is gone."""
    shutil.rmtree(folder, ignore_errors=True)
    return not Path(folder).exists()


def _damage() -> None:
    Path(os.environ["YURT_RUN_DIR"], "result").write_text("nothing of the kind")
    os._exit(0)


@pytest.mark.parametrize(
    ("room", "message"),
    [(20_000, "File too large"), (0, "the disk or your quota may be full")],
    ids=["message fits", "nothing fits"],
)
def test_a_result_that_does_not_fit_on_the_disk(here: Here, room: int, message: str) -> None:
    """There may be no space for the error message either."""
    with yurt.executor("local", snapshot=False) as executor:
        error = executor.submit(_without_room, room).exception(SECONDS)
        taken_back = executor.submit(after, 0, 1)
        assert taken_back.result(SECONDS) == 1
    assert isinstance(error, yurt.CallError) and message in error.message
    folder = yurt.runs(sweep=error.task.partition(".")[0])[0].folder
    assert not list(Path(folder).glob("result*"))


def _without_room(room: int) -> bytes:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    return os.urandom(50_000)


def test_a_full_local_disk_leaves_no_partial_files(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "the disk of this machine is full on device")

    with folders.store() as store:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(RefusedError, match="the disk of this machine is full"):
            kept.keep(store, "s1aaaaaa-bbbbb", b"calls")
        assert not list((Path(store.file).parent / "calls").glob("*s1aaaaaa*"))


def test_two_processes_that_remove_old_calls_at_the_same_time(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    listdir = os.listdir
    with folders.store() as store:
        kept.keep(store, "s1aaaaaa-ccccc", b"calls")
        monkeypatch.setattr(os, "listdir", lambda folder: [*listdir(folder), "s1aaaaaa-ddddd"])
        kept.keep(store, "s1aaaaaa-eeeee", b"calls")
        assert kept.of(store, "s1aaaaaa-eeeee") == b"calls"


def test_the_hint_names_a_module_outside_the_project(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far_away_module.py").write_text("def f():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import far_away_module  # type: ignore[import-not-found]

    with yurt.executor("local") as executor:
        error = executor.submit(far_away_module.f).exception(SECONDS)
    assert isinstance(error, yurt.CallError) and error.code == "call-not-loaded"
    assert error.hint == f"the module is in {tmp_path}; start Python in the folder of that project"


PROGRAM = """\
import sys, time, yurt

def note(file, number):
    with open(file, "a") as ledger:
        ledger.write(f"{number}\\n")
    return number

executor = yurt.executor(sys.argv[1], snapshot=False)
print("up", flush=True)
futures = [executor.submit(note, sys.argv[2], number) for number in range(3)]
time.sleep(100)
"""


@pytest.mark.parametrize("context", HERE_AND_SLOWLY_ALPHA)
def test_the_program_killed_at_any_moment_of_submitting(here: Here, context: str, tmp_path: Path) -> None:
    """No call is lost once its sweep is saved, and none runs twice."""
    (here.project / "sends.py").write_text(PROGRAM)
    delays = random.Random(7)
    before = set(here.sweeps())
    ledgers = []
    for number in range(20 if os.environ.get("SLOW_TESTS") else 3):
        name = f"ledger-{time.time()}-{number}"
        ledgers.append(f"{tmp_path}/{name}" if context == "local" else f"/lustre/scratch/alice/{name}")
        command = [sys.executable, "sends.py", context, ledgers[-1]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
            assert sender.stdout is not None and sender.stdout.readline() == "up\n"
            time.sleep(delays.uniform(0.3, 1.5))
            sender.kill()
    made = [run for run in yurt.runs() if run.id not in before and run.tasks]
    for run in made:
        assert run.wait(SECONDS) == "completed"
        assert [task.result() for task in run.tasks] == [0, 1, 2]
    with yurt.executor(context, snapshot=False) as executor:
        found = list(executor.map(_lines, ledgers, timeout=SECONDS))
    assert sorted(found) == sorted([["0", "1", "2"]] * len(made) + [[]] * (len(ledgers) - len(made)))


def _lines(file: str) -> list[str]:
    return sorted(Path(file).read_text().split()) if Path(file).exists() else []


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha"])
def test_calls_made_while_the_site_is_unreachable(here: Here, context: str, lab: Lab) -> None:
    """The executor submits them itself when the link is back."""
    lab.faults.cut(context)
    with yurt.executor(context, snapshot=False) as executor:
        try:
            call = executor.submit(after, 0, 11)
            eventually(lambda: call.run)
            assert yurt.runs(sweep=call.task.partition(".")[0], refresh=False)[0].state == "waiting"
        finally:
            lab.faults.heal(context)
        assert call.result(SECONDS) == 11


def until(file: str) -> int:
    for _each in range(3000):
        if Path(file).exists():
            break
        time.sleep(0.1)
    return 12


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha"])
def test_a_link_that_is_down_while_calls_finish(here: Here, context: str, lab: Lab) -> None:
    """Their results are fetched when the link is back."""
    go = f"/lustre/scratch/alice/go-{time.time()}"

    def on_site(*command: str) -> int:
        return subprocess.run(inside(lab.cluster(context).pid("login"), [*command]), check=False).returncode

    with yurt.executor(context, snapshot=False) as executor:
        call: Any = executor.submit(until, go)
        try:
            eventually(call.running)
            result = f"{yurt.runs(sweep=call.run.sweep, refresh=False)[0].folder}/result"
            lab.faults.cut(context)
            assert on_site("touch", go) == 0
            eventually(lambda: on_site("test", "-s", result) == 0)
            assert not call.done()
        finally:
            lab.faults.heal(context)
            on_site("touch", go)
        assert call.result(SECONDS) == 12
    on_site("rm", go)


def test_the_call_file_contains_a_shared_function_once() -> None:
    content = calls.pack(calls.Calls(about={}, functions=[b"f" * 5000], calls=[(0, b"1")] * 100, program=b""))
    assert len(content) < 5000 + 100 * (calls.ROW.size + 1) + 500


STOPS_BEFORE_ENQUEUE = """\
import time
import yurt
from yurt.api import sender

def stop(*_arguments, **_named):
    print("kept", flush=True)
    time.sleep(600)

sender.enqueue = stop
with yurt.executor("local") as executor:
    executor.submit(abs, -1).result()
"""


def test_the_calls_of_a_killed_process_are_removed(here: Here) -> None:
    """They are on disk, but their sweep is not in the index yet. While the process lives, nobody removes them."""
    process = subprocess.Popen([sys.executable, "-c", STOPS_BEFORE_ENQUEUE], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"kept\n"
        (file,) = (here.home / "data" / "calls").iterdir()
        assert here.yurt("ps").code == 0
        assert file.exists()
    finally:
        process.kill()
        process.wait()
    assert here.yurt("ps").code == 0
    assert list(file.parent.iterdir()) == []


def test_a_half_written_file_of_a_killed_process_is_removed(here: Here) -> None:
    with folders.store() as index:
        kept.keep(index, "s1", b"calls")
        folder = here.home / "data" / "calls"
        (folder / ".s2").touch()
        kept.collect(index)
        assert [each.name for each in folder.iterdir()] == ["s1"]
        kept.release("s1")
        kept.collect(index)
        assert list(folder.iterdir()) == []
