"""The suite every Backend must pass. Subclass it in a test module and give it fixtures of class scope:

`backend`, the backend of a context, and `plan`, which makes a plan for it:
plan(*command, **fields of yurt.lifecycle.plan.plan.Request), without code unless it is asked for.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from yurt.backends.base import Backend, CodeParcel, Placed
from yurt.clocks import clocks
from yurt.model.run import Plan, RunRef, Status
from yurt.model.state import ATTEMPTS, CANCELLED, Ending, Observation, next_status
from yurt.testing.waiting import eventually

Planner = Callable[..., Plan]

VALUE = 'it\'s "$HOME" `id`\n\ttwo lines \\ ü'

TICKING = 'while :; do echo . >> "$YURT_OUTPUTS/alive"; sleep 0.1; done;'
"""Shows for ever that it is alive."""

STUBBORN = f"""\
trap '' TERM
sh -c 'trap "" TERM; {TICKING}' &
wait
"""
"""Neither the command nor its child ends when it is asked to."""

PATIENT = 'echo begun; until [ -e "$YURT_RUN_DIR/go" ] || [ ! -d "$YURT_RUN_DIR" ]; do sleep 0.1; done'
"""Runs until there is a file `go`, or its folder is gone."""


def ref(plan: Plan) -> RunRef:
    return RunRef(plan.run.id, plan.run.folder, plan.run.created)


def submit(backend: Backend, plan: Plan, *, start: int = 1) -> Placed:
    """One submission of a plan without code."""
    return backend.submit(plan, secrets.token_hex(4), CodeParcel(receiver=""), start=start)


def observe(backend: Backend, plan: Plan) -> Observation:
    return backend.observe([ref(plan)])[plan.run.id]


def submitted() -> Status:
    """How a run stands that went out just now, and would not be sent again."""
    return Status(state="queued", submitted=time.time(), attempts=ATTEMPTS)


def follow(backend: Backend, plan: Plan, *, seconds: float = 240) -> Status:
    """Look until a run has ended. What yurt would wait for late news of it is not waited for here."""
    status, deadline = submitted(), time.monotonic() + seconds
    while True:
        ahead = clocks().settling if status.missing_since else 0
        status = next_status(status, observe(backend, plan), time.time() + ahead)
        if status.final:
            return status
        assert time.monotonic() < deadline, f"after {seconds} s it is still {status}"
        time.sleep(0.2)


def read(backend: Backend, plan: Plan, name: str) -> str:
    """A file of a run folder; empty if it is not there."""
    return backend.host.run('cat -- "$1" 2> /dev/null', f"{plan.run.folder}/{name}").text


def listing(backend: Backend, plan: Plan) -> str:
    """Every file of a run folder with its mode, its content and the time of its last change."""
    script = 'cd "$1" && find . -exec stat -c "%a %Y %n" {} + | sort -k 3 && find . -type f -exec cksum {} + | sort'
    return backend.host.run(script, plan.run.folder).text


class BackendContract:
    """What submit, look and cancel promise, whatever kind of context it is."""

    @pytest.fixture(scope="class")
    @classmethod
    def ended(cls, backend: Backend, plan: Planner) -> Iterator[dict[str, tuple[Plan, Status]]]:
        """Runs of small commands, sent off together and seen to their end."""
        sh = ("sh", "-c")
        plans = {
            "plain": plan("true"),
            "code": plan(*sh, "exit 42"),
            "signal": plan(*sh, "kill -SEGV $$"),
            "absent": plan("no-such-program-anywhere"),
            "streams": plan(*sh, "echo one; echo two >&2; printf three; printf four >&2; cat"),
            "environment": plan(
                *sh,
                'env -0 > "$YURT_OUTPUTS/env"; cat "$YURT_PARAMS" > "$YURT_OUTPUTS/params"; pwd > "$YURT_OUTPUTS/pwd"',
                params={"lr": 0.1, "a.b-c": VALUE, "flag": True, "none": None, "list": [1, "two"]},
                flags={"variables": {"MINE": VALUE, "EMPTY": ""}},
                name="a name",
            ),
            "files": plan(
                *sh,
                'umask > "$YURT_OUTPUTS/umask"; umask 022; mkdir "$YURT_CHECKPOINTS/new"'
                ' && echo x > here-$$ && rm here-$$ && echo x > "$YURT_RUN_DIR/own"',
            ),
            "left": plan(*sh, f'{{ {TICKING} }} & until [ -s "$YURT_OUTPUTS/alive" ]; do sleep 0.1; done'),
        }
        for each in plans.values():
            submit(backend, each)
        yield {name: (each, follow(backend, each)) for name, each in plans.items()}
        for each in plans.values():
            backend.host.run('rm -rf -- "$1"', each.run.folder)

    @pytest.fixture
    def clean(self, backend: Backend) -> Iterator[list[Plan]]:
        """Plans of which nothing is left when the test is over."""
        plans: list[Plan] = []
        yield plans
        for each in plans:
            backend.cancel(ref(each))
            backend.host.run('rm -rf -- "$1"', each.run.folder)

    def test_from_submission_to_its_end(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("sh", "-c", PATIENT)
        clean.append(made)
        placed = submit(backend, made)
        assert placed.job and not placed.winner and placed.needs is None
        eventually(lambda: observe(backend, made).live == "running")
        eventually(lambda: read(backend, made, "out.log") == "begun\n")
        seen = observe(backend, made)
        assert seen.ending is None and seen.record is None and seen.node and seen.started
        assert next_status(submitted(), seen, time.time()).state == "running"
        again = submit(backend, made)
        assert placed.job in (again.job, again.winner.partition(".")[2])
        backend.host.run(': > "$1"', f"{made.run.folder}/go")
        status = follow(backend, made)
        assert (status.state, status.exit_code, status.signal, status.reason) == ("completed", 0, None, "")
        ending = msgspec.json.decode(read(backend, made, "exit.json"), type=Ending)
        assert (ending.code, ending.signal, ending.cause, ending.restarts) == (0, 0, "", 0)
        assert ending.job == placed.job == status.job and ending.node
        assert made.run.created - 5 < ending.started <= ending.ended < time.time() + 5
        assert submit(backend, made).winner.endswith(f".{placed.job}")
        assert read(backend, made, "out.log") == "begun\n"

    def test_its_exit_code_is_kept(self, ended: dict[str, tuple[Plan, Status]]) -> None:
        said = {name: (status.state, status.exit_code, status.signal) for name, (_plan, status) in ended.items()}
        assert said["plain"] == ("completed", 0, None)
        assert said["code"] == ("failed", 42, None)
        assert said["signal"] == ("failed", 139, 11)
        assert said["absent"] == ("failed", 127, None)
        assert ended["signal"][1].reason == "killed by signal 11 (SEGV)"
        assert ended["code"][1].reason == "exit code 42"

    def test_what_it_wrote_is_kept_apart(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, status = ended["streams"]
        assert status.state == "completed"
        assert (read(backend, made, "out.log"), read(backend, made, "err.log")) == ("one\nthree", "two\nfour")
        assert "no-such-program-anywhere" in read(backend, ended["absent"][0], "err.log")

    def test_the_promised_variables(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, status = ended["environment"]
        assert status.state == "completed"
        words = read(backend, made, "outputs/env").split("\0")
        there = dict(word.split("=", 1) for word in words if word)
        folder = made.run.folder
        assert there["YURT_RUN_ID"] == made.run.id and there["YURT_CONTEXT"] == made.run.context
        assert there["YURT_RUN_DIR"] == folder and there["YURT_RESTARTS"] == "0"
        assert there["YURT_OUTPUTS"] == f"{folder}/outputs" and there["YURT_CHECKPOINTS"] == f"{folder}/checkpoints"
        assert there["YURT_PARAMS"] == f"{folder}/params.json"
        assert json.loads(read(backend, made, "outputs/params")) == made.run.params
        own = {name: value for name, value in there.items() if name.startswith("YURT_PARAM_")}
        assert own == {
            "YURT_PARAM_LR": "0.1",
            "YURT_PARAM_A_B_C": VALUE,
            "YURT_PARAM_FLAG": "true",
            "YURT_PARAM_LIST": '[1,"two"]',
        }
        assert (there["MINE"], there["EMPTY"]) == (VALUE, "")

    def test_modes_of_files(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        """The user's umask is kept for the user's files; yurt's own are for their eyes only."""
        made, status = ended["files"]
        assert status.state == "completed", read(backend, made, "err.log")
        usual = backend.host.run("umask").text.strip()
        assert int(read(backend, made, "outputs/umask"), 8) == int(usual, 8)
        script = 'cd "$1" && find . -maxdepth 1 ! -type l -printf "%m %P\\n"; stat -c "%a new" checkpoints/new'
        lines = [line.partition(" ") for line in backend.host.run(script, made.run.folder).text.splitlines()]
        modes = {name: int(mode, 8) for mode, _, name in lines}
        theirs = {"own": 0o644, "new": 0o755}
        assert {name: modes.pop(name) for name in theirs} == theirs
        for name in ("work", "outputs", "checkpoints"):
            modes.pop(name, None)
        assert {name: mode & 0o077 for name, mode in modes.items()} == dict.fromkeys(modes, 0)
        assert {"", "job.sh", "data", "run.json", "exit.json", "winner", "gen.1", "out.log", "err.log"} <= set(modes)

    def test_nothing_is_left_running(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, status = ended["left"]
        assert status.state == "completed" and read(backend, made, "outputs/alive")
        assert _still(lambda: read(backend, made, "outputs/alive")), "what the command left behind goes on"

    def test_cancel_ends_all_of_it(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = msgspec.structs.replace(plan("bash", "-c", STUBBORN), grace=1)
        clean.append(made)
        submit(backend, made)
        eventually(lambda: read(backend, made, "outputs/alive"))
        winner = backend.cancel(ref(made))
        assert winner == backend.cancel(ref(made)) == read(backend, made, "winner").strip() != CANCELLED
        status = follow(backend, made)
        assert (status.state, status.exit_code in (None, 137, 143)) == ("cancelled", True), status
        eventually(lambda: _still(lambda: read(backend, made, "outputs/alive")))
        assert backend.cancel(ref(made)) == winner
        assert follow(backend, made).state == "cancelled"

    def test_cancel_before_it_was_submitted(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("sh", "-c", 'echo ran > "$YURT_RUN_DIR/ran"')
        clean.append(made)
        assert backend.cancel(ref(made)) == CANCELLED
        assert backend.cancel(ref(made)) == CANCELLED
        assert submit(backend, made).winner == CANCELLED
        status = follow(backend, made)
        assert (status.state, status.reason) == ("cancelled", "cancelled before it started")
        assert observe(backend, made).live is None, "a job of it is there"
        assert read(backend, made, "ran") == ""

    def test_a_job_that_starts_though_its_run_was_cancelled(
        self, backend: Backend, plan: Planner, clean: list[Plan]
    ) -> None:
        """As after a scancel that was lost: the gate keeps it from starting anything."""
        made = plan("sh", "-c", 'echo started >> "$YURT_RUN_DIR/ledger"')
        clean.append(made)
        submit(backend, made)
        assert follow(backend, made).state == "completed"
        late = 'cd "$1" && rm -f gen.* end.* exit.json ledger winner && echo cancelled > winner && sh job.sh late'
        done = backend.host.run(f"{late}; ls gen.1 ledger 2> /dev/null; cat winner", made.run.folder)
        assert done.text == "cancelled\n"

    def test_submitted_three_times_at_once_it_starts_once(
        self, backend: Backend, plan: Planner, clean: list[Plan]
    ) -> None:
        made = plan("sh", "-c", 'echo started; echo $$ >> "$YURT_RUN_DIR/ledger"; sleep 1')
        clean.append(made)
        with ThreadPoolExecutor(3) as pool:
            placed = list(pool.map(lambda _each: submit(backend, made), range(3)))
        assert all(each.job for each in placed)
        assert follow(backend, made).state == "completed"
        eventually(lambda: observe(backend, made).live is None)
        assert submit(backend, made).winner
        assert len(read(backend, made, "ledger").splitlines()) == 1
        assert read(backend, made, "out.log") == "started\n" and read(backend, made, "err.log") == ""

    def test_a_run_never_submitted(self, backend: Backend, plan: Planner) -> None:
        made = plan("true")
        seen = observe(backend, made)
        assert (seen.live, seen.record, seen.ending, seen.winner, seen.generation) == (None, None, None, "", 0)
        assert backend.observe([]) == {}

    def test_job_sh_by_hand(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, _status = ended["streams"]
        before = listing(backend, made)
        done = backend.host.run('cd / && sh "$1/job.sh" < /dev/null', made.run.folder)
        assert (done.code, done.out, done.err) == (0, b"one\nthree", b"two\nfour")
        assert listing(backend, made) == before
        assert backend.host.run('sh "$1/job.sh"', ended["code"][0].run.folder).code == 42
        there = backend.host.run('sh "$1/job.sh"; cat "$1/outputs/env"', ended["environment"][0].run.folder).text
        assert "YURT_RESTARTS=0" in there.split("\0")

    def test_a_run_whose_folder_is_gone(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        """It must not start a second time: nobody knows how far it was."""
        made, other = plan("sh", "-c", PATIENT), plan("true")
        clean += [made, other]
        for each in (made, other):
            submit(backend, each)
        eventually(lambda: read(backend, made, "out.log"))
        eventually(lambda: observe(backend, made).live == "running")
        queued = Status(state="queued", submitted=time.time(), attempts=1)
        status = next_status(queued, observe(backend, made), time.time())
        backend.host.run(': > "$1/go"; until [ -e "$1/exit.json" ]; do sleep 0.1; done', made.run.folder)
        backend.host.run('rm -rf -- "$1"', made.run.folder)
        eventually(lambda: observe(backend, made).live is None)
        for late in (0, 5, 15, 70, 140):
            status = next_status(status, observe(backend, made), time.time() + late)
            assert status.state != "waiting", status
        assert status.state == "completed" or (status.state == "lost" and "its folder is gone" in status.reason)
        assert follow(backend, other).state == "completed", "its neighbour is none the worse"

    @pytest.mark.skipif(not os.environ.get("SLOW_TESTS"), reason="takes more than a minute: SLOW_TESTS=1")
    def test_over_its_time_limit(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("sleep", "300", flags={"time": 1})
        clean.append(made)
        submit(backend, made)
        status = follow(backend, made)
        assert (status.state, status.reason) == ("timeout", "it reached its time limit")


def _still(what: Callable[[], str]) -> bool:
    """Whether something that would change ten times a second stays as it is."""
    before = what()
    time.sleep(0.7)
    return what() == before
