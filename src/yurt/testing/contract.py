"""The test suite that every Backend must pass; it uses only the protocols.

Subclass it in a test module and define fixtures of class scope: `backend`, the backend of a context, and `plan`, which
makes a plan for it: plan(*command, **fields of yurt.lifecycle.plan.request.Request), without code by default.

shell_contract.ShellContract adds tests for contexts with sh and a shared disk.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from yurt.backends.answers import CodeParcel
from yurt.backends.base import Backend
from yurt.lifecycle.outbox.deliver import parcel, place
from yurt.model import layout
from yurt.model.files import NOTHING, Ended, Limits, LogPosition, Pick, Pull
from yurt.model.growth import Known
from yurt.model.run import Plan, Run, Status
from yurt.model.site_words import NodeName
from yurt.model.state import CANCELLED, Ending, next_status
from yurt.testing.runs import (
    LISTENS,
    PATIENT,
    STUBBORN,
    TICKING,
    VALUE,
    Planner,
    follow,
    grown,
    inside,
    let_go,
    observe,
    read,
    ref,
    submit,
    submitted,
)
from yurt.testing.waiting import eventually


class BackendContract:
    """The contract of the capabilities of any kind of context."""

    @pytest.fixture(scope="class")
    @classmethod
    def ended(cls, backend: Backend, plan: Planner) -> Iterator[dict[str, tuple[Plan, Status]]]:
        """Finished runs of small commands, submitted together."""
        sh = ("sh", "-c")
        plans = {
            "plain": plan("true"),
            "code": plan(*sh, "exit 42"),
            "large code": plan(*sh, "exit 255"),
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
            backend.files.remove([each.run.folder])

    @pytest.fixture
    def clean(self, backend: Backend) -> Iterator[list[Plan]]:
        """Plans whose runs are cancelled and removed after the test."""
        plans: list[Plan] = []
        yield plans
        for each in plans:
            backend.runs.cancel(ref(each))
            backend.files.remove([each.run.folder])

    def test_a_run_from_submission_to_completion(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
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
        let_go(backend, made)
        status = follow(backend, made)
        assert (status.state, status.exit_code, status.signal, status.reason) == ("completed", 0, None, "")
        ending = msgspec.json.decode(read(backend, made, "exit.json"), type=Ending)
        assert (ending.code, ending.signal, ending.cause, ending.restarts) == (0, 0, "", 0)
        assert ending.job == placed.job == status.job and ending.node
        assert made.run.created - 5 < ending.started <= ending.ended < time.time() + 5
        assert submit(backend, made).winner.endswith(f".{placed.job}")
        assert read(backend, made, "out.log") == "begun\n"

    def test_exit_codes(self, ended: dict[str, tuple[Plan, Status]]) -> None:
        results = {name: (status.state, status.exit_code, status.signal) for name, (_plan, status) in ended.items()}
        assert results["plain"] == ("completed", 0, None)
        assert results["code"] == ("failed", 42, None)
        assert results["large code"] == ("failed", 255, None)
        assert results["signal"] == ("failed", 139, 11)
        assert results["absent"] == ("failed", 127, None)
        assert ended["signal"][1].reason == "killed by signal 11 (SEGV)"
        assert (ended["code"][1].reason, ended["large code"][1].reason) == ("exit code 42", "exit code 255")

    def test_output_and_errors_are_separate(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, status = ended["streams"]
        assert status.state == "completed"
        assert (read(backend, made, "out.log"), read(backend, made, "err.log")) == ("one\nthree", "two\nfour")
        assert "no-such-program-anywhere" in read(backend, ended["absent"][0], "err.log")

    def test_the_promised_variables(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, status = ended["environment"]
        assert status.state == "completed"
        entries = read(backend, made, "outputs/env").split("\0")
        there = dict(entry.split("=", 1) for entry in entries if entry)
        folder = there["YURT_RUN_DIR"]
        assert there["YURT_RUN_ID"] == made.run.id and there["YURT_CONTEXT"] == made.run.context
        assert there["YURT_RESTARTS"] == "0"
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

    def test_nothing_is_left_running(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, status = ended["left"]
        assert status.state == "completed" and read(backend, made, "outputs/alive")
        assert stays(lambda: read(backend, made, "outputs/alive")), (
            "a process that the command left behind is still running"
        )

    def test_cancel_kills_all_processes(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = msgspec.structs.replace(plan("bash", "-c", STUBBORN), grace=1)
        clean.append(made)
        submit(backend, made)
        eventually(lambda: read(backend, made, "outputs/alive"))
        winner = backend.runs.cancel(ref(made))
        assert winner == backend.runs.cancel(ref(made)) == read(backend, made, "winner").strip() != CANCELLED
        status = follow(backend, made)
        assert (status.state, status.exit_code in (None, 137, 143)) == ("cancelled", True), status
        eventually(lambda: stays(lambda: read(backend, made, "outputs/alive")))
        assert backend.runs.cancel(ref(made)) == winner
        assert follow(backend, made).state == "cancelled"

    def test_cancel_before_it_was_submitted(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("sh", "-c", 'echo ran > "$YURT_RUN_DIR/ran"')
        clean.append(made)
        assert backend.runs.cancel(ref(made)) == CANCELLED
        assert backend.runs.cancel(ref(made)) == CANCELLED
        assert submit(backend, made).winner == CANCELLED
        status = follow(backend, made)
        assert (status.state, status.reason) == ("cancelled", "cancelled before it started")
        assert observe(backend, made).live is None, "the run has a job"
        assert read(backend, made, "ran") == ""

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

    @pytest.mark.usefixtures("ended")  # without any run, the storage is missing, as that on an unmounted disk
    def test_a_run_never_submitted(self, backend: Backend, plan: Planner) -> None:
        made = plan("true")
        seen = observe(backend, made)
        assert (seen.live, seen.record, seen.ending, seen.winner, seen.generation) == (None, None, None, "", 0)
        assert backend.runs.observe([]).runs == {}

    def test_logs_from_a_position_on(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        run = ended["streams"][0].run
        log = LogPosition(run.id, run.folder)
        found: dict[str, bytes] = {"out": b"", "err": b""}

        def sink(_log: LogPosition, which: str, part: bytes) -> None:
            found[which] += part

        backend.files.tail([log], sink)
        assert found == {"out": b"one\nthree", "err": b"two\nfour"} and (log.out, log.err) == (9, 8)
        backend.files.tail([log], sink, follow=True)
        assert found == {"out": b"one\nthree", "err": b"two\nfour"}, "output was repeated"
        last = LogPosition(run.id, run.folder)
        found |= {"out": b"", "err": b""}
        backend.files.tail([last], sink, lines=1)
        assert found == {"out": b"three", "err": b"four"}
        gone = LogPosition("x", f"{run.folder}-not-there")
        backend.files.tail([gone], sink)
        assert gone.gone and not log.gone

    def test_logs_of_several(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        names = ("streams", "code", "plain")
        logs = [LogPosition(ended[each][0].run.id, ended[each][0].run.folder, over=True) for each in names]
        found: dict[tuple[str, str], bytes] = {}

        def sink(log: LogPosition, which: str, part: bytes) -> None:
            found[log.run, which] = found.get((log.run, which), b"") + part

        over: list[str] = []
        backend.files.tail(logs, sink, on_end=lambda log: over.append(log.run))
        first = logs[0].run
        assert found == {(first, "out"): b"one\nthree", (first, "err"): b"two\nfour"}
        assert sorted(over) == sorted(log.run for log in logs) and all(log.done for log in logs)
        alone = LogPosition(first, logs[0].folder, over=True)
        backend.files.tail([alone], sink, on_end=lambda log: over.append(log.run))
        assert alone.done and over[-1] == first, "one log must behave like several"

    def test_collect_a_finished_run(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("sh", "-c", "echo out; echo err >&2; exit 3")
        clean.append(made)
        submit(backend, made)
        follow(backend, made)
        limits = Limits(trip=1 << 20, seconds=20, log=1 << 16, metrics=1 << 16, metrics_head=1 << 10, files=9)
        asked = [Ended(made.run.folder, '{"state":"failed"}'), Ended(f"{made.run.folder}-not-there", "{}")]
        found = backend.files.collect(asked, limits, content=True, timeout=60)
        assert set(found) <= {0, 1} and "there" not in found.get(1, {})
        kept = found[0]
        assert (kept["out"].content, kept["err"].content, kept["out"].size) == (b"out\n", b"err\n", 4)
        assert msgspec.json.decode(kept["exit.json"].content, type=Ending).code == 3
        assert kept["status.json"].content.strip() == b'{"state":"failed"}'
        again = backend.files.collect([Ended(made.run.folder, '{"state":"lost"}')], limits, content=True, timeout=60)
        assert again[0]["status.json"].content.strip() == b'{"state":"failed"}', "the first verdict must stay"

    def test_files_that_grow(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        begin = 'mkdir "$YURT_OUTPUTS/tb"; printf 12345 > "$YURT_OUTPUTS/tb/tfevents.1"'
        logged = 'echo "{}" > "$YURT_RUN_DIR/metrics.jsonl"'
        made = plan("sh", "-c", f"{begin}; {logged}; {PATIENT}")
        clean.append(made)
        submit(backend, made)
        eventually(lambda: read(backend, made, "out.log"))
        first = grown(backend, made, [])
        events = f"{layout.OUTPUTS}/tb/tfevents.1"
        assert {path: content for path, (_start, content, _seen) in first.items()} == {
            events: b"12345",
            layout.METRICS: b"{}\n",
        }
        known = [Known(path, len(content), seen) for path, (_start, content, seen) in first.items()]
        assert grown(backend, made, known) == {}, "nothing has changed"
        assert inside(backend, made, "sh", "-c", 'printf 678 >> "$YURT_OUTPUTS/tb/tfevents.1"') == 0
        (start, content, _seen) = grown(backend, made, known)[events]
        assert start <= 5 and b"12345678"[start:] == content
        let_go(backend, made)
        assert follow(backend, made).state == "completed"
        assert layout.EXIT in grown(backend, made, [])

    def test_fetch_results(self, backend: Backend, ended: dict[str, tuple[Plan, Status]], tmp_path: Path) -> None:
        one, two = ended["environment"][0].run, ended["plain"][0].run
        there = backend.files.contents([one.folder, two.folder, f"{one.folder}-not-there"])
        assert set(there) == {one.folder, two.folder} and there[one.folder].ended
        assert there[one.folder].measures.outputs.split(":")[0] == "3" and there[two.folder].measures.outputs == NOTHING
        target = tmp_path / "one"
        target.mkdir()
        _way, came = backend.files.pull(
            [Pull(one.folder, "one")], target, Pick(), lambda _size, _percent: None, everything=False
        )
        assert sorted(each.name for each in target.iterdir()) == ["env", "params", "pwd"] and came.files == 3
        _way, came = backend.files.pull(
            [Pull(one.folder, "one")], target, Pick(), lambda _size, _percent: None, everything=False
        )
        assert (came.files, came.matched) == (0, 3), "existing files were copied again"
        both = [Pull(one.folder, "a"), Pull(ended["left"][0].run.folder, "b")]
        for each in both:
            (tmp_path / each.name).mkdir()
        _way, came = backend.files.pull(both, tmp_path, Pick(["env", "alive"]), lambda *_now: None, everything=False)
        assert (tmp_path / "a" / "env").exists() and (tmp_path / "b" / "alive").exists()
        assert not (tmp_path / "a" / "pwd").exists() and set(came.below) == {"a", "b"}

    def test_list_runs_of_other_machines(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        run = ended["code"][0].run
        base = run.folder.partition("/projects/")[0]
        assert backend.files.list_runs(f"{base}-not-there") is None
        listed = backend.files.list_runs(base)
        assert listed is not None and run.folder in listed
        came, asked = backend.files.gather([run.folder])
        found = came[run.folder]
        assert asked == 1 and found is not None and found.starts == 1 and found.text("winner")
        assert msgspec.json.decode(found.files["run.json"], type=Run) == run
        assert msgspec.json.decode(found.files["exit.json"], type=Ending).code == 42

    def test_remove(self, backend: Backend, plan: Planner) -> None:
        made = plan("sh", "-c", 'echo x > "$YURT_OUTPUTS/x"')
        submit(backend, made)
        follow(backend, made)
        folder = made.run.folder
        (there,) = backend.files.survey([folder])
        assert there.what == "there" and there.measures.outputs.split(":")[:2] == ["1", "2"]
        assert backend.files.remove([folder]).gone == [made.run.id]
        assert [each.what for each in backend.files.survey([folder])] == ["gone"]
        assert backend.files.read(folder, "run.json") is None and backend.files.contents([folder]) == {}

    def test_a_command_inside_a_run(
        self, backend: Backend, plan: Planner, clean: list[Plan], capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        made = plan("sh", "-c", PATIENT, params={"lr": 0.5})
        clean.append(made)
        submit(backend, made)
        eventually(lambda: observe(backend, made).live == "running")
        eventually(lambda: read(backend, made, "out.log"))
        capfdbinary.readouterr()
        assert inside(backend, made, "sh", "-c", 'echo "$YURT_RUN_ID $YURT_PARAM_LR"; exit 7') == 7
        assert capfdbinary.readouterr().out == f"{made.run.id} 0.5\n".encode()
        let_go(backend, made)
        assert follow(backend, made).state == "completed"

    def test_a_port_of_a_run(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("python3", "-c", LISTENS)
        clean.append(made)
        submit(backend, made)
        eventually(lambda: read(backend, made, "out.log").strip().isdigit())
        seen, port = observe(backend, made), int(read(backend, made, "out.log"))
        with (
            backend.forward.forward(NodeName(seen.node), port) as here,
            socket.create_connection(("127.0.0.1", here), 30) as link,
        ):
            assert link.makefile("rb").read() == b"hello from the run"
        assert follow(backend, made).state == "completed"

    def test_an_item_of_a_race_has_one_holder(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("true")
        clean.append(made)
        base = made.project_folder.rpartition("/projects/")[0]
        folder, ours = layout.race(base, f"test-{secrets.token_hex(4)}"), backend.claims
        ours.open(folder)
        assert ours.holders(folder) == {}
        with ThreadPoolExecutor(4) as pool:
            held = list(pool.map(lambda each: ours.claim(folder, 0, f"run-{each}"), range(4)))
        assert len(set(held)) == 1 and ours.holders(folder) == {0: held[0]}
        assert ours.claim(folder, 7, "run-9") == "run-9"
        assert ours.end(folder, 0, "test") == held[0] and ours.holders(folder) == {7: "run-9"}
        assert ours.end(folder, 0, "test") == "", "nobody holds it now"
        assert ours.claim(folder, 0, "run-5") == "run-5" == ours.claim(folder, 0, held[0])
        assert not ours.give_up(folder, 0, "run-6", "test") and ours.give_up(folder, 0, "run-5", "test")
        assert ours.holders(folder) == {7: "run-9"} and ours.claim(folder, 0, "run-6") == "run-6"
        ours.close(folder)
        ours.close(folder)
        assert ours.claim(folder, 0, "run-6") == "", "a late job does not start the race again"

    def test_code(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        """Code is uploaded once, with the run or before it."""
        Path("hello.txt").write_text(secrets.token_hex(8))
        made = plan("cat", "hello.txt", snapshot=True)
        clean.append(made)
        assert place(made, backend.runs, secrets.token_hex(4), [], hope=True, start=1, shares=None).job
        status = follow(backend, made)
        assert (status.state, read(backend, made, "out.log")) == ("completed", Path("hello.txt").read_text())
        asked: list[Sequence[str]] = []

        def make(known: Sequence[str]) -> CodeParcel:
            asked.append(known)
            return parcel(other, known)

        assert backend.code.ensure(made.project_folder, made.run.code.tree, make) == 0 and not asked
        Path("hello.txt").write_text("changed")
        other = plan("cat", "hello.txt", snapshot=True)
        clean.append(other)
        assert backend.code.ensure(other.project_folder, other.run.code.tree, make) > 0 and asked
        assert backend.code.ensure(other.project_folder, other.run.code.tree, make) == 0 and len(asked) == 1
        placed = backend.runs.submit(other, secrets.token_hex(4), CodeParcel())
        assert placed.job and placed.needs is None, "the code was uploaded before"
        assert follow(backend, other).state == "completed" and read(backend, other, "out.log") == "changed"

    @pytest.mark.skipif(not os.environ.get("SLOW_TESTS"), reason="needs `make test SLOW=1`")
    def test_over_its_time_limit(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("sleep", "300", flags={"time": 1})
        clean.append(made)
        submit(backend, made)
        status = follow(backend, made)
        assert (status.state, status.reason) == ("timeout", "it reached its time limit")


def stays(what: Callable[[], str]) -> bool:
    """Return whether a value that would change ten times a second stays the same."""
    before = what()
    time.sleep(0.7)
    return what() == before
