"""`yurt home sync` next to bare Unison over the same link: 20,000 small files, measured in turns in one run.

Unison is measured twice: as a user types it, with a connection of its own as yurt needs none, and over a connection
that is open already.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, alpha
from yurt.homes import profile

ROUNDS = 3
FILES, FOLDERS = 20_000, 200
SETTLED = 3
"""Seconds after which an edit is old for yurt."""
BUDGET = 1.15
JUST_COPIED = "again"
"""No change, right after a sync that has copied something: then yurt has to start Unison to know that."""


def create(folder: Path) -> None:
    dice = Random(20)
    for number in range(FILES):
        file = path(folder, number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(dice.randbytes(dice.randint(200, 1800)))


def path(folder: Path, number: int) -> Path:
    return folder / f"d{number % FOLDERS}" / f"f{number}"


def change(folder: Path, seed: object) -> None:
    """Change 1 % of the files."""
    dice = Random(f"{seed}")
    for number in dice.sample(range(FILES), FILES // 100):
        path(folder, number).write_bytes(dice.randbytes(2000))


class Side:
    """One of the two tools: its folder here, its folder on alpha, and its command."""

    def __init__(self, bench: Bench, label: str, name: str) -> None:
        self.bench, self.label, self.name = bench, label, name
        self.folder, self.unison = bench.home / name, bench.home / f"unison-{name}"

    def prepare(self, files: Path) -> None:
        """Forget everything, and put the files into the folder here."""
        for each in (self.folder, self.unison):
            shutil.rmtree(each, ignore_errors=True)
        self.unison.mkdir(mode=0o700)
        subprocess.run(["cp", "-r", str(files), str(self.folder)], check=True)
        (self.folder / ".yurt-home").touch()
        there = shlex.quote(self.name)
        remote = f"rm -rf {there} .unison/ar* .unison/fp* .unison/backup && mkdir {there} && touch {there}/.yurt-home"
        subprocess.run([*self.bench.ssh, "alpha", remote], capture_output=True, check=True)

    def sync(self) -> float:
        return self.bench.seconds(self.command(), more={"UNISON": str(self.unison)})

    def command(self) -> list[str]:
        raise NotImplementedError


class Yurt(Side):
    """`yurt home sync`."""

    def prepare(self, files: Path) -> None:
        super().prepare(files)
        (self.bench.home / "data" / "homes.json").unlink(missing_ok=True)
        homes = {"hub": "local", "folder": str(self.folder), "places": {"alpha": {"root": self.name}}}
        file = self.bench.home / "config" / "homes.yaml"
        file.write_text(json.dumps(homes))
        file.chmod(0o600)

    def command(self) -> list[str]:
        return [YURT, "home", "sync", "--yes"]


class Bare(Side):
    """Unison itself with yurt's profile."""

    def prepare(self, files: Path) -> None:
        super().prepare(files)
        (self.unison / "yurt-homes.prf").write_bytes(profile.merged(b""))

    def command(self) -> list[str]:
        words = ["-batch", "-auto", *self.link(), "-log=false"]
        return ["unison", "yurt-homes", str(self.folder), f"ssh://alpha/{self.name}", *words]

    def link(self) -> list[str]:
        return ["-sshargs", shlex.join(self.bench.ssh[1:])]


class Open(Bare):
    """The same, of the same folders, over a connection that is open already."""

    def connect(self) -> None:
        socket = self.bench.home / "s"
        link = self.bench.home / "link"
        if not socket.exists():
            options = ["-o", "ControlMaster=yes", "-o", f"ControlPath={socket}", "-o", "ControlPersist=yes"]
            # Its output goes nowhere: the connection stays open, and would keep a pipe open.
            subprocess.run([*self.bench.ssh, *options, "alpha", "true"], stderr=subprocess.DEVNULL, check=True)
            link.write_text(f'#!/bin/sh\nexec {shlex.join(self.bench.ssh)} -o ControlPath={socket} "$@"\n')
            link.chmod(0o700)

    def link(self) -> list[str]:
        return ["-sshcmd", str(self.bench.home / "link")]


def main() -> int:
    if os.geteuid() != 0 or shutil.which("unison") is None:
        print("home: SKIPPED: the lab needs root, and Unison is needed")
        return 0
    times: dict[str, dict[str, list[float]]] = {}
    with alpha() as bench:
        create(bench.home / "files")
        third = Open(bench, "open", "bare")
        third.connect()
        sides = [Yurt(bench, "yurt", "yurt"), Bare(bench, "unison", "bare"), third]
        for number in range(ROUNDS):
            one_round(bench, sides if number % 2 else sides[::-1], number, times)
    for action, both in times.items():
        for name, values in both.items():
            print(f"{action:18}{name:8}" + "".join(f"{value:8.2f} s" for value in values))
    return table(
        f"home sync of {FILES:,} files, relative to unison",
        [
            *(
                Figure(action, ratio(each, "unison"), None if action == JUST_COPIED else BUDGET)
                for action, each in times.items()
            ),
            *(
                Figure(f"{action}, to an open connection", ratio(each, "open"))
                for action, each in times.items()
                if "open" in each
            ),
        ],
        "ratio",
    )


def ratio(measured: dict[str, list[float]], other: str) -> float:
    return statistics.median(one / two for one, two in zip(measured["yurt"], measured[other], strict=True))


def one_round(bench: Bench, sides: list[Side], number: int, times: dict[str, dict[str, list[float]]]) -> None:
    def measure(action: str, among: Sequence[Side], *, changed: str = "") -> None:
        for side in among:
            if changed:
                change(side.folder, f"{changed} {side.label}")
            os.sync()
            times.setdefault(action, {}).setdefault(side.label, []).append(side.sync())

    separate = [side for side in sides if not isinstance(side, Open)]
    for side in separate:
        side.prepare(bench.home / "files")
    measure("first", separate)
    for again in range(3):
        measure(JUST_COPIED, sides)
        time.sleep(SETTLED)
        for side in separate:
            side.sync()
        measure("no change", sides)
        measure("1 % changed", sides, changed=f"{number} {again}")
        sides = sides[::-1]


if __name__ == "__main__":
    sys.exit(main())
