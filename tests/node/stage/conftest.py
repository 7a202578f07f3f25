"""A keeper of staged files as a process of its own, as job.sh starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from yurt.backends.job import module
from yurt.testing.waiting import eventually

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from yurt.node.stage.__main__ import main; sys.exit(main())"


class Keeper:
    """A process that keeps the files of one start of a run."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, errors: Path) -> None:
        self.process = process
        self.folder = folder
        self.errors = errors

    def reply(self) -> str:
        """What it has reported; empty if nothing."""
        found = [each for each in self.folder.glob("stage.*") if not each.name.endswith(".aside")]
        return found[0].read_text().strip() if found else ""

    def ready(self) -> Path:
        """The folder that the run sees as $YURT_STAGE."""
        eventually(lambda: self.reply() != "" or self.process.poll() is not None)
        assert self.reply().startswith("in "), (self.reply(), self.errors.read_text())
        return Path(self.reply()[3:])

    def end(self) -> str:
        """End the command; return the report."""
        self.process.send_signal(signal.SIGUSR2)
        self.process.wait(60)
        return self.reply()


class Node:
    """A disk of a node, the modules, and the folders of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        self.data = folder / "data"
        for each in (self.disk, self.data):
            each.mkdir()
        self.disk.chmod(0o1777)
        for name, content in module.files("stage").items():
            file = folder / "modules" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        self.keepers: list[Keeper] = []

    @property
    def base(self) -> Path:
        return self.disk / f"yurt-stage-{os.getuid()}"

    def copies(self) -> list[Path]:
        return sorted(each for each in (self.base / "copies").glob("*") if each.suffix == "")

    def keep(
        self,
        run: str,
        inputs: Mapping[str, Path] | None = None,
        outputs: Sequence[str] = (),
        *,
        start: int = 1,
        window: float = 0,
        places: Mapping[str, Path] | None = None,
        sweep: str = "",
        variable: str = "TMPDIR",
    ) -> Keeper:
        """Start a keeper for a run."""
        folder = self.folder / "runs" / run
        folder.mkdir(parents=True, exist_ok=True)
        for each in folder.glob("stage.*"):
            each.unlink()
        stage = {
            "inputs": [{"name": name, "path": str(path)} for name, path in (inputs or {}).items()],
            "outputs": [
                *({"name": name} for name in outputs),
                *({"name": name, "path": str(path)} for name, path in (places or {}).items()),
            ],
        }
        (folder / "run.json").write_text(json.dumps({"id": run, "stage": stage, "tasks": 3 if sweep else 0}))
        words = [folder / "run.json", folder, run, start, 1, window, sweep]
        errors = folder / "err.log"
        with errors.open("ab") as stream:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", START, self.folder / "modules", *map(str, words)],
                env={"PATH": os.environ["PATH"], variable: str(self.disk)},
                stdin=subprocess.DEVNULL,
                stderr=stream,
            )
        self.keepers.append(Keeper(process, folder, errors))
        return self.keepers[-1]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    for each in made.keepers:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
