"""The recorded answers that reach users of yurt's Python interface, and what that does with them: results of calls,
metrics, logs, states, what is saved of finished runs, and what a submission prints."""

from __future__ import annotations

import contextlib
import json
import shutil
import traceback
from collections.abc import Iterator
from unittest import mock

import msgspec

from tests.campaign.hostile_answers import (
    BASE,
    ENDING,
    POLL,
    RECORD,
    RUN,
    SWEEP,
    SWEEP_FOLDER,
    VERDICT,
    Recorded,
    Site,
)
from yurt.api import receiver
from yurt.api.errors import RemoteError
from yurt.api.future import Call
from yurt.api.rows import merged, rows_of
from yurt.api.runs import Run, Runs
from yurt.backends.answers import CodeParcel
from yurt.contexts import folders
from yurt.envs import wheels
from yurt.errors import YurtError
from yurt.lifecycle import ps
from yurt.lifecycle.files import metrics
from yurt.lifecycle.refresh import archive
from yurt.model import ids, plot
from yurt.model.growth import MLRUNS
from yurt.model.run import Plan, Status
from yurt.model.run import Run as RunRecord
from yurt.store import Store
from yurt.tracking import curves
from yurt.tracking.followed import Copy
from yurt.tracking.mlflow import points, script_runs

TASK = ids.task(SWEEP, 1)
SWEPT = msgspec.structs.replace(RECORD, id=SWEEP, folder=SWEEP_FOLDER, tasks=3, command=["train()"], params={})
QUEUED = Status(state="queued", submitted=1.0, job="13", attempts=1)
ENDED = Status(state="completed", submitted=1.0, started=2.0, ended=9.0, seconds=7.0, exit_code=0, job="13_1")

HEAD = {
    "ok": False,
    "kind": "raised",
    "text": "ValueError: 3 is too large",
    "node": "n1",
    "traceback": 'Traceback (most recent call last):\n  File "/tmp/train.py", line 3, in train\nValueError: 3\n',
    "parts": False,
    "content": "gASVBQAAAAAAAAAoSwFLAmUu",
}
"""The first line of a result; yurt takes its content from the bytes behind it."""

LARGE = {"kind": "large", "text": "200000000 100000000"}

ROW = {"time": 1794864000.5, "step": 3, "loss": 0.5, "name": "text", "many": [1, [2]], "parts": {"a": {"b": 1}}}

SAVED = {
    "there": "",
    "out": "hello\n",
    "err": "Traceback (most recent call last):\nValueError: 3\n",
    "metrics": '{"time":1.0,"step":3,"loss":0.5}\n',
    "usage": "= 0 1 4 1000\n0 5.0 1.00 2.00 100 200 50 10\n",
    "status.json": json.dumps(VERDICT),
    "exit.json": json.dumps(ENDING),
    "parts": "outputs 3 5\n",
    "files": "5 a/b\n",
}
"""What the site sends of a finished run, by name."""


def plan(run: RunRecord) -> Plan:
    return Plan(
        run=run,
        project_folder=f"{BASE}/projects/p-0000",
        store="/home/alice/code",
        words=[b"true"],
        sets=[{"x": 1}] * run.tasks,
        calls=bool(run.tasks),
    )


@contextlib.contextmanager
def index(site: Site, status: Status = ENDED) -> Iterator[Store]:
    """Open a new index with a run and a sweep of calls, whose site gives this answer to each request."""
    made = site.folder / f"{status.state}.db"
    if not made.exists():
        with Store(str(made)) as store:
            store.add(RECORD, status, plan(RECORD))
            store.add(SWEPT, msgspec.structs.replace(QUEUED, submitted_tasks="0-2"), plan(SWEPT))
            store.change_tasks(SWEEP, [1], lambda _number, _status: status)
    for file in site.folder.glob("yurt.db*"):
        file.unlink()
    shutil.copy(made, site.folder / "yurt.db")
    with folders.store() as store, mock.patch("yurt.contexts.connect.backend", lambda _context: site.backend):
        yield store


def framed(record: str, pieces: dict[str, bytes]) -> bytes:
    """Return a record of frames.sh."""
    lines = b"".join(b"%s %d %d\n%s" % (name.encode(), len(each), len(each), each) for name, each in pieces.items())
    return f"= {record}\n".encode() + lines + b".\n"


def _text(value: object) -> bytes:
    return str(value).encode(errors="surrogateescape")


def _result(site: Site) -> None:
    """Ask for the result of a call: the exception of the function, or a CallError. Both are shown with a traceback."""
    wrong = site._content + b"\nnot a pickle"
    with index(Site(site.folder, framed("1", {"result": wrong}))) as store:
        (entry,) = store.several([TASK])
        try:
            Run(entry).result()
        except (YurtError, RemoteError) as error:
            "".join(traceback.format_exception(error))
        (found,) = Site(site.folder, framed("1", {"result": wrong})).backend.files.call_results([entry.run.folder])
        call = Call(lambda _call: None)
        receiver.resolve(call, entry, found)
        assert isinstance(call.exception(0), YurtError | RemoteError)


def _several_results(site: Site) -> None:
    """Let the executor fetch the results of three calls."""
    with index(site) as store:
        entries = store.several([ids.task(SWEEP, number) for number in range(3)])
        calls = {number: Call(lambda _call: None) for number in range(3)}
        sent = receiver.Submitted(SWEEP, dict(calls))
        fetching = receiver.Receiver("alpha", "slurm", site.backend.files, lambda _error: None)
        with mock.patch.object(receiver, "TRIES", 0):
            fetching._fetch_results(sent, [(entry.run.task or 0, entry) for entry in entries][:3])
        for call in calls.values():
            assert (
                not call.done() or call.exception(0) is None or isinstance(call.exception(0), YurtError | RemoteError)
            )


def _rows(site: Site) -> None:
    """Read a line of metrics in each way."""
    line = site._content.replace(b"\n", b" ") + b"\n"
    with index(Site(site.folder, line)) as store:
        (entry,) = store.several([RUN])
        rows = Run(entry).metrics()
        for each in metrics.of(line):
            msgspec.json.encode(each)
        assert len(rows) <= 1
        store.change_tasks(SWEEP, [1], lambda _at, now: msgspec.structs.replace(now, metrics=rows[0] if rows else {}))
        merged(rows_of(store, store.several([SWEEP])[0]))
    file = site.folder / "metrics.jsonl"
    file.write_bytes(line)
    list(points.read(points.Source("m", file, len(line), 0), None))
    found, _long = curves.read({"metrics.jsonl": Copy("metrics.jsonl", file, len(line), 0)})
    msgspec.json.encode(found)
    for curve in found.values():
        drawn = plot.gathered((point.step, point.value) for point in curve)
        if drawn:
            plot.draw(drawn, 80, 10)


def _log(site: Site) -> None:
    with index(site) as store:
        (entry,) = store.several([RUN])
        assert len(Run(entry).logs(lines=3)) < 100_000


def _refreshed(site: Site) -> None:
    """Refresh a running run, and show it."""
    with index(site, msgspec.structs.replace(QUEUED, state="running", started=2.0, node="n1")) as store:
        runs = [Run(entry) for entry in store.several([RUN, TASK])]
        with mock.patch("warnings.warn"):
            for run in runs:
                run.refresh()
                msgspec.json.encode([run.state, run.reason, run.job, run.started, run.ended, run.seconds])
        Runs(runs)._repr_html_()
        Runs(runs).to_rows()
        msgspec.json.encode(ps.rows(store, limit=9))


def _saved(site: Site) -> None:
    """Save what a site has of finished runs: the first command after their end does."""
    pieces = {name: _text(value) for name, value in json.loads(site._content).items()}
    answer = Site(site.folder, framed("1", pieces) + framed("2", pieces))
    with index(answer) as store:
        archive.take(store, answer.backend.files, store.several([RUN, TASK]))
        alone = Site(site.folder, framed("1", pieces))
        archive.take(store, alone.backend.files, store.several([SWEEP]))
        with mock.patch("yurt.contexts.connect.backend", lambda _context: alone.backend):
            archive.inspect(store, store.several([RUN])[0], timeout=9)
        for entry in store.several([RUN, TASK, SWEEP]):
            msgspec.json.encode(entry)
            metrics.last(store, entry)
        merged(rows_of(store, store.several([RUN])[0]))


def _placed(site: Site) -> None:
    site.backend.submit(plan(RECORD), "abcd", CodeParcel())
    site.backend.submit(plan(SWEPT), "abcd", CodeParcel(), tasks="1:0:0-2")


def _script_runs(site: Site) -> None:
    """Read what a script wrote into an MLflow store of its own."""
    folder = f"outputs/{MLRUNS}/0/{'a' * 32}"
    file = site.folder / "meta.yaml"
    file.write_bytes(site._content)
    copy = Copy("meta.yaml", file, len(site._content), 0)
    for each in script_runs.read({f"{folder}/{name}": copy for name in ("meta.yaml", "params/lr", "metrics/loss")}):
        msgspec.json.encode([each.started, each.ended, each.status, each.name])
        list(points.read(each.sources[0], None))


META = "start_time: 1794864000000\nend_time: 1794864001000\nstatus: 3\nrun_name: first\nlifecycle_stage: active\n"

RESULTS = (
    framed("1", {"result": b'{"ok":true}\n\x80\x04K\0.'})
    + framed("2", {"err": b"last words"})
    + framed("3", {"result": b'{"ok":true}\n\x80\x04K\x02.'})
)


def _package(site: Site) -> None:
    """Keep a file of a package index in the cache."""
    name, url, sha256 = (str(each) for each in json.loads(site._content).values())
    found = wheels._file("one", {"name": name, "url": url, "hashes": {"sha256": sha256}}, site.folder)
    if found is not None:
        made = site.folder / "wheels" / found.sha256 / found.file
        made.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # a name that is too long
            made.touch()


PACKAGE = {"name": "one-1.0.tar.gz", "url": "https://x.invalid/one-1.0.tar.gz", "sha256": "0" * 64}

PYTHON: list[Recorded] = [
    Recorded("file of a package", PACKAGE, _package),
    Recorded("result of a call", HEAD, _result),
    Recorded("large result", LARGE, _result),
    Recorded("results of three calls", RESULTS.decode("latin-1"), lambda site: _several_results(_latin(site))),
    Recorded("metrics", ROW, _rows),
    Recorded("meta.yaml", META, _script_runs),
    Recorded("log of a run", "out 5\nhelloskip-err 7\nerr 2\nhi", _log),
    Recorded("refresh", POLL, _refreshed),
    Recorded("saved runs", SAVED, _saved),
    Recorded("submitted run", "changed 3 a.py\nbuilding\nsubmitted 12\n", _placed),
    Recorded("submitted sweep", "submitted 12 1:0:0-2\n", _placed),
]


def _latin(site: Site) -> Site:
    return Site(site.folder, site._content.decode(errors="surrogateescape").encode("latin-1", errors="replace"))
