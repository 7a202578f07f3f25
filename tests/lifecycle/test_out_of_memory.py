"""A run that uses more memory than it requested, on sites that notice it in different ways."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab

REASON = "it used more memory than its limit"
USES = "import time; x = bytearray(500_000_000); print(len(x), flush=True); time.sleep(60)"


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.parametrize("words", [[], ["sh", "-c", 'trap "sleep 1; exit 3" TERM; "$@" & wait $!', "sh"]])
@pytest.mark.slow("beta")
def test_its_state_and_reason(laptop: Laptop, context: str, words: list[str]) -> None:
    """alpha has control groups and accounting. On beta, Slurm kills the whole job and says so only in its log."""
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 settling=2"
    run = laptop.run(context, "--mem", "100M", *words, "python3", "-c", USES)["run"]["id"]
    row = laptop.ended(run)
    assert (row["state"], row["reason"]) == ("out_of_memory", REASON)


TASK = """\
import sys, time
x = bytearray(int(sys.argv[1]) * 1_000_000)
print(len(x), flush=True)
time.sleep(60 if len(x) > 10**8 else 0)
"""


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_tasks_of_a_sweep(laptop: Laptop, lab: Lab, context: str) -> None:
    """What Slurm says about a task is in a file of its own, which the task removes if it ends by itself."""
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 settling=2"
    run = laptop.run(context, "--mem", "100M", "--grid", "mb=1,500", "--", "python3", "-c", TASK, "{mb}")["run"]
    laptop.ended(run["id"])
    shown = [laptop("show", f"{run['id']}.{task}", "--json").json["data"]["status"] for task in (0, 1)]
    assert [(each["state"], each["reason"]) for each in shown] == [("completed", ""), ("out_of_memory", REASON)]
    assert shown[1]["native"] == ("OUT_OF_MEMORY" if context == "alpha" else "FAILED"), "what Slurm itself says"
    assert 0 <= shown[1]["ended"] - shown[1]["started"] < 45
    failed = laptop("show", run["id"], "--filter", "state=failed", "--json").json["data"]["rows"]
    assert [each["task"] for each in failed] == [1]
    assert "_0" not in Ssh(lab)(context, f"cd {run['folder']} && ls -d slurm.* 2> /dev/null || true")
