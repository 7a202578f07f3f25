"""A user's machine with contexts for the lab's clusters."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.user import User
from yurt.testing.waiting import eventually


class Laptop(User):
    """A user's machine with its own index and contexts for the lab's clusters."""

    def __init__(self, home: Path, config: Path) -> None:
        super().__init__(home)
        shutil.copytree(config, home / "config")
        # The lab's login nodes can take more queries, and respond again when a test undoes a fault.
        self.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 rest=0 again=15"

    def run(self, context: str, *words: str) -> dict[str, Any]:
        """Submit a run; return the data and warnings of `yurt run --json`."""
        done = self.quick("--context", context, "--json", "run", *words)
        assert done.code == 0, done
        envelope: dict[str, Any] = done.json
        return {**envelope["data"], "warnings": envelope["warnings"]}

    def row(self, run: str) -> dict[str, Any]:
        """Return a run's row in `yurt ps`."""
        done = self.quick("ps", "--json")
        assert done.out, done
        rows = [row for row in done.json["data"] if row["id"] == run]
        found: dict[str, Any] = rows[0]
        return found

    def starts(self, run: str) -> None:
        """Wait until `yurt ps` shows a run as running."""
        eventually(lambda: self.row(run)["state"] == "running")

    def ended(self, run: str) -> dict[str, Any]:
        """Wait until a run has finished; return its record and its status in one dictionary."""
        done = self.quick("wait", run, "--timeout", "240", "--json")
        assert done.code in (0, 1), done
        (entry,) = done.json["data"]
        return {**entry["run"], **entry["status"]}
