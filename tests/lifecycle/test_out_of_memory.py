"""A run that uses more memory than it requested, on sites that notice it in different ways."""

from __future__ import annotations

import pytest

from tests.laptop import Laptop

USES = "import time; x = bytearray(500_000_000); print(len(x), flush=True); time.sleep(60)"


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.parametrize("words", [[], ["sh", "-c", 'trap "sleep 1; exit 3" TERM; "$@" & wait $!', "sh"]])
@pytest.mark.slow("beta")
def test_its_state_and_reason(laptop: Laptop, context: str, words: list[str]) -> None:
    """alpha has control groups and accounting. On beta, Slurm kills the whole job and says so only in its log."""
    laptop.environment["YURT_CLOCKS"] = "last_refresh=1 settling=2"
    run = laptop.run(context, "--mem", "100M", *words, "python3", "-c", USES)["run"]["id"]
    row = laptop.ended(run)
    assert (row["state"], row["reason"]) == ("out_of_memory", "it used more memory than its limit")
