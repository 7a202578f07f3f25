"""Several contexts in parallel: msgspec does not crash, as it does if two threads first use a type together."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from yurt.clocks import ending_by, within
from yurt.contexts.fan_out import side_by_side

SCRIPT = """\
import sys, threading, time
from yurt.config import contexts, facts
from yurt.model.facts import Facts
if sys.argv[1] == "write":
    (contexts.default_file()).parent.mkdir(parents=True)
    contexts.default_file().write_text("contexts: {a: {type: slurm, slurm_url: x@a}, b: {type: slurm, slurm_url: x@b}}")
    for name in "ab":
        facts.save(contexts.named(name), Facts(probed_at=time.time(), user="u", host="h"))
    sys.exit()
from yurt.contexts.fan_out import side_by_side
sys.setswitchinterval(1e-6)
start = threading.Barrier(4)
found = []
def work(name):
    start.wait()
    found.append(facts.load(contexts.named(name)) is not None)
side_by_side(work, "abab")
assert found == [True] * 4, found
"""


def test_types_are_prepared_before_threads_start(tmp_path: Path) -> None:
    environment = {**os.environ, "YURT_CONFIG_HOME": str(tmp_path / "config"), "YURT_DATA_HOME": str(tmp_path / "data")}

    def run(word: str) -> None:
        subprocess.run([sys.executable, "-X", "faulthandler", "-c", SCRIPT, word], env=environment, check=True)

    run("write")
    for cached in (True, False, True, False):
        if not cached:  # as after a change of the file
            (tmp_path / "data" / "cache" / "contexts.json").unlink()
        run("read")


def test_threads_have_the_limits_of_time_of_the_caller() -> None:
    found = list[float]()
    with ending_by(time.monotonic() + 5):
        side_by_side(lambda _item: found.append(within(60)), "ab")
    assert len(found) == 2 and max(found) <= 5
