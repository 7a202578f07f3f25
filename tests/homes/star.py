"""Homes in sync on this machine alone: each place is a folder, and `ssh` is a shell with another home."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.calls import Called
from yurt.cli import main
from yurt.homes import config, places, profile, rounds
from yurt.homes.config import Homes, PlaceSettings
from yurt.homes.outcomes import Round
from yurt.homes.places import Place
from yurt.transport.local import LocalHost


class Login(LocalHost):
    """A login host with a home of its own, on this machine. Its queue is empty."""

    def __init__(self, name: str, home: Path) -> None:
        self.name, self.home, self.tools = name, home, home.with_name(f"{name}-tools")
        self.path = ""  # instead of that of this machine
        self.tools.mkdir()
        (self.tools / "squeue").write_text("#!/bin/sh\necho JOBID\n")
        (self.tools / "squeue").chmod(0o755)

    def argv(self, command: str) -> list[str]:
        path = f"{self.tools}:{self.path or os.environ['PATH']}"
        return ["env", f"PATH={path}", f"HOME={self.home}", f"UNISON={self.home}/.unison", "sh", "-c", command]


class Star:
    """This machine as the hub, and sites around it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, sites: Sequence[str] = ("alpha",)) -> None:
        self.roots = {name: folder / name for name in ("local", *sites)}
        for root in self.roots.values():
            root.mkdir(parents=True)
        variables = {"YURT_CONFIG_HOME": "config", "YURT_DATA_HOME": "data", "UNISON": "unison"}
        for variable, name in variables.items():
            patch.setenv(variable, str(folder / name))
        self.homes = Homes(places={name: PlaceSettings() for name in sites}, folder=str(self.roots["local"]))
        config.save(self.homes)
        logins = {name: Login(name, self.roots[name]) for name in sites}
        patch.setattr(Place, "host", property(lambda place: LocalHost() if place.here else logins[place.name]))

    @property
    def places(self) -> list[Place]:
        return places.all_places(self.homes)

    def place(self, name: str) -> Place:
        return next(each for each in self.places if each.name == name)

    def backups(self, place: str) -> Path:
        """Return the folder with the dated folders of a place."""
        folder = Path(os.environ["UNISON"]) if place == "local" else self.roots[place] / ".unison"
        return folder / "backup"

    def write(self, place: str, path: str, text: str, age: float = 0) -> None:
        """Write a file into a home, as if it had been changed some seconds ago."""
        file = self.roots[place] / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if age:
            at = file.stat().st_mtime - age
            os.utime(file, (at, at))

    def read(self, place: str, path: str) -> str:
        return (self.roots[place] / path).read_text()

    def profile(self, text: str) -> None:
        """Write the user's part of the profile."""
        file = profile.file_here(self.homes)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def sync(self) -> Round:
        """Sync the homes."""
        return rounds.run(self.homes)

    def yurt(self, *words: str) -> Called:
        """Call yurt in this process."""
        streams = [io.TextIOWrapper(io.BytesIO(), "utf8", "backslashreplace", write_through=True) for _each in range(2)]
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code = main.run([*words])
        out, err = (stream.buffer.getvalue().decode() for stream in streams)
        return Called(code, out, err)
