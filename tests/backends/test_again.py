"""Restarts after the time limit, on this machine: saved work is neither lost nor repeated."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from yurt.backends import scripts
from yurt.backends.local.backend import LocalBackend
from yurt.backends.local.process import born
from yurt.clocks import clocks
from yurt.lifecycle.plan.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model.context import Context
from yurt.model.run import Plan, RestartPolicy, Status
from yurt.model.state import next_status
from yurt.testing.runs import Planner, follow, observe, read, ref, submit, submitted
from yurt.testing.waiting import eventually
from yurt.transport.local import LocalHost

COUNT = """\
step=$(cat "$YURT_CHECKPOINTS/step" 2> /dev/null || echo 0) signalled=
save() { echo "$step" > "$YURT_CHECKPOINTS/new" && mv "$YURT_CHECKPOINTS/new" "$YURT_CHECKPOINTS/step"; }
trap 'signalled=yes' USR1 TERM
while [ "$step" -lt 5 ] || [ "$YURT_RESTARTS" -lt "$1" ]; do
  sleep 0.1 & wait $!
  [ -z "$signalled" ] || { save; exit 85; }
  step=$((step + 1))
  echo "$step $YURT_RESTARTS" >> "$YURT_OUTPUTS/steps"
done
"""
"""Counts until it was restarted so many times, and saves when it receives a signal."""

SELDOM = """\
import os, sys, time
os.chdir(os.environ["YURT_CHECKPOINTS"])
step = int(open("step").read()) if os.path.exists("step") else 0
start, enough = int(os.environ["YURT_RESTARTS"]), step + 10
while step < enough or start < int(sys.argv[1]):
    time.sleep(0.02)
    step += 1
    print(step, start, file=open(os.environ["YURT_OUTPUTS"] + "/steps", "a"))
    if step % 5 == 0:
        print(step, file=open("new", "w"))
        os.rename("new", "step")
"""
"""Counts until it was restarted so many times, and saves at intervals; it handles no signals."""


def goes_on_after(step: int) -> set[int]:
    """Return where SELDOM may resume after it was killed: the last step may not be saved yet."""
    return {step - step % 5 + 1, step - 4} if step % 5 == 0 else {step - step % 5 + 1}


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBackend:
    for kind in ("config", "data"):
        monkeypatch.setenv(f"YURT_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("YURT_LOCAL_CPUS", "8")
    (tmp_path / "proj").mkdir()
    monkeypatch.chdir(tmp_path / "proj")
    return LocalBackend(LocalHost(), tmp_path / "data" / "slots")


BEFORE = 60
"""Seconds that a run has for saving. Generous, for busy machines: no test waits for all of them."""

SOON = BEFORE + 2
"""A time limit whose signal comes after one or two seconds."""


@pytest.fixture
def plan(backend: LocalBackend) -> Planner:
    def make(*words: str, limit: int = 280, before: int = BEFORE, lease: int = 60, **policy: int | bool) -> Plan:
        wanted = RestartPolicy(**{"max_requeues": 5, "signal_before": before, **policy})  # type: ignore[arg-type]
        request = Request(words=words, restart_policy=wanted, snapshot=False, flags={"time": 5})
        made = planning(Context(name="local", type="local"), request).plan
        return msgspec.structs.replace(made, limit=limit, lease=lease)

    return make


def steps(plan: Plan) -> list[tuple[int, int]]:
    """Return (step, start) in order."""
    try:
        rows = (Path(plan.run.folder) / "outputs" / "steps").read_text().split("\n")
    except FileNotFoundError:
        return []
    return [(int(row.split()[0]), int(row.split()[1])) for row in rows if row]


def test_a_run_that_saves_on_the_signal_repeats_nothing(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", COUNT, "sh", "2", limit=SOON)
    submit(backend, made)
    status = follow(backend, made)
    done = steps(made)
    assert status.state == "completed" and status.restarts >= 2, read(backend, made, "err.log")
    assert [step for step, _start in done] == list(range(1, len(done) + 1)), done
    assert status.seconds and status.seconds >= status.restarts
    assert status.ended and status.started and status.ended - status.started >= status.seconds - 1


def test_a_run_without_signal_handler_repeats_only_unsaved_steps(backend: LocalBackend, plan: Planner) -> None:
    made = plan("python3", "-c", SELDOM, "1", limit=SOON)
    submit(backend, made)
    status = follow(backend, made)
    assert status.state == "completed" and status.restarts >= 1, status
    done = steps(made)
    for (before, start), (after, following) in pairwise(done):
        expected = {before + 1} if start == following else goes_on_after(before)
        assert after in expected, done
    assert done[-1][1] == status.restarts and len(done) >= 20


def test_a_run_that_saves_nothing_is_not_restarted_forever(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sleep", "60", limit=2, before=1)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("timeout", 1)
    assert status.reason.startswith("two consecutive starts saved nothing")


def test_the_maximum_of_requeues(backend: LocalBackend, plan: Planner) -> None:
    """Restarts at the time limit and restarts that the run requests both count."""
    command = 'date > "$YURT_CHECKPOINTS/$YURT_RESTARTS"; [ "$YURT_RESTARTS" -ge 2 ] || exit 85; exec sleep 60'
    made = plan("sh", "-c", command, limit=SOON, max_requeues=3)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("timeout", 3)
    assert status.reason == "it reached its time limit and the maximum number of restarts (--max-requeues)"


def test_it_may_ask_to_be_started_again(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", 'echo x >> "$YURT_OUTPUTS/x"; [ "$YURT_RESTARTS" -eq 2 ] || exit 85')
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts, read(backend, made, "outputs/x")) == ("completed", 2, "x\nx\nx\n")


def test_its_own_error_is_retried_only_with_retry_errors(backend: LocalBackend, plan: Planner) -> None:
    made, retried = (
        plan("sh", "-c", "echo $YURT_RESTARTS; exit 3", max_requeues=0, retries=2, retry_errors=errors)
        for errors in (False, True)
    )
    for each in (made, retried):
        submit(backend, each)
    assert (follow(backend, made).state, read(backend, made, "out.log")) == ("failed", "0\n")
    status = follow(backend, retried)
    assert (status.state, status.exit_code, read(backend, retried, "out.log")) == ("failed", 3, "0\n1\n2\n")


def test_exit_code_0_after_the_signal_completes_the_run(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", "trap 'exit 0' USR1; while :; do sleep 0.1; done", limit=SOON + 1)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("completed", 0)


def test_a_child_that_still_saves_is_waited_for(backend: LocalBackend, plan: Planner) -> None:
    """The shell around it handles no signals and dies of the first; its child gets time to save."""
    saves = "until [ -e $YURT_RUN_DIR/go ]; do sleep 0.1; done; echo saved > $YURT_CHECKPOINTS/state; exit 85"
    child = f'trap "{saves}" USR1; while :; do sleep 0.1; done'
    parent = f"[ ! -e $YURT_CHECKPOINTS/state ] || exit 0; bash -c '{child}'; true"
    made = plan("bash", "-c", parent, limit=SOON)
    folder = Path(made.run.folder)
    submit(backend, made)
    eventually((folder / "child.1").exists)
    eventually(lambda: born(int((folder / "child.1").read_text().split()[0])) is None)
    assert observe(backend, made).live == "running"
    (folder / "go").touch()
    status = follow(backend, made)
    assert (status.state, status.restarts, read(backend, made, "checkpoints/state")) == ("completed", 1, "saved\n")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_zombie_is_not_waited_for(shell: str) -> None:
    """If process 1 reaps late, processes that a command left behind are zombies for a while."""
    text = scripts.text("signals.sh", "job") + "child=$1\nif command_runs; then echo runs; else echo over; fi\n"

    def output(child: int) -> str:
        return subprocess.run([shell, "-c", text, "sh", str(child)], capture_output=True, text=True, check=True).stdout

    with subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE, start_new_session=True) as process:
        assert output(process.pid) == "runs\n"
        assert process.stdin is not None
        process.stdin.close()
        eventually(lambda: born(process.pid) is None)
        os.killpg(process.pid, 0)  # it still exists
        assert output(process.pid) == "over\n"
    assert output(process.pid) == "over\n"


@pytest.mark.parametrize("moment", ["checkpoints/x", "stopped.1", "end.1", "gen.2", "child.2"])
def test_cancelled_between_two_starts(backend: LocalBackend, plan: Planner, moment: str) -> None:
    """Cancel as soon as a file exists: while the first start runs, after its signal, after it finished, and so on."""
    made = plan("sh", "-c", 'date > "$YURT_CHECKPOINTS/x"; exec sleep 60', limit=SOON, max_requeues=50)
    submit(backend, made)
    eventually((Path(made.run.folder) / moment).exists, pause=0.001)
    backend.cancel(ref(made))
    assert follow(backend, made).state == "cancelled"
    eventually(lambda: observe(backend, made).live is None)


def goes_on(backend: LocalBackend, plan: Plan) -> Status:
    """Return the status that yurt derives for a run without a process."""
    status = submitted()
    for ahead in (0.0, clocks().settling + 1):
        status = next_status(status, observe(backend, plan), time.time() + ahead, plan.run.restart_policy)
    return status


def test_a_machine_that_was_switched_off(backend: LocalBackend, plan: Planner) -> None:
    """All processes of a run are killed together; the next start resumes from what it saved; starts never overlap."""
    made = plan("python3", "-c", SELDOM, "1", lease=6)
    submit(backend, made)
    eventually(lambda: len(steps(made)) >= 7)
    pid = int(observe(backend, made).job)
    child, _, _born = (Path(made.run.folder) / "child.1").read_text().partition(" ")
    os.kill(pid, signal.SIGKILL)
    os.killpg(int(child), signal.SIGKILL)
    eventually(lambda: observe(backend, made).live is None)
    status = goes_on(backend, made)
    assert (status.state, status.start) == ("waiting", 2)
    before = steps(made)
    submit(backend, made, start=2)
    submit(backend, made, start=2)
    assert follow(backend, made).state == "completed"
    done = steps(made)
    assert done[: len(before)] == before and {start for _step, start in before} == {0}
    resumed = done[len(before)][0]
    assert resumed in goes_on_after(before[-1][0])
    assert done[len(before) :] == [(step, 1) for step in range(resumed, resumed + 10)]


def family(backend: LocalBackend, plan: Plan) -> dict[str, list[int]]:
    """Return the processes of a run: job.sh, its heartbeats (children, the same program), timers of both, the command.

    The clock is the timers of job.sh itself: those of its heartbeats come and go.
    """
    job = int(observe(backend, plan).job)
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
    found: dict[str, list[int]] = {"job": [job], "beats": [], "timers": [], "clock": [], "all": sorted(own)}
    for pid in own - {job}:
        parent, words = parents[pid]
        if "yurt-timer" in words:
            found["timers"].append(pid)
            found["clock"] += [pid] if parent == job else []
        elif parent == job and " inside " not in words and " sample " not in words and "job.sh" in words:
            found["beats"].append(pid)
    return found


def send_signal(pid: int, number: signal.Signals) -> None:
    """Signal a process that may have exited since it was listed, such as a `sleep` of a script."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


RECORDS_SIGNALS = """\
trap 'date >> "$YURT_OUTPUTS/signals"' USR1 USR2
echo begun
until [ "$YURT_RESTARTS" -gt 0 ] || [ -e "$YURT_RUN_DIR/go" ] || [ ! -d "$YURT_RUN_DIR" ]; do sleep 0.1 & wait $!; done
"""
"""Runs until a file `go` exists, and exits immediately after a restart; records USR1 and USR2."""


def begun(backend: LocalBackend, plan: Planner, *, lease: int) -> Plan:
    """Return a running run with a heartbeat every sixth of its lease."""
    made = plan("sh", "-c", RECORDS_SIGNALS, lease=lease)
    submit(backend, made)
    eventually(lambda: read(backend, made, "out.log"))
    eventually(lambda: [len(family(backend, made)[kind]) for kind in ("beats", "clock")] == [1, 1])
    return made


def beats_on(plan: Plan) -> bool:
    """Return whether two more heartbeats come: one may have been under way. If not, the start has finished."""
    folder = Path(plan.run.folder)
    seen: set[str] = set()

    def twice() -> bool:
        seen.update(file.name for file in folder.glob("beat.1.[ab]"))
        return len(seen) == 2

    for _each in range(2):
        seen.clear()
        eventually(lambda: twice() or (folder / "end.1").exists())
    return not (folder / "end.1").exists()


def goes_on_undisturbed(backend: LocalBackend, plan: Plan, *, signalled: bool) -> None:
    """Release the run and check that its first start completes."""
    (Path(plan.run.folder) / "go").touch()
    status = follow(backend, plan)
    assert (status.state, status.restarts) == ("completed", 0), status
    assert read(backend, plan, "end.1").startswith("0 done ")
    assert bool(read(backend, plan, "outputs/signals")) == signalled


def is_started_again(backend: LocalBackend, plan: Plan) -> None:
    """Check that the run was lost and restarted."""
    status = follow(backend, plan)
    assert (status.state, status.restarts) == ("completed", 1), status
    assert read(backend, plan, "end.1").startswith("137 lost ")
    assert not read(backend, plan, "outputs/signals")


def test_a_start_whose_beats_hang_is_lost(backend: LocalBackend, plan: Planner) -> None:
    made = begun(backend, plan, lease=12)
    (beats,) = family(backend, made)["beats"]
    os.kill(beats, signal.SIGSTOP)  # like a rename that hangs
    is_started_again(backend, made)


def test_a_start_whose_beats_fail_is_lost(backend: LocalBackend, plan: Planner) -> None:
    made = begun(backend, plan, lease=12)

    def gone() -> bool:
        for token in Path(made.run.folder).glob("beat.1.*"):
            token.unlink(missing_ok=True)  # it may be renamed by now
        return bool(read(backend, made, "end.1"))

    eventually(gone)
    is_started_again(backend, made)


@pytest.mark.parametrize("longer", [0.8, 2.5])
@pytest.mark.slow("2.5")
def test_a_start_that_was_frozen_goes_on(backend: LocalBackend, plan: Planner, longer: float) -> None:
    """Frozen for longer than half a lease since its last heartbeat, after which it would be lost.

    Then it has two seconds for a heartbeat. On a machine too busy for one it is lost, correctly: try again.
    """
    for _attempt in range(3):
        made = begun(backend, plan, lease=13)
        frozen: list[int] = []
        while more := [pid for pid in family(backend, made)["all"] if pid not in frozen]:  # some are new
            for pid in more:  # as Slurm suspends a job
                send_signal(pid, signal.SIGSTOP)
            frozen += more
        last = max(file.stat().st_ctime for file in Path(made.run.folder).glob("beat.1.[ab]"))
        time.sleep(max(0.0, last + made.lease // 2 + longer - time.time()))
        for pid in frozen:
            send_signal(pid, signal.SIGCONT)
        if beats_on(made):
            break
    goes_on_undisturbed(backend, made, signalled=False)


def only_the_command_is_signalled(
    backend: LocalBackend, plan: Planner, send: Callable[[dict[str, list[int]]], None]
) -> None:
    """Check that a signal reaches the command, but neither its clock nor its heartbeat."""
    made = begun(backend, plan, lease=18)
    before = family(backend, made)
    send(before)
    eventually(lambda: read(backend, made, "outputs/signals"))
    assert beats_on(made), read(backend, made, "end.1")
    after = family(backend, made)
    assert (after["clock"], after["beats"]) == (before["clock"], before["beats"])
    goes_on_undisturbed(backend, made, signalled=True)


def test_a_signal_to_the_group_of_a_start(backend: LocalBackend, plan: Planner) -> None:
    """Like scancel --full."""
    only_the_command_is_signalled(backend, plan, lambda found: os.killpg(found["job"][0], signal.SIGUSR2))


def test_a_signal_to_every_process_of_a_start(backend: LocalBackend, plan: Planner) -> None:
    def send(found: dict[str, list[int]]) -> None:
        for pid in (*found["beats"], *found["timers"], *found["job"]):
            send_signal(pid, signal.SIGUSR1)

    only_the_command_is_signalled(backend, plan, send)


NO_BEATS = 'while :; do rm -f "$YURT_RUN_DIR"/beat.*; sleep 0.1; done'
"""Acts like a full disk; runs until it is killed."""


def test_a_run_that_fails_on_every_disk_is_not_restarted_forever(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", NO_BEATS, lease=6, max_requeues=0, retries=1)
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("node_failed", 1), status


def test_timers_end_with_the_run(backend: LocalBackend, plan: Planner) -> None:
    limits = range(987, 999)
    made = [plan("true", limit=limit) for limit in limits]
    for each in made:
        submit(backend, each)
    for each in made:
        assert follow(backend, each).state == "completed"
    clocks_of_these = {str(each) for each in range(limits[0] - BEFORE - 5, limits[-1] - BEFORE + 1)}

    def left() -> list[list[str]]:
        found = [_words(folder) for folder in Path("/proc").glob("[0-9]*")]
        return [words for words in found if words and words[0] == "sleep" and words[-1] in clocks_of_these]

    eventually(lambda: left() == [])


def _words(folder: Path) -> list[str]:
    try:
        return (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def test_a_disk_without_hard_links_and_a_folder_of_a_strange_name(
    tmp_path: Path, plan: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate, the fence and the heartbeat work there too."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ln").write_text('#!/bin/sh\n[ "$1" = -s ] && exec /bin/ln "$@"\nexit 1\n')
    (tmp_path / "bin" / "ln").chmod(0o755)

    def no_link(*_paths: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / 'it\'s $(a) "day" *'))
    backend = LocalBackend(LocalHost(), tmp_path / "slots")
    made = plan("sh", "-c", 'date >> "$YURT_OUTPUTS/x"; [ "$YURT_RESTARTS" -eq 2 ] || exit 85')
    lost = plan("sh", "-c", f'[ "$YURT_RESTARTS" -eq 1 ] && exit; {NO_BEATS}', lease=6)
    for each in (made, lost):
        submit(backend, each)
    status = follow(backend, made)
    assert (status.state, status.restarts) == ("completed", 2), read(backend, made, "err.log")
    assert (Path(made.run.folder) / "end.1.d" / "text").read_text().startswith("85 limit ")
    status = follow(backend, lost)
    assert (status.state, status.restarts) == ("completed", 1), read(backend, lost, "err.log")
