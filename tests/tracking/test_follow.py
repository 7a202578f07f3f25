"""Following the files of runs: on this machine, and on two clusters at once with a link that is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.laptop import Laptop
from tests.user import User
from yurt.contexts import folders
from yurt.lab import Lab
from yurt.model.growth import Kind
from yurt.store import Entry, Store
from yurt.testing.waiting import eventually
from yurt.tracking import follow
from yurt.tracking.follow import Follower, bring
from yurt.tracking.followed import Followed
from yurt.transport import counts

KINDS: list[Kind] = ["metrics", "events"]

LOGS = """\
import os, sys, time, pathlib
import yurt
go = pathlib.Path(os.environ["YURT_RUN_DIR"], "go")
for step in range(100000):
    yurt.log(step=step, loss=1 / (step + 1), run=os.environ["YURT_RUN_ID"])
    if go.exists() or not go.parent.exists():
        break
    time.sleep(0.05)
yurt.log(step=step + 1, last=1)
"""


@contextmanager
def index(user: User) -> Iterator[Store]:
    """Use the folders of a user in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in user.environment.items():
            patch.setenv(name, value)
        with folders.store() as store:
            yield store


def entries(store: Store, *names: str) -> list[Entry]:
    return store.several(names)


def rows(run: str, prefix: str = "") -> list[dict[str, object]]:
    copy = Followed(run).copies().get(f"{prefix}metrics.jsonl")
    return [json.loads(line) for line in copy.file.read_text().splitlines()[:-1]] if copy else []


def test_a_run_of_this_machine_until_its_end(user: User) -> None:
    (user.project / "train.py").write_text(LOGS)
    run = user.quick("run", "--json", "train.py").json["data"]["run"]
    changes: list[frozenset[str]] = []
    with index(user) as store:
        eventually(lambda: not bring(store, entries(store, run["id"]), KINDS) and rows(run["id"]))
        follower = Follower(store, entries(store, run["id"]), KINDS, interval=0.1, on_change=changes.append)
        follower.start()
        before = len(rows(run["id"]))
        eventually(lambda: len(rows(run["id"])) > before and changes)
        assert set(changes) == {frozenset({run["id"]})} and follower.following()
        (user.home / run["folder"] / "go").touch()
        eventually(lambda: not follower.following())
        assert "last" in Followed(run["id"]).copies()["metrics.jsonl"].file.read_text()


def test_a_finished_run_whose_folder_is_gone(user: User) -> None:
    """Its metrics were saved when it finished."""
    (user.project / "train.py").write_text("import yurt\nyurt.log(step=0, loss=1)\nyurt.log(step=1, loss=2)\n")
    run = user.quick("run", "--json", "--wait", "train.py").json["data"]["run"]["id"]
    assert user.quick("ps").code == 0
    assert user.quick("prune", run, "--yes").code == 0
    with index(user) as store:
        assert bring(store, entries(store, run), KINDS) == []
        assert [row["loss"] for row in rows(run)] == [1]


@pytest.mark.lab
def test_two_clusters_with_one_request_each(laptop: Laptop, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (laptop.project / "train.py").write_text(LOGS)
    sweep = laptop.run("alpha", "--grid", "n=0..1", "python3", "train.py")["run"]["id"]
    run = laptop.run("beta", "python3", "train.py")["run"]["id"]
    words: list[str] = []
    with index(laptop) as store:
        eventually(
            lambda: (
                not bring(store, entries(store, sweep, run), KINDS)
                and rows(run)
                and all(rows(sweep, f"tasks/{number}/") for number in (0, 1))
            ),
            pause=0.5,
        )
        assert rows(sweep, "tasks/1/")[0]["run"] == f"{sweep}.1"
        sent: list[str] = []
        monkeypatch.setattr(counts, "note_command", sent.append)
        assert bring(store, entries(store, sweep, run), KINDS) == []
        assert sorted(sent) == ["alpha", "beta"]
        follower = Follower(store, entries(store, sweep, run), KINDS, interval=0.3, on_word=words.append)
        follower.start()
        try:
            lab.faults.cut("alpha")
            eventually(lambda: words)
            assert "yurt keeps trying" in words[0], words
            so_far = len(rows(sweep, "tasks/0/"))
            beta = len(rows(run))
            eventually(lambda: len(rows(run)) > beta)
            lab.faults.heal("alpha")
            eventually(lambda: len(rows(sweep, "tasks/0/")) > so_far)
            eventually(lambda: words[-1] == "alpha responds again")
        finally:
            lab.faults.heal("alpha")
            follower.stop()
            assert laptop.quick("cancel", sweep, run).code == 0
        steps = [row["step"] for row in rows(sweep, "tasks/0/")]
        assert steps == list(range(len(steps))), "nothing is missing, and nothing came twice"


def test_requests_become_rarer_when_nothing_changes(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    (user.project / "wait.sh").write_text('until [ -e "$YURT_RUN_DIR/go" ]; do sleep 0.1; done\n')
    run = user.quick("run", "--json", "sh", "wait.sh").json["data"]["run"]
    with index(user) as store:
        follower = Follower(store, entries(store, run["id"]), KINDS, interval=0.02)
        waited = follower._over.wait

        def wait(pause: float | None = None) -> bool:
            asked.append(pause or 0)
            return waited(min(pause or 0, 0.02))

        monkeypatch.setattr(follower._over, "wait", wait)
        follower.start()
        eventually(lambda: len(asked) > 18)
        follower.stop()
        assert asked[:4] == [0.02, 0.04, 0.08, 0.16] and asked[-1] == follow.LONGEST
