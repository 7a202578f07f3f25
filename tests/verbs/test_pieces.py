"""Runs longer than their time limit, on real clusters: over several jobs, no step lost, none repeated that was saved.

In `make test` pieces are short because the signal comes long before the limit; YURT_SLOW=1 adds whole minutes,
nodes that lose their power and controllers that are down when they are needed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.conftest import end_masters
from tests.lab.conftest import Ssh, eventually
from tests.verbs.test_outbox import UNFINISHED, Laptop
from yurt.lab import Lab

pytestmark = pytest.mark.lab

slow = pytest.mark.skipif(not os.environ.get("YURT_SLOW"), reason="takes minutes: YURT_SLOW=1")

COUNT = """\
import os, signal, sys, time

many, every, on_signal = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "yes"
saved = os.path.join(os.environ["YURT_CHECKPOINTS"], "step")
step = int(open(saved).read()) if os.path.exists(saved) else 0
asked = []
if on_signal:
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.append(1))


def save():
    with open(saved + ".new", "w") as file:
        file.write(str(step))
        file.flush()
        os.fsync(file.fileno())
    os.rename(saved + ".new", saved)


while step < many:
    time.sleep(1)
    step += 1
    with open(os.path.join(os.environ["YURT_OUTPUTS"], "steps"), "a") as file:
        file.write("%d %s %.3f\\n" % (step, os.environ["YURT_RESTARTS"], time.time()))
    if every and step % every == 0:
        save()
    if asked:
        save()
        sys.exit(85)
"""
"""Counts, a step a second: HOW-MANY SAVE-EVERY SAVES-ON-THE-SIGNAL."""


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory, lab: Lab, yurt_home: Path) -> Iterator[Laptop]:
    made = Laptop(tmp_path_factory.mktemp("laptop"), yurt_home)
    (made.project / "count.py").write_text(COUNT)
    for name in ("alpha", "beta"):
        assert made("context", "probe", name).code == 0
    yield made
    if made.runtime.exists():
        end_masters(made.runtime)


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


def begin(laptop: Laptop, context: str, *words: str, requeues: int = 8, before: str = "45s") -> dict[str, Any]:
    options = ["--requeue", "--max-requeues", str(requeues), "--time", "1"]
    options += ["--signal-before", before] if before else []
    made: dict[str, Any] = laptop.run(context, *options, *words)["run"]
    return made


def finished(laptop: Laptop, run: str, seconds: float = 300) -> dict[str, Any]:
    """Its record once it has ended; until then yurt looks now and then, as somebody with `ps --watch` does."""
    deadline = time.monotonic() + seconds
    while laptop.row(run)["state"] in UNFINISHED:
        assert time.monotonic() < deadline, laptop("show", run).out
        time.sleep(2)
    shown: dict[str, Any] = laptop("show", run, "--json").json["data"]
    return shown


def lines(ssh: Ssh, run: dict[str, Any], name: str) -> list[str]:
    """Lines of a file in its folder, told from what beta says to everybody who logs in."""
    text = ssh(run["context"], f"sed 's/^/@/' '{run['folder']}/{name}' 2> /dev/null || true")
    return [line[1:] for line in text.splitlines() if line.startswith("@")]


def steps(ssh: Ssh, run: dict[str, Any]) -> list[tuple[int, int, float]]:
    rows = [line.split() for line in lines(ssh, run, "outputs/steps")]
    return [(int(step), int(start), float(at)) for step, start, at in rows]


def check(done: list[tuple[int, int, float]], many: int, every: int = 0) -> None:
    """All steps are there, in order; a new start goes on from the last one that was saved; no two ran at once."""
    for (step, start, at), (after, following, later) in pairwise(done):
        saved = step if not every else step // every * every
        assert (after == step + 1 and following == start) or (following > start and saved < after <= step + 1), done
        assert later >= at, done
    assert done[0][0] == 1 and done[-1][0] == many, done


def test_over_several_jobs(laptop: Laptop, ssh: Ssh) -> None:
    """On alpha the job is requeued, on beta, which forbids that, followed by another; with and without the signal."""
    made = {
        (context, every): begin(laptop, context, "count.py", "34", str(every), "no" if every else "yes")
        for context in ("alpha", "beta")
        for every in (0, 4)
    }
    for (context, every), run in made.items():
        shown = finished(laptop, run["id"])
        status = shown["status"]
        assert status["state"] == "completed", (shown, laptop("logs", run["id"]).out)
        done = steps(ssh, run)
        check(done, 34, every)
        if not every:
            assert [step for step, _start, _at in done] == list(range(1, 35))
        assert status["restarts"] == done[-1][1] >= 1
        assert 34 <= status["seconds"] <= status["ended"] - status["started"]
        assert len(set(lines(ssh, run, "jobs"))) == (1 if context == "alpha" else status["restarts"] + 1)
