"""A user's machine in tests on the lab's clusters."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import Called, call
from tests.hosts.conftest import end_masters
from tests.lab.conftest import eventually

UNFINISHED = ("waiting", "submitting", "held", "queued", "starting", "running", "requeued", "unknown")


class Laptop:
    """A user's machine with an index of its own, from which the lab's clusters can be reached."""

    def __init__(self, home: Path, lab_home: Path) -> None:
        self.home = home
        self.project = home / "project"
        self.project.mkdir()
        shutil.copytree(lab_home / "config", home / "config")
        self.runtime = Path(f"/tmp/yo-{abs(hash(str(home))) % 10**8}")
        self.environment = {
            "YURT_CONFIG_HOME": str(home / "config"),
            "YURT_DATA_HOME": str(home / "data"),
            "YURT_RUNTIME_DIR": str(self.runtime),
        }

    def __call__(self, *arguments: str) -> Called:
        before = Path.cwd()
        os.chdir(self.project)
        try:
            return call(*arguments, environment=self.environment)
        finally:
            os.chdir(before)

    def run(self, context: str, *words: str) -> dict[str, Any]:
        done = self("--context", context, "--json", "run", *words)
        assert done.code == 0, done
        envelope: dict[str, Any] = done.json
        return {**envelope["data"], "warnings": envelope["warnings"]}

    def row(self, run: str) -> dict[str, Any]:
        done = self("ps", "--json")
        assert done.out, done
        rows = [row for row in done.json["data"] if row["id"] == run]
        found: dict[str, Any] = rows[0]
        return found

    def starts(self, run: str) -> None:
        eventually(lambda: self.row(run)["state"] == "running")

    def ended(self, run: str) -> dict[str, Any]:
        eventually(lambda: self.row(run)["state"] not in UNFINISHED, seconds=90, pause=0.5)
        return self.row(run)


@contextmanager
def opened(home: Path, lab_home: Path, *, probed: bool = True) -> Iterator[Laptop]:
    """A laptop with a home of its own, which knows both clusters; its connections are closed at the end."""
    laptop = Laptop(home, lab_home)
    for name in ("alpha", "beta") if probed else ():
        assert laptop("context", "probe", name).code == 0
    try:
        yield laptop
    finally:
        if laptop.runtime.exists():
            end_masters(laptop.runtime)
