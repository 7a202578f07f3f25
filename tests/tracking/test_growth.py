"""The new bytes of files of runs: what the script of the site sends, and the copies that are made of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yurt.backends.shell import growth
from yurt.model import layout
from yurt.model.growth import OVERLAP, Growing, Kind
from yurt.tracking.followed import Copy, Followed
from yurt.transport.local import LocalHost

KINDS: list[Kind] = ["metrics", "events", "mlflow"]
RUN = "1nfaaa0-aaaa0"
EVENTS = "events.out.tfevents.1700000000.node.1.0"


class Site:
    """A run folder on this machine, and its copies."""

    def __init__(self, base: Path, **growing: object) -> None:
        self.folder = base / "yurt/projects/p-1/runs" / RUN
        self.folder.mkdir(parents=True)
        for each in (self.folder, *self.folder.parents):
            if each.is_relative_to(base):
                each.chmod(0o700)
        self.more = growing
        self.asked = 0
        self.begun: list[tuple[str, int]] = []

    def write(self, path: str, content: bytes, *, append: bool = False) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab" if append else "wb") as stream:
            stream.write(content)
        os.utime(file, ns=(time.time_ns(), time.time_ns() + self.asked))  # no two writes at the same time
        return file

    def look(self, *, deep: bool = True) -> Followed:
        """Make one request; notice which files were sent."""
        followed = Followed(RUN)
        self.asked += 1
        self.begun = []
        reader = _Reader(followed, self.begun)
        wanted = Growing(folder=str(self.folder), known=followed.known(), deep=deep, **self.more)  # type: ignore[arg-type]
        growth.read(LocalHost(), [wanted], KINDS, reader)
        followed.save()
        return followed

    def copies(self) -> dict[str, bytes]:
        return {path: each.file.read_bytes() for path, each in Followed(RUN).copies().items()}


class _Reader:
    def __init__(self, followed: Followed, begun: list[tuple[str, int]]) -> None:
        self.followed, self.begun = followed, begun

    def begin(self, at: int, path: str, seen: str, start: int) -> None:
        assert at == 0
        self.begun.append((path, start))
        self.followed.begin(path, seen, start)

    def more(self, part: bytes) -> None:
        self.followed.more(part)

    def end(self) -> None:
        self.followed.end()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    return Site(tmp_path / "site")


def test_only_new_bytes_are_sent(site: Site) -> None:
    path = f"work/runs/a b/{EVENTS}"
    site.write(path, b"x" * 1000)
    site.write("metrics.jsonl", b'{"loss":1}\n')
    site.write("work/metrics.jsonl", b"of the user")
    site.write("work/other.txt", b"not wanted")
    site.write(f"work/.git/{EVENTS}", b"not wanted")
    site.look()
    assert site.copies() == {path: b"x" * 1000, "metrics.jsonl": b'{"loss":1}\n'}
    site.look()
    assert site.begun == [], "nothing has changed"
    site.write(path, b"y" * 10, append=True)
    site.look(deep=False)
    assert site.begun == [(path, 1000 - OVERLAP)]
    assert site.copies()[path] == b"x" * 1000 + b"y" * 10
    assert Followed(RUN).copies()[path].generation == 0
    assert (Followed(RUN).folder.stat().st_mode & 0o777, Followed(RUN).copies()[path].file.stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


def test_new_files_near_the_known_ones_are_found_without_a_search(site: Site) -> None:
    site.write(f"work/runs/a/{EVENTS}", b"1")
    site.look()
    site.write(f"work/runs/a/{EVENTS}.v2", b"2")
    site.write(f"work/runs/b/{EVENTS}", b"3")
    site.write("metrics.jsonl", b"{}\n")
    assert f"work/runs/b/{EVENTS}" not in site.look(deep=False).copies()
    assert f"work/runs/a/{EVENTS}.v2" in site.copies() and "metrics.jsonl" in site.copies()
    assert f"work/runs/b/{EVENTS}" in site.look().copies()


def renamed(site: Site, path: str) -> dict[str, bytes]:
    file = site.folder / path
    file.rename(f"{file}.1")
    site.write(path, b"n" * 700)
    return {f"{path}.1": b"o" * 600, path: b"n" * 700}


def rewritten(site: Site, path: str) -> dict[str, bytes]:
    site.write(path, b"n" * 700)
    return {path: b"n" * 700}


def same_size(site: Site, path: str) -> dict[str, bytes]:
    site.write(path, b"n" * 600)
    return {path: b"n" * 600}


def truncated(site: Site, path: str) -> dict[str, bytes]:
    os.truncate(site.write(path, b"", append=True), 100)
    return {path: b"o" * 100}


def emptied(site: Site, path: str) -> dict[str, bytes]:
    site.write(path, b"")
    return {path: b""}


@pytest.mark.parametrize("change", [renamed, rewritten, same_size, truncated, emptied])
def test_a_replaced_file_gets_a_new_copy(site: Site, change: Callable[[Site, str], dict[str, bytes]]) -> None:
    path = f"work/{EVENTS}"
    site.write(path, b"o" * 600)
    before = site.look().copies()[path]
    wanted = change(site, path)
    while site.look().incomplete:
        pass
    assert site.copies() == wanted
    after = Followed(RUN).copies()[path]
    assert after.generation == 1 and after.file != before.file and not before.file.exists()
    site.look()
    assert site.begun == []


def test_a_small_file_that_was_replaced(site: Site) -> None:
    site.write("metrics.jsonl", b"first\n")
    site.look()
    site.write("metrics.jsonl", b"other\nmore\n")
    site.look()
    assert site.copies() == {"metrics.jsonl": b"other\nmore\n"}


def test_a_killed_copy_continues(site: Site) -> None:
    path = f"outputs/{EVENTS}"
    content = os.urandom(5000)
    site.write(path, content)
    followed = Followed(RUN)
    followed.begin(path, "seen", 0)
    followed.more(content[:3000])  # killed here
    site.look()
    assert site.begun == [(path, 3000 - OVERLAP)]
    assert site.copies() == {path: content}


def test_lost_records_of_what_was_seen_cost_one_comparison(site: Site) -> None:
    site.write("metrics.jsonl", b"a" * 1000)
    followed = site.look()
    (followed.folder / "seen").write_bytes(b'["metrics.jsonl","10')
    site.look()
    assert site.begun == [("metrics.jsonl", 1000 - OVERLAP)]
    site.look()
    assert site.begun == [] and site.copies() == {"metrics.jsonl": b"a" * 1000}


def test_the_record_of_what_was_seen_stays_small(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yurt.tracking.followed.LARGE", 300)
    for _step in range(30):
        site.write("metrics.jsonl", b"a\n", append=True)
        followed = site.look()
    assert (followed.folder / "seen").stat().st_size < 400
    site.look()
    assert site.begun == []


@pytest.mark.parametrize("path", ["../../escape", "/etc/passwd", "a/../../b", "new\nline"])
def test_paths_that_a_site_may_not_name(site: Site, path: str) -> None:
    followed = Followed(RUN)
    followed.begin(path, "seen", 0)
    assert followed.more(b"x") == 0 and followed.end() == 0
    assert followed.copies() == {}


def test_the_end_of_a_run(site: Site) -> None:
    assert not site.look().ended()
    site.write("work/exit.json", b"of the user")
    assert not site.look().ended()
    site.write(layout.EXIT, b"{}")
    assert site.look().ended()


def test_event_files_of_a_run_that_was_started_in_the_project(site: Site, tmp_path: Path) -> None:
    place = tmp_path / "project"
    (place / "runs/x").mkdir(parents=True)
    site.more = {"place": str(place), "since": 1000.0, "until": 2000.0}
    for begun in (999, 1000, 1500, 2001):
        (place / f"runs/x/events.out.tfevents.{begun}.host").write_bytes(b"%d" % begun)
    (place / "metrics.jsonl").write_bytes(b"of the user")
    site.look()
    assert site.copies() == {f"place/runs/x/events.out.tfevents.{begun}.host": b"%d" % begun for begun in (1000, 1500)}
    site.look(deep=False)
    assert site.begun == []


def test_tasks_of_a_sweep(site: Site) -> None:
    site.more = {"sweep": True}
    site.write("tasks/0/metrics.jsonl", b"0")
    site.write(f"tasks/1/work/logs/{EVENTS}", b"1")
    site.write("tasks/1/work/3/metrics.jsonl", b"of the user")
    site.look()
    assert site.copies() == {"tasks/0/metrics.jsonl": b"0", f"tasks/1/work/logs/{EVENTS}": b"1"}
    site.write("tasks/7/metrics.jsonl", b"7")
    site.write(f"tasks/0/{layout.EXIT}", b"{}")
    followed = site.look(deep=False)
    assert site.copies()["tasks/7/metrics.jsonl"] == b"7"
    assert followed.ended_tasks() == 1 and followed.ended("tasks/0/") and not followed.ended("tasks/7/")


def test_files_of_mlflow(site: Site) -> None:
    below = "outputs/mlruns/0/abc"
    site.write(f"{below}/metrics/loss", b"1 2 3\n")
    site.write(f"{below}/meta.yaml", b"a: b\n")
    site.write(f"{below}/artifacts/model.pkl", b"large")
    site.look()
    assert set(site.copies()) == {f"{below}/metrics/loss", f"{below}/meta.yaml"}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.binary(min_size=1, max_size=600)),
        st.tuples(st.just("rewrite"), st.binary(max_size=900)),
        st.tuples(st.just("look"), st.just(b"")),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(steps=STEPS)
def test_the_newest_copy_is_always_the_file(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bytes]]
) -> None:
    base = tmp_path_factory.mktemp("steps")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YURT_DATA_HOME", str(base / "data"))
        site = Site(base / "site")
        content = b""
        for what, part in [*steps, ("look", b"")]:
            if what == "look":
                while site.look().incomplete:
                    pass
                continue
            content = content + part if what == "append" else part
            site.write(f"work/{EVENTS}", part, append=what == "append")
        newest: dict[str, Copy] = Followed(RUN).copies()
        assert [each.file.read_bytes() for each in newest.values()] == ([content] if newest else [])
