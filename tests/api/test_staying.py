"""Function calls on this machine in processes that stay: what one call leaves or prints does not reach another."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import cloudpickle
import msgspec
import pytest

import yurt
from tests.api.conftest import Here
from yurt.backends.local import waiter
from yurt.backends.local.process import born
from yurt.backends.local.staying import plan, records
from yurt.model import layout
from yurt.testing.waiting import eventually

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as if it were a script or a notebook

SECONDS = 120.0


def process(_x: int) -> int:
    return os.getpid()


def seen(x: int) -> dict[str, Any]:
    """What a call finds, and then changes."""
    print(f"out {x}")
    print(f"err {x}", file=sys.stderr)
    subprocess.run(["sh", "-c", f"echo sub {x}"], check=True)
    ctypes.CDLL(None).printf(b"native %d\n", x)
    yurt.log(step=x, x=x)
    found = {
        "pid": os.getpid(),
        "x": os.environ["YURT_PARAM_X"],
        "index": os.environ["YURT_TASK_INDEX"],
        "run": os.environ["YURT_RUN_DIR"].rpartition("/")[2],
        "id": os.environ["YURT_RUN_ID"].rpartition(".")[2],
        "params": yurt.params(),
        "data": Path("data.txt").read_text(),
        "own": os.environ.get("OWN", ""),
        "cwd": Path.cwd().parent.name,
        "mask": os.umask(0o22),
        "path": "/nowhere" in sys.path,
        "outputs": len(list(Path(os.environ["YURT_OUTPUTS"]).iterdir())),
    }
    Path(os.environ["YURT_OUTPUTS"], f"file-{x}").write_text("a result")
    Path("written.txt").write_text(f"{x}")
    os.environ["OWN"] = os.environ["YURT_RUN_DIR"] = "changed"
    sys.path.insert(0, "/nowhere")
    os.chdir("/")
    os.umask(0)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    return found


def test_each_call_has_its_own_logs_variables_and_folder(here: Here) -> None:
    (here.project / "data.txt").write_text("the data")
    with yurt.executor("local", max_workers=1) as executor:
        found = list(executor.map(seen, range(4), timeout=SECONDS))
    assert len({each.pop("pid") for each in found}) == 1, "one process makes all calls"
    mask = found[0].pop("mask")
    for x, each in enumerate(found):
        assert each.pop("mask", mask) == mask
        assert each == {
            **dict.fromkeys(("x", "index", "run", "id", "cwd"), str(x)),
            "params": {"x": x},
            "data": "the data",
            "own": "",
            "path": False,
            "outputs": 0,
        }
    for x, task in enumerate(yurt.runs(sweep="@last-sweep")):
        assert sorted(task.stdout.splitlines()) == [f"native {x}", f"out {x}", f"sub {x}"]
        assert task.logs("err") == f"err {x}\n" and task.metrics()[-1]["x"] == x
        (folder,) = task.fetch()
        assert (folder / f"file-{x}").read_text() == "a result"
        assert Path(task.folder, "work/written.txt").read_text() == f"{x}"
        assert sorted(each.name for each in Path(task.folder).iterdir()) == sorted(
            ["err.log", "exit.json", "metrics.jsonl", "out.log", "outputs", "result", "work"]
        )
        assert [each.name for each in Path(task.folder, "work").iterdir()] == ["written.txt"]


def allocates(mb: int) -> int:
    return len(bytearray(mb << 20))


def test_each_short_call_has_its_memory(here: Here) -> None:
    """That of its process during the call, not that of an earlier call."""
    with yurt.executor("local", snapshot=False, max_workers=1) as executor:
        list(executor.map(allocates, (1, 200, 1), timeout=SECONDS))
    ends = [Path(task.folder, layout.EXIT).read_bytes() for task in yurt.runs(sweep="@last-sweep")]
    used = [msgspec.json.decode(end)["usage"] for end in ends]
    little, much, again = (each["memory_mb"] for each in used)
    assert much >= 200 and 0 < little < 200 and 0 < again < 200, used
    assert all(each.get("largest_process") or each["seconds"] >= 1 for each in used), used


def test_max_tasks_per_child(here: Here) -> None:
    for most, processes in ((None, 1), (3, 2), (1, 6)):
        with yurt.executor("local", snapshot=False, max_workers=1, max_tasks_per_child=most) as executor:
            assert len(set(executor.map(process, range(6), timeout=SECONDS))) == processes
    with pytest.raises(ValueError, match="max_tasks_per_child"):
        yurt.executor("local", max_tasks_per_child=0)


def dies(x: int) -> int:
    if x == 1:
        os._exit(7)
    if x == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if x == 5:
        os.kill(os.getppid(), signal.SIGKILL)  # its runner
        time.sleep(1000)
    return x


def test_a_call_that_dies_affects_only_itself(here: Here) -> None:
    with yurt.executor("local", snapshot=False, max_workers=2) as executor:
        calls = [executor.submit(dies, x) for x in range(8)]
        errors = {x: call.exception(SECONDS) for x, call in enumerate(calls)}
    assert [x for x, error in errors.items() if error is None] == [0, 2, 4, 6, 7]
    states = {run.id: (run.state, run.exit_code) for run in yurt.runs(sweep="@last-sweep")}
    assert states[calls[1].task] == ("failed", 7) and states[calls[3].task] == ("failed", 139)
    assert states[calls[5].task][0] == "lost"


def leaves(what: str) -> int:
    if what == "process":
        subprocess.Popen(["sleep", "1000"])
    if what == "thread":
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    if what == "handler":
        signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    if what == "alarm":
        signal.alarm(1000)
    if what == "closed":
        sys.stdout.close()
    if what == "channel":
        os.closerange(3, 200)
    if what == "limit":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if what == "nice":
        os.nice(1)
    if what == "mask":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    if what == "files":
        KEPT.extend(os.dup(0) for _number in range(100))
    if what == "input":
        os.close(0)
    return os.getpid()


KEPT: list[int] = []


@pytest.mark.parametrize("what", ["process", "thread", "handler", "closed", "channel", "nothing"])
def test_a_process_ends_if_a_call_leaves_something_behind(here: Here, what: str) -> None:
    with yurt.executor("local", snapshot=False, max_workers=1) as executor:
        first, second = executor.map(leaves, [what, "nothing"], timeout=SECONDS)
        assert (first == second) == (what == "nothing")
        eventually(lambda: born(first) is None)
    if what == "process":
        found = subprocess.run(["pgrep", "-g", str(first)], capture_output=True, text=True, check=False).stdout.split()
        assert all(born(int(pid)) is None for pid in found), "process 1 may reap late what was killed"


def test_a_process_ends_if_a_call_changes_what_nobody_puts_back(here: Here) -> None:
    kinds = ["alarm", "limit", "nice", "mask", "files", "input"]
    with yurt.executor("local", snapshot=False, max_workers=1) as executor:
        found = list(executor.map(leaves, [*kinds, "nothing"], timeout=SECONDS))
    assert len(set(found)) == len(found)


def forks(how: str) -> str:
    if os.fork() == 0:
        if how == "raises":
            raise ValueError("a bug in the child")
        if how == "exits":
            sys.exit(0)
        return "child"
    os.wait()
    return "parent"


def test_only_the_process_of_a_call_has_its_result(here: Here) -> None:
    with yurt.executor("local", snapshot=False, max_workers=1) as executor:
        found = [executor.submit(forks, how) for how in ("raises", "exits", "returns")]
        after = executor.submit(slow, 7)
        assert [each.result(SECONDS) for each in found] == ["parent"] * 3 and after.result(SECONDS) == 7
    assert {run.state for run in yurt.runs(sweep="@last-sweep")} == {"completed"}


def test_an_error_whose_text_is_no_utf8(here: Here) -> None:
    with yurt.executor("local", snapshot=False, max_workers=1) as executor:
        error = executor.submit(int, "\udcff").exception(SECONDS)
    assert isinstance(error, ValueError) and "\\udcff" in str(error)


def slow(x: int) -> int:
    time.sleep(100 if x == 1 else 0)
    return x


def test_the_time_limit_is_that_of_each_call(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    about = plan.about  # a limit has at least a minute
    monkeypatch.setattr(plan, "about", lambda made: about(msgspec.structs.replace(made, limit=2)))
    with yurt.executor("local", snapshot=False, max_workers=1, time="1m") as executor:
        calls = [executor.submit(slow, x) for x in range(4)]
        errors = [call.exception(SECONDS) for call in calls]
    assert [error is None for error in errors] == [True, False, True, True]
    assert [run.state for run in yurt.runs(sweep="@last-sweep")] == ["completed", "timeout", "completed", "completed"]


def test_a_cancelled_call_and_a_cancelled_sweep(here: Here) -> None:
    with yurt.executor("local", snapshot=False, max_workers=1) as executor:
        calls = [executor.submit(slow, x) for x in (0, 1, 2, 1, 2)]
        eventually(calls[1].running)
        assert here.yurt("cancel", calls[1].task).code == 0
        assert calls[2].result(SECONDS) == 2, "the others continue"
        eventually(calls[3].running)
        sweep = calls[0].task.partition(".")[0]
        assert here.yurt("cancel", sweep).code == 0
        eventually(lambda: all(call.done() for call in calls))
    states = [run.state for run in yurt.runs(sweep=sweep)]
    assert states == ["completed", "cancelled", "completed", "cancelled", "cancelled"]
    eventually(lambda: not waiter.tickets(str(here.home / "data" / "slots")))


def nested(x: int) -> int:
    with yurt.executor("local", snapshot=False) as executor:
        return int(executor.submit(pow, x, 2).result(SECONDS))


def test_nested_executors_and_large_results(here: Here) -> None:
    with yurt.executor("local", snapshot=False, max_workers=1) as executor:
        large = executor.map(bytes, [5 << 20] * 3, timeout=SECONDS)
        assert [len(each) for each in large] == [5 << 20] * 3
        assert executor.submit(nested, 3).result(SECONDS) == 9


def test_other_runs_get_their_turn_between_two_calls(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_LOCAL_CPUS", "1")
    with yurt.executor("local", snapshot=False) as executor:
        calls = [executor.submit(time.sleep, 0.2) for _each in range(40)]
        eventually(calls[0].running)
        assert here.yurt("run", "--context", "local", "--no-snapshot", "--wait", "true").code == 0
        assert not calls[-1].done()
        executor.shutdown(wait=False, cancel_futures=True)


def test_names_are_those_of_the_layout() -> None:
    names = {each for name, each in vars(layout).items() if name.isupper() and isinstance(each, str)}
    known = {each for name, each in vars(records).items() if name.isupper() and isinstance(each, str)}
    assert {each.removesuffix("1") for each in known} - {"cancelled"} <= names | {"cancelled"}


CLIENT = """\
import os, sys, time, yurt

def work(x, folder):
    with open(os.path.join(folder, "ledger"), "a") as file:
        file.write(f"{x}\\n")
    time.sleep(0.01)
    return x

with yurt.executor("local", snapshot=False) as executor:
    calls = [executor.submit(work, x, sys.argv[1]) for x in range(60)]
    print("submitted", flush=True)
    for call in calls:
        call.exception()
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_kills_at_any_moment(here: Here, tmp_path: Path, seed: int) -> None:
    """No call runs twice. A killed client loses nothing; a killed runner, or process for calls, loses its one call."""
    import random

    draw = random.Random(seed)
    (here.project / "client.py").write_text(CLIENT)
    client = subprocess.Popen([sys.executable, "client.py", str(tmp_path)], stdout=subprocess.PIPE)
    what = ("client", "dispatcher", "runner", "worker")[seed % 4]
    slots = here.home / "data" / "slots"
    kills = 0
    eventually((tmp_path / "ledger").exists)
    for _each in range(4 if what in ("runner", "worker") else 1):
        time.sleep(draw.random() * 0.15)
        if what == "client":
            client.kill()
            kills = 0
            continue
        for ticket in list(waiter.tickets(str(slots)).values()):
            if ("left" in ticket) != (what == "dispatcher"):
                continue
            pid = ticket["pid"]
            if what == "worker":
                found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
                pid = int((found.stdout.split() or ["0"])[0])
            if pid:
                os.kill(pid, signal.SIGKILL)
                kills += 1
                break
    client.communicate(timeout=SECONDS)
    (run,) = yurt.runs()
    run.wait(SECONDS)
    ledger = Counter((tmp_path / "ledger").read_text().split())
    assert max(ledger.values()) == 1, "a call ran twice"
    states = Counter(task.state for task in run.tasks)
    assert states["completed"] >= 60 - kills, states
    for number, task in enumerate(run.tasks):
        if task.state == "completed":
            assert task.result() == number
        if what == "client":
            assert ledger[str(number)] == 1
