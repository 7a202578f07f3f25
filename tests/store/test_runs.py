"""The index: concurrent processes, file permissions, an unusable index."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import msgspec
import pytest

from yurt.errors import RefusedError
from yurt.model import ids
from yurt.model.files import Measures
from yurt.model.run import Plan, Run, Status
from yurt.store import Copy, Store
from yurt.store.schema import SCHEMA, VERSION


def run(number: int, context: str = "alpha", **more: str) -> Run:
    run_id = ids.make(1_800_000_000 + number, number * 7919)
    return Run(
        id=run_id,
        context=context,
        context_type="slurm",
        project="p-0000",
        source="/src",
        created=float(number),
        command=["true"],
        folder=f"/far/runs/{run_id}",
        **more,  # type: ignore[arg-type]
    )


def plan(of: Run) -> Plan:
    return Plan(run=of, words=[b"\xff"], project_folder="/far", store="/s")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "deep" / "yurt.db"))


def test_only_its_owner_reads_it(store: Store) -> None:
    store.add(run(1), Status(), plan(run(1)))
    folder = Path(store.file).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.rglob("*") if each.is_file()} == {0o600}
    assert stat.S_IMODE((folder / "saved").stat().st_mode) == 0o700


def test_outbox_order_and_plans_of_finished_runs(store: Store) -> None:
    made = [run(number, "alpha" if number % 2 else "beta") for number in range(6)]
    for each in reversed(made):
        store.add(each, Status(), plan(each))
    assert store.outbox("alpha") == [made[1].id, made[3].id, made[5].id]
    kept = store.plan(made[1].id)
    assert kept is not None
    assert kept.words == [b"\xff"]
    assert store.refs("alpha") == [], "runs that are not submitted are not queried"
    store.change([made[1].id], lambda _run, status: msgspec.structs.replace(status, state="completed"))
    assert store.plan(made[1].id) == plan(made[1]), "needed to retry the run"
    assert store.outbox("alpha") == [made[3].id, made[5].id]
    assert store.contexts_of_unfinished() == ["alpha", "beta"]
    store.change(
        [made[3].id], lambda _run, status: msgspec.structs.replace(status, state="queued", cancel_requested=True)
    )
    assert [ref.id for ref in store.refs("alpha")] == [made[3].id] == store.cancels("alpha")


def test_a_run_is_only_queried_on_its_own_site(store: Store) -> None:
    """Another site does not list its job: it would be lost there."""
    made = run(1, "alpha")
    store.add(made, Status(state="completed"))
    assert [ref.id for ref in store.refs("alpha", also=[made.id])] == [made.id]
    assert store.refs("beta", also=[made.id]) == []


def test_marks_are_kept_until_something_else_changes(store: Store) -> None:
    store.add(run(1), Status(state="queued"))
    one = run(1).id
    assert store.change([one], lambda _run, status: status, lambda _run, _status: "7|PENDING") == {}
    assert store.refs("alpha")[0].mark == "7|PENDING"
    store.change([one], lambda _run, status: msgspec.structs.replace(status, cancel_requested=True))
    assert store.refs("alpha")[0].mark == ""


def test_prefixes(store: Store) -> None:
    for number in range(3):
        store.add(run(number * 100_000), Status())
    first = run(0).id
    time_part, random_part = first.split("-")
    assert store.matching(first) == [first]
    assert store.matching(random_part) == [first]
    assert first in store.matching(time_part[:3])
    assert store.matching("%") == store.matching("_") == []


WRITER = """\
import sys, msgspec
from yurt.store import Store
with Store(sys.argv[1]) as store:
    for _ in range(50):
        store.change([sys.argv[2]], lambda _run, status: msgspec.structs.replace(status, attempts=status.attempts + 1))
"""


def test_concurrent_writers_lose_nothing(store: Store) -> None:
    one = run(1)
    store.add(one, Status())
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, store.file, one.id]) for _each in range(4)]
    assert [each.wait() for each in writers] == [0] * 4
    entry = store.get(one.id)
    assert entry is not None
    assert entry.status.attempts == 200


MAKER = """\
import sys
from yurt.store import Store
Store(sys.argv[1]).contexts_of_unfinished()
"""


def test_processes_that_create_it_concurrently(tmp_path: Path) -> None:
    file = str(tmp_path / "new" / "yurt.db")
    makers = [subprocess.Popen([sys.executable, "-c", MAKER, file]) for _each in range(6)]
    assert [each.wait() for each in makers] == [0] * 6


def test_threads_that_create_it_concurrently(tmp_path: Path) -> None:
    """Threads race more closely than processes; and the umask of the process stays unchanged."""
    before = os.umask(0o027)
    try:
        _two_threads(tmp_path)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def _two_threads(tmp_path: Path) -> None:
    for number in range(100):
        file, together = str(tmp_path / str(number) / "yurt.db"), Barrier(2)

        def make(_each: int, file: str = file, together: Barrier = together) -> list[str]:
            together.wait()
            with Store(file) as store:
                return store.contexts_of_unfinished()

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(make, range(2))) == [[], []]


def test_opening_it_twice_keeps_the_locks(tmp_path: Path) -> None:
    """POSIX locks belong to a process: closing the file anywhere would release them, and others would clean up."""
    file = str(tmp_path / "yurt.db")
    first = Store(file)
    first.add(run(1), Status())
    with Store(file):
        subprocess.run([sys.executable, "-c", MAKER, file], check=True)
        assert Path(f"{file}-wal").exists()
    subprocess.run([sys.executable, "-c", MAKER, file], check=True)
    assert Path(f"{file}-wal").exists() and first.get(run(1).id)
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith("yurt.db")] == []


@pytest.mark.parametrize("file", ["yurt.db", "new/folders/yurt.db"])
def test_a_relative_path(tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Store(file) as store:
        assert store.contexts_of_unfinished() == []
    assert stat.S_IMODE((tmp_path / file).stat().st_mode) == 0o600


def test_an_unusable_index(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database" * 100)
    with pytest.raises(RefusedError, match=r"the run index .* is damaged"):
        Store(str(broken))
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(RefusedError, match="newer yurt"):
        Store(str(newer))
    if os.geteuid():
        with pytest.raises(RefusedError):
            Store("/proc/yurt.db")


def test_an_index_of_an_earlier_version_keeps_its_runs(tmp_path: Path) -> None:
    file = str(tmp_path / "yurt.db")
    with sqlite3.connect(file) as db:
        db.executescript(SCHEMA)
        db.execute("PRAGMA user_version = 1")
        db.execute("INSERT INTO records VALUES (?, ?, ?)", (run(1).id, msgspec.json.encode(run(1)), b"{}"))
    with Store(file) as store, Store(file) as twin:
        entry = store.get(run(1).id)
        assert entry is not None and entry.run == run(1)
        assert twin.retries(run(1).id) == []


def test_retries_of_a_run(store: Store) -> None:
    again = [run(number, retry_of=run(1).id) for number in (3, 2)]
    for each in (run(1), *again):
        store.add(each, Status())
    assert store.retries(run(1).id) == [again[1].id, again[0].id]
    store.remove(again[1].id)
    assert store.retries(run(1).id) == [again[0].id] and store.retries(again[0].id) == []


def test_an_older_index_keeps_everything_and_is_migrated(tmp_path: Path) -> None:
    file = tmp_path / "yurt.db"
    one = run(1)
    with sqlite3.connect(file) as db:
        for statement in SCHEMA.split(";\n"):
            db.execute(statement)
        values = (one.id, 1.0, "alpha", "p", "", one.folder, "completed", 1, 0, "")
        db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        records = (one.id, msgspec.json.encode(one), msgspec.json.encode(Status(state="completed")))
        db.execute("INSERT INTO records VALUES (?, ?, ?)", records)
        db.execute("INSERT INTO code VALUES ('alpha', 'p', 'tree')")
        db.execute("PRAGMA user_version = 1")
    makers = [subprocess.Popen([sys.executable, "-c", MAKER, str(file)]) for _each in range(4)]
    assert [each.wait() for each in makers] == [0] * 4
    with Store(str(file)) as store:
        entry = store.get(one.id)
        assert entry is not None
        assert (entry.run, entry.status.state, store.code_at("alpha", "p")) == (one, "completed", "tree")
        assert store.copies(one.id) == []
        assert store.gone_at(one.id) is None
    with sqlite3.connect(file) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_copies_and_folders_that_are_gone(store: Store) -> None:
    one, two = run(1), run(2)
    store.add(one, Status(state="completed"))
    store.note_fetched(one.id, Copy(target=b"/a", at=1, measures=Measures("2:4:9", "1:1:9", "")))
    store.note_fetched(one.id, Copy(target=b"/a", at=2, measures=Measures("3:4:9", "", "5:5:5")))
    store.note_fetched(one.id, Copy(target=b"/\xff", at=3, measures=Measures("", "", "")))
    assert store.copies(one.id) == [
        Copy(target=b"/\xff", at=3, measures=Measures("", "", "")),
        Copy(target=b"/a", at=2, measures=Measures("3:4:9", "1:1:9", "5:5:5")),
    ]
    store.note_gone([one.id, two.id], 5)
    store.note_gone([one.id], 6)
    assert (store.gone_at(one.id), store.gone_at(two.id), store.gone_at("none")) == (5, 5, None)
    store.remove(one.id)
    assert (store.copies(one.id), store.gone_at(one.id)) == ([], None)
