"""A run that goes on after its time limit, on this machine: what it saved is neither lost nor done again."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from yurt.backends.local.backend import LocalBackend
from yurt.clocks import clocks
from yurt.hosts import LocalHost
from yurt.model.context import Context
from yurt.model.run import Again, Plan, Status
from yurt.model.state import settle
from yurt.testing.runs import Planner, follow, look, read, spot, submit, submitted
from yurt.testing.waiting import eventually
from yurt.verbs.plan import Request
from yurt.verbs.plan import plan as planning

COUNT = """\
step=$(cat "$YURT_CHECKPOINTS/step" 2> /dev/null || echo 0)
save() { echo "$step" > "$YURT_CHECKPOINTS/new" && mv "$YURT_CHECKPOINTS/new" "$YURT_CHECKPOINTS/step"; }
trap 'save; exit 85' USR1 TERM
while [ "$step" -lt "$1" ]; do
  sleep 0.2 & wait $!
  step=$((step + 1))
  echo "$step $YURT_RESTARTS" >> "$YURT_OUTPUTS/steps"
done
"""
"""Counts up, and saves when it is told to."""

SELDOM = """\
step=$(cat "$YURT_CHECKPOINTS/step" 2> /dev/null || echo 0)
while [ "$step" -lt "$1" ]; do
  sleep 0.2
  step=$((step + 1))
  echo "$step $YURT_RESTARTS" >> "$YURT_OUTPUTS/steps"
  [ $((step % 5)) -ne 0 ] || { echo "$step" > new && mv new "$YURT_CHECKPOINTS/step"; }
done
"""
"""Counts up, and saves now and then; it knows of no signals."""


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBackend:
    for kind in ("config", "data"):
        monkeypatch.setenv(f"YURT_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("YURT_LOCAL_CPUS", "8")
    (tmp_path / "proj").mkdir()
    monkeypatch.chdir(tmp_path / "proj")
    return LocalBackend(LocalHost(), tmp_path / "data" / "slots")


@pytest.fixture
def plan(backend: LocalBackend) -> Planner:
    def make(*words: str, limit: int = 4, before: int = 2, lease: int = 6, **again: int | bool) -> Plan:
        wanted = Again(**{"requeues": 5, "before": before, **again})  # type: ignore[arg-type]
        request = Request(words=words, again=wanted, snapshot=False, flags={"time": 5})
        made = planning(Context(name="local", type="local"), request).plan
        return msgspec.structs.replace(made, limit=limit, lease=lease)

    return make


def steps(plan: Plan) -> list[tuple[int, int]]:
    """(step, start) in the order they were made."""
    try:
        rows = (Path(plan.run.folder) / "outputs" / "steps").read_text().split("\n")
    except FileNotFoundError:
        return []
    return [(int(row.split()[0]), int(row.split()[1])) for row in rows if row]


def test_what_saves_on_the_signal_repeats_nothing(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", COUNT, "sh", "30")
    submit(backend, made)
    status = follow(backend, made)
    done = steps(made)
    assert (status.state, status.restarts) == ("completed", done[-1][1]), read(backend, made, "err.log")
    assert [step for step, _start in done] == list(range(1, 31)), done
    assert 2 <= status.restarts <= 5
    assert status.seconds and status.seconds >= 5
    assert status.ended and status.started and status.ended - status.started >= status.seconds - 1


def test_what_knows_no_signal_repeats_only_what_it_had_not_saved(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", SELDOM, "sh", "30")
    submit(backend, made)
    status = follow(backend, made)
    assert status.state == "completed" and status.restarts >= 1, status
    done = steps(made)
    for (before, start), (after, following) in pairwise(done):
        expected = before + 1 if start == following else before - before % 5 + 1
        assert after == expected, done
    assert done[-1][0] == 30


def test_where_nothing_is_saved_it_is_not_started_for_ever(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sleep", "60", limit=2, before=1)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("timeout", 1)
    assert status.reason.startswith("two starts in a row saved nothing")


def test_as_often_as_it_may(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", 'date > "$YURT_CHECKPOINTS/$YURT_RESTARTS"; exec sleep 60', limit=2, before=1, requeues=3)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("timeout", 3)
    assert status.reason == "it was started again as often as it may, and was not done"


def test_it_may_ask_to_be_started_again(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", 'echo x >> "$YURT_OUTPUTS/x"; [ "$YURT_RESTARTS" -eq 2 ] || exit 85', limit=60)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts, read(backend, made, "outputs/x")) == ("completed", 2, "x\nx\nx\n")


def test_an_error_of_its_own_ends_it_unless_told_otherwise(backend: LocalBackend, plan: Planner) -> None:
    made, told = (
        plan("sh", "-c", "echo $YURT_RESTARTS; exit 3", requeues=0, retries=2, errors=errors, limit=60)
        for errors in (False, True)
    )
    for each in (made, told):
        submit(backend, each)
    assert (follow(backend, made).state, read(backend, made, "out.log")) == ("failed", "0\n")
    status = follow(backend, told)
    assert (status.state, status.exit_code, read(backend, told, "out.log")) == ("failed", 3, "0\n1\n2\n")


def test_done_is_done_even_after_the_signal(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", "trap 'exit 0' USR1; while :; do sleep 0.1; done", limit=2, before=1)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("completed", 0)


def test_a_child_that_still_saves_is_waited_for(backend: LocalBackend, plan: Planner) -> None:
    """The shell around it knows no signals, and dies of the first; what it started is given its time."""
    child = 'trap "sleep 1; echo saved > $YURT_CHECKPOINTS/state; exit 85" USR1; while :; do sleep 0.1; done'
    parent = f"[ ! -e $YURT_CHECKPOINTS/state ] || exit 0; bash -c '{child}'; true"
    made = plan("bash", "-c", parent, limit=6, before=4)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts, read(backend, made, "checkpoints/state")) == ("completed", 1, "saved\n")


def test_cancelled_between_two_starts(backend: LocalBackend, plan: Planner) -> None:
    for wait in (0.0, 0.5, 1.0, 1.3, 1.6):
        made = plan("sh", "-c", 'date > "$YURT_CHECKPOINTS/x"; sleep 60', limit=2, before=1)
        submit(backend, made)
        eventually((Path(made.run.folder) / "checkpoints" / "x").exists)
        time.sleep(wait)
        backend.cancel(spot(made))
        assert follow(backend, made).state == "cancelled"
        eventually(lambda made=made: look(backend, made).live is None)  # type: ignore[misc]


def goes_on(backend: LocalBackend, plan: Plan) -> Status:
    """What yurt makes of a run that is gone."""
    status = submitted()
    for ahead in (0.0, clocks().settling + 1):
        status = settle(status, look(backend, plan), time.time() + ahead, plan.run.again)
    return status


def test_a_machine_that_was_switched_off(backend: LocalBackend, plan: Planner) -> None:
    """All of a run is killed at once; its next start takes over what it saved, and nothing runs twice at a time."""
    made = plan("sh", "-c", SELDOM, "sh", "20", limit=60)
    submit(backend, made)
    eventually(lambda: len(steps(made)) >= 7)
    pid = int(look(backend, made).job)
    child, _, _born = (Path(made.run.folder) / "child.1").read_text().partition(" ")
    os.kill(pid, signal.SIGKILL)
    os.killpg(int(child), signal.SIGKILL)
    eventually(lambda: look(backend, made).live is None)
    status = goes_on(backend, made)
    assert (status.state, status.start) == ("waiting", 2)
    first = len(steps(made))
    submit(backend, made, start=2)
    submit(backend, made, start=2)
    assert follow(backend, made).state == "completed"
    done = steps(made)
    assert done[first] == (done[first - 1][0] // 5 * 5 + 1, 1) and done[-1] == (20, 1)
    assert len(done) == first + 20 - done[first - 1][0] // 5 * 5


TICKS = 'while [ "$(cat "$YURT_CHECKPOINTS/n" 2> /dev/null || echo 0)" -lt "$1" ]; do sleep 0.1 & wait $!; ' + (
    'n=$(cat "$YURT_CHECKPOINTS/n" 2> /dev/null || echo 0); echo $((n + 1)) > "$YURT_CHECKPOINTS/new"; '
    'mv "$YURT_CHECKPOINTS/new" "$YURT_CHECKPOINTS/n"; done'
)
"""Counts tenths of seconds, each of them saved. Signals that are none to stop do not end it: trap '' before it."""


def family(backend: LocalBackend, plan: Plan) -> dict[str, list[int]]:
    """The processes of a run: job.sh itself, its beats (the same program, its children), its timers, your command."""
    job = int(look(backend, plan).job)
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, line = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(folder.name)] = (
            int(stat.rpartition(")")[2].split()[1]),
            line.replace(b"\0", b" ").decode(errors="replace"),
        )
    own, more = {job}, {job}
    while more:
        more = {pid for pid, (parent, _words) in parents.items() if parent in own} - own
        own |= more
    found: dict[str, list[int]] = {"job": [job], "beats": [], "timers": [], "all": sorted(own)}
    for pid in own - {job}:
        parent, words = parents[pid]
        if "yurt-timer" in words:
            found["timers"].append(pid)
        elif parent == job and " inside " not in words and "job.sh" in words:
            found["beats"].append(pid)
    return found


def signalled(pid: int, number: signal.Signals) -> None:
    """Signal a process that may have ended since it was seen, as each `sleep` of a script does."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def ticks(plan: Plan) -> int:
    try:
        return int((Path(plan.run.folder) / "checkpoints" / "n").read_text() or 0)
    except FileNotFoundError:
        return 0


def test_what_befalls_a_start(backend: LocalBackend, plan: Planner) -> None:
    """What ends a start through no fault of its own, and what must not end it. Side by side: each takes seconds."""
    told = "trap 'date >> \"$YURT_OUTPUTS/told\"' USR1 USR2; "
    names = ("hangs", "errs", "frozen", "group", "every")
    # A lease that also a busy machine keeps.
    made = {name: plan("sh", "-c", told + TICKS, "sh", "130", limit=90, lease=12) for name in names}
    for each in made.values():
        submit(backend, each)
    for each in made.values():
        eventually(lambda each=each: ticks(each) >= 3)  # type: ignore[misc]
    (beats,) = family(backend, made["hangs"])["beats"]
    os.kill(beats, signal.SIGSTOP)  # as in a rename that does not come back
    for token in Path(made["errs"].run.folder).glob("beat.1.*"):
        token.unlink()
    frozen = family(backend, made["frozen"])["all"]
    for pid in frozen:  # as Slurm does with what it suspends
        signalled(pid, signal.SIGSTOP)
    os.killpg(int(look(backend, made["group"]).job), signal.SIGUSR2)  # as scancel --full does
    found = family(backend, made["every"])
    for pid in (*found["beats"], *found["timers"], *found["job"]):
        signalled(pid, signal.SIGUSR1)
    time.sleep(8)
    for pid in frozen:
        signalled(pid, signal.SIGCONT)
    for name, each in made.items():
        status = follow(backend, each)
        again = name in ("hangs", "errs")
        assert (status.state, status.restarts) == ("completed", int(again)), (name, status)
        assert read(backend, each, "end.1").startswith("137 lost " if again else "0 done "), name
        assert bool(read(backend, each, "outputs/told")) == (name in ("group", "every")), name


def test_what_fails_on_every_disk_is_not_started_for_ever(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", 'rm -f "$YURT_RUN_DIR"/beat.*; sleep 60', limit=60, requeues=0, retries=1)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("node_failed", 1), status


def test_timers_end_with_what_they_were_for(backend: LocalBackend, plan: Planner) -> None:
    made = [plan("true", limit=limit) for limit in range(987, 999)]
    for each in made:
        submit(backend, each)
    for each in made:
        assert follow(backend, each).state == "completed"
    time.sleep(0.3)
    left = [
        words
        for folder in Path("/proc").glob("[0-9]*")
        if (words := _words(folder)) and words[0] == "sleep" and words[-1] in {str(each) for each in range(980, 1000)}
    ]
    assert left == []


def _words(folder: Path) -> list[str]:
    try:
        return (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def test_a_disk_without_hard_links_and_a_folder_of_a_strange_name(
    tmp_path: Path, plan: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate, the fence and the beats hold there too."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ln").write_text('#!/bin/sh\n[ "$1" = -s ] && exec /bin/ln "$@"\nexit 1\n')
    (tmp_path / "bin" / "ln").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / 'it\'s $(a) "day" *'))
    backend = LocalBackend(LocalHost(), tmp_path / "slots")
    made = plan("sh", "-c", 'date >> "$YURT_OUTPUTS/x"; [ "$YURT_RESTARTS" -eq 2 ] || exit 85', limit=60)
    lost = plan("sh", "-c", '[ "$YURT_RESTARTS" -eq 1 ] || { rm -f "$YURT_RUN_DIR"/beat.*; sleep 9; }', limit=60)
    for each in (made, lost):
        submit(backend, each)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("completed", 2), read(backend, made, "err.log")
    assert (Path(made.run.folder) / "end.1.d" / "text").read_text().startswith("85 limit ")
    status = follow(backend, lost)
    assert (status.state, status.restarts) == ("completed", 1), read(backend, lost, "err.log")
