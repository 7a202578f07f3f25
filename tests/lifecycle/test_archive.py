"""The local copy of a finished run: its final status, its metrics, the ends of its logs, even if its folder is gone."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.user import User, said
from yurt.backends.job import frames
from yurt.backends.shell.files import ShellFiles
from yurt.lifecycle.files import metrics
from yurt.lifecycle.refresh import archive
from yurt.model import ids
from yurt.model.files import Piece
from yurt.model.run import Run, Status
from yurt.model.state import Ending
from yurt.model.verdict import Verdict, adopt, read_verdict, verdict_of
from yurt.store import Entry, Store
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually
from yurt.transport.base import Answer
from yurt.transport.local import LocalHost

METRICS = '{"time":1,"step":1,"loss":0.5,"lr":0.1}\n{"time":2,"step":2,"loss":0.25}\n{"time":3,"lo'


def ran(user: User, script: str, code: int = 0) -> dict[str, Any]:
    done = user.quick("--json", "run", "--wait", "sh", "-c", script)
    assert done.code == code, done
    run: dict[str, Any] = done.json["data"]["run"]
    return run


def shown(user: User, run: str, *more: str) -> dict[str, Any]:
    data: dict[str, Any] = user.quick("show", run, "--json", *more).json["data"]
    return data


def index(user: User) -> Store:
    return Store(str(user.home / "data" / "yurt.db"))


def purge(user: User) -> None:
    projects = user.home / "data" / "projects"
    os.system(f"chmod -R u+w '{projects}'")
    shutil.rmtree(projects)


def test_a_purge_does_not_erase_history(user: User) -> None:
    run = ran(
        user,
        f"echo written; printf 'half \\303\\274' >&2; printf '%s' '{METRICS}' > \"$YURT_RUN_DIR/metrics.jsonl\""
        '; echo 12345 > "$YURT_OUTPUTS/a"; echo 12345 > "$YURT_OUTPUTS/b c"; exit 3',
        code=1,
    )
    before = shown(user, run["id"])
    assert before["on_site"]["there"] is True
    assert before["on_site"]["parts"]["outputs"] == {"files": 2, "bytes": 12}
    assert before["on_site"]["parts"]["out.log"] == {"files": 1, "bytes": 8}
    files = [{"path": f"outputs/{name}", "bytes": 6} for name in ("a", "b c")]
    assert before["on_site"]["files"] == files and shown(user, run["id"], "--cached")["on_site"]["files"] == files
    assert before["metrics"] == [{"name": "loss", "value": 0.25, "step": 2}, {"name": "lr", "value": 0.1, "step": 1}]
    assert json.loads((Path(run["folder"]) / "status.json").read_text()) == before["status"]
    purge(user)
    after = shown(user, run["id"])
    assert after == {**before, "on_site": {"there": False, "parts": {}, "files": []}}
    text = user.quick("show", run["id"]).out
    assert "run folder not found" in text and "loss: 0.25  (step 2)" in text
    logs = user.quick("logs", run["id"])
    assert (logs.code, logs.out) == (0, "written\n")
    assert logs.err == "half ü\nyurt: warning: the run folder on local is gone; showing the local copy\n"
    assert user.quick("logs", "-f", run["id"]).out == "written\n"
    assert user.quick("logs", run["id"], "--out", "--tail", "1").out == "written\n"
    with index(user) as store:
        kept = store.kept(run["id"])
        assert (
            kept is not None
            and kept.err == "half ü".encode()
            and msgspec.json.decode(kept.ending, type=Ending).code == 3
        )
    with index(user) as store:
        store._db.execute("DELETE FROM mirror")
    assert "has no logs on local: its state is failed" in said(user.quick("logs", run["id"]), 3), "if nothing is saved"


def test_only_the_end_of_large_files_is_kept(user: User) -> None:
    lines = 'awk \'BEGIN { for (i = 0; i < 60000; i++) print "{\\"step\\":" i ",\\"loss\\":" i "}" }\''
    once = '{"early":1}'
    run = ran(user, f"seq 100000; {{ echo '{once}'; {lines}; }} > \"$YURT_RUN_DIR/metrics.jsonl\"")
    folder = Path(run["folder"])
    written, metrics = (folder / "out.log").read_bytes(), (folder / "metrics.jsonl").read_bytes()
    assert len(metrics) > archive.METRICS
    with index(user) as store:
        kept = store.kept(run["id"])
    assert kept is not None
    assert kept.out == written[-archive.LOG :] and kept.out_size == len(written)
    rest = archive.METRICS - archive.METRICS_HEAD
    assert kept.metrics == metrics[: archive.METRICS_HEAD] + b"\n" + metrics[-rest:]
    assert kept.metrics_size == len(metrics)
    assert shown(user, run["id"])["metrics"] == [
        {"name": "early", "value": 1, "step": None},
        {"name": "loss", "value": 59999, "step": 59999},
    ]
    purge(user)
    logs = user.quick("logs", run["id"])
    assert logs.out.endswith("\n100000\n") and len(logs.out) == archive.LOG
    assert "showing the last 64 KB of out.log from the local copy" in logs.err
    assert "66 KB of 589 KB of out.log, 1.0 MB of 1.7 MB of metrics.jsonl" in user.quick("show", run["id"]).out


def test_the_first_verdict_stays(user: User) -> None:
    """Another yurt recorded the final status first: this one adopts it."""
    run = user.quick("--json", "run", "sh", "-c", PATIENT + "; exit 7").json["data"]["run"]
    theirs = Verdict(
        state="failed", reason="theirs", native="FAILED", job="1", exit_code=7, result_bytes=5, result_files=6
    )
    (Path(run["folder"]) / "status.json").write_bytes(msgspec.json.encode(theirs) + b"\n")
    Path(run["folder"], "go").touch()
    assert user.quick("wait", run["id"]).code == 1
    assert shown(user, run["id"], "--cached")["status"] == msgspec.to_builtins(theirs)


def test_a_full_disk_on_the_site_keeps_the_local_status(user: User, tmp_path: Path) -> None:
    run = ran(user, "exit 7", code=1)
    folder = Path(run["folder"])
    (folder / "status.json").unlink()
    (folder / "status.json.d").mkdir()  # neither a link nor a renamed folder can take its place
    (folder / "status.json.d" / "x").touch()
    (folder / "no-links").touch()
    assert shown(user, run["id"])["status"]["reason"] == "exit code 7"


def test_a_copy_that_failed_is_retried_later(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = user.quick("--json", "run", "sh", "-c", PATIENT).json["data"]["run"]
    eventually(lambda: shown(user, run["id"])["status"]["state"] == "running")
    folder = Path(run["folder"])
    (folder / "go").touch()
    eventually((folder / "exit.json").exists)
    with index(user) as store:
        store.change([run["id"]], lambda _run, _status: Status(state="completed", attempts=1))
        folder.rename(folder.with_suffix(".away"))
        assert user.quick("ps", "--json").code == 0
        assert store.kept(run["id"]) is None
        folder.with_suffix(".away").rename(folder)
        assert user.quick("ps", "--json").code == 0
        assert store.kept(run["id"]) is None, "not retried immediately, but after a minute"
        assert store.to_mirror("local", time.time() + 59) == []
        assert store.to_mirror("local", time.time() + 61) == [run["id"]]
        store._db.execute("UPDATE to_mirror SET due = 0")
        assert user.quick("ps", "--json").code == 0
        kept = store.kept(run["id"])
        assert kept is not None and kept.out == b"begun\n"
        assert store.to_mirror("local", time.time() + 10**6) == []


class Counting(LocalHost):
    """This machine, with a count of the requests to it."""

    requests = 0

    def run(self, *arguments: Any, **more: Any) -> Answer:
        self.requests += 1
        return super().run(*arguments, **more)


def ended(folder: Path, number: int, *, size: int = 100) -> Entry:
    run_id = ids.make(1_800_000_000 + number, number * 7919)
    place = folder / run_id
    place.mkdir(parents=True)
    (place / "out.log").write_bytes(b"x" * size)
    (place / "err.log").touch()
    (place / "exit.json").write_text('{"code":0,"started":1,"ended":2}\n')
    run = Run(
        id=run_id,
        context="local",
        context_type="local",
        project="p",
        source="/",
        created=float(number),
        command=["true"],
        folder=str(place),
    )
    return Entry(run, Status(state="running", attempts=1))


def finish(store: Store, entries: list[Entry]) -> None:
    for entry in entries:
        store.add(entry.run, entry.status)
    store.change(
        [entry.run.id for entry in entries],
        lambda _run, status: msgspec.structs.replace(status, state="completed", exit_code=0),
    )


def test_one_request_for_many_runs_and_none_for_nothing(tmp_path: Path) -> None:
    host = Counting()
    with Store(str(tmp_path / "yurt.db")) as store:
        entries = [ended(tmp_path / "runs", number) for number in range(40)]
        finish(store, entries)
        archive.catch_up(store, "local", ShellFiles(host))
        assert host.requests == 1
        assert all(store.is_kept(entry.run.id) for entry in entries)
        assert {read_verdict((Path(entry.run.folder) / "status.json").read_bytes()) for entry in entries} == {
            Verdict(state="completed", exit_code=0)
        }
        archive.catch_up(store, "local", ShellFiles(host))
        assert host.requests == 1


def test_a_request_has_a_limit_and_the_rest_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "TRIP", 3 * archive.LOG)
    host = Counting()
    with Store(str(tmp_path / "yurt.db")) as store:
        entries = [ended(tmp_path / "runs", number, size=archive.LOG) for number in range(8)]
        finish(store, entries)
        for saved in (3, 6, 8):
            archive.catch_up(store, "local", ShellFiles(host))
            assert sum(store.is_kept(entry.run.id) for entry in entries) == saved
        assert host.requests == 3


def test_copies_are_not_requested_after_a_week(tmp_path: Path) -> None:
    with Store(str(tmp_path / "yurt.db")) as store:
        finish(store, [ended(tmp_path / "runs", 1)])
        assert store.contexts_to_mirror(time.time()) == ["local"]
        assert store.to_mirror("local", time.time() + 8 * 86400) == []
        assert store.contexts_to_mirror(time.time()) == []


@pytest.mark.parametrize(
    "cut", [b"", b"= 1\n", b"= 1\nout 5 5\nab", b"= 1\nout x 5\n", b"noise", b"= 1\nout 5 5\nabcde"]
)
def test_an_incomplete_answer_is_ignored(cut: bytes) -> None:
    assert list(frames.read(cut)) == []
    complete = b"= 1\nout 9 3\n\n.\n.\n"
    assert list(frames.read(complete + cut.replace(b"= 1", b"= 2"))) == [("1", {"out": Piece(9, b"\n.\n")})]


def test_exit_json_overrides_the_status_of_other_machines() -> None:
    lost = Verdict(state="lost", reason="the site no longer lists the job", native="X", job="7", ended=5.0)
    mine = Status(state="cancelled", reason="mine", seen_at=1.0, attempts=2, submitted=3.0)
    adopted = adopt(mine, lost, None, 10.0)
    assert verdict_of(adopted) == lost and (adopted.attempts, adopted.submitted) == (2, 3.0)
    ending = Ending(code=0, started=1.0, ended=2.0, job="7")
    both = [adopt(each, lost, ending, 10.0) for each in (mine, Status(state="failed", exit_code=1, native="Y"))]
    assert verdict_of(both[0]) == verdict_of(both[1])
    assert (both[0].state, both[0].exit_code, both[0].ended) == ("completed", 0, 2.0)
    assert adopt(mine, None, None, 10.0) == mine
    assert adopt(mine, Verdict(state="running"), None, 10.0) == mine, "only a final status is adopted"


def test_local_details_are_not_shared() -> None:
    waits = Status(state="requeued", node="n1", started=3.0, job="7")
    assert verdict_of(waits) == Verdict(state="requeued", job="7")
    assert verdict_of(msgspec.structs.replace(waits, state="running")).node == "n1"


@pytest.mark.parametrize("text", [b"", b"{", b'{"state":"hibernating"}', b"[]"])
def test_an_invalid_verdict_is_ignored(text: bytes) -> None:
    assert read_verdict(text) is None


def test_last_metrics_of_anything() -> None:
    lines = b'\n{}\n[1]\n{"a":NaN}\n{"a":"NaN","step":"x","time":2}\n{"a":3,"rank":1}\n\xff'
    assert metrics.of(lines) == [
        metrics.Metric("a", "NaN", "x"),
    ]
