"""The homes of a campaign: what each contains, what its user changes, and every version that the user made."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

NAMES = ["notes", "a b", "quote'd", "dash-", "umlaut-ä", "dollar$x", "new\nline", "star*", "brackets[1]", "(1)", ".dot"]
MODES = [0o600, 0o644, 0o755, 0o640, 0o444]
FOLDER_MODES = [0o700, 0o755, 0o750]
TEMPORARY = re.compile(r"\.unison\..*\.tmp$")
LARGE = 400_000


class Entry(NamedTuple):
    """What is at a path. Every version of a file, and every target of a link, is unique in a campaign."""

    kind: str
    mode: int
    version: str
    """A checksum of the content, or the target of a link; empty for a folder."""


Tree = dict[str, Entry]
"""Entries by path, relative to the home."""


def read(top: Path) -> Tree:
    """Return everything below a folder, without the temporary files of Unison."""
    found: Tree = {}
    _read(top, "", found)
    found.pop(".yurt-home", None)
    return found


def _read(top: Path, below: str, found: Tree) -> None:
    with os.scandir(top / below) as entries:
        for each in entries:
            path, mode = below + each.name, each.stat(follow_symlinks=False).st_mode & 0o7777
            if TEMPORARY.match(each.name):
                continue
            if each.is_symlink():
                found[path] = Entry("link", 0, os.readlink(each.path))
            elif each.is_dir():
                found[path] = Entry("folder", mode, "")
                _read(top, f"{path}/", found)
            else:
                found[path] = Entry("file", mode, digest(Path(each.path).read_bytes()))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


class Place:
    """A home, as this machine sees it, its owner, and the folder with its backups."""

    def __init__(self, name: str, root: Path, unison: Path, owner: tuple[int, int]) -> None:
        self.name, self.root, self.unison, self.owner = name, root, unison, owner
        self.foreign = {each.name for each in self.dated()}
        """Dated backups that are not of this campaign."""

    def dated(self) -> list[Path]:
        folder = self.unison / "backup"
        return [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []

    def backups(self) -> set[tuple[str, str]]:
        """Return the path and version of every file and link in the backups."""
        mine = [each for each in self.dated() if each.name not in self.foreign]
        return {(path, each.version) for folder in mine for path, each in read(folder).items() if each.version}

    def arriving(self) -> bool:
        """Whether a temporary file of Unison is in the home."""
        return any(TEMPORARY.match(name) for _top, folders, files in os.walk(self.root) for name in (*folders, *files))

    def saving(self) -> bool:
        """Whether Unison is saving its archives."""
        files = self.unison.iterdir() if self.unison.is_dir() else ()
        return any(each.name.startswith(("tm", "sc", "DANGER")) for each in files)


class Editor:
    """The user: changes the homes at random, and knows every version that he made."""

    def __init__(self, places: Sequence[Place], dice: Random, known: set[str]) -> None:
        self.places, self.dice = places, dice
        self.known = known
        """Every version of the user. Several stars share it, because they share the backups of a site."""
        self.fresh: set[tuple[str, str]] = set()
        """Place and path of each version since the last `begin`."""
        self._number = 0

    def begin(self) -> None:
        self.fresh.clear()

    def edit(self, times: int) -> None:
        """Make some changes, a part of them to the same path on several places."""
        for _ in range(times):
            place = self.dice.choice(self.places)
            if self.dice.random() < 0.25:
                self._conflict()
            else:
                self._change(place)

    def _conflict(self) -> None:
        """Change one path on two or three places."""
        first, *others = self.dice.sample(list(self.places), self.dice.randint(2, len(self.places)))
        paths = self._paths(first, "file") + self._paths(first, "link")
        path = self.dice.choice(paths) if paths and self.dice.random() < 0.8 else self._new_path(first)
        for place in (first, *others):
            act = self.dice.choice(["write", "write", "write", "delete", "mode", "link"])
            here = place.root / path
            there = os.path.lexists(here)
            if act == "delete" and there:
                self._delete(place, path)
            elif act == "mode" and here.is_file() and not here.is_symlink():
                here.chmod(self.dice.choice(MODES))
            elif act == "link":
                self._link(place, path)
            else:
                self._write(place, path)

    def _change(self, place: Place) -> None:
        dice = self.dice
        files, folders = self._paths(place, "file"), self._paths(place, "folder")
        links = self._paths(place, "link")
        some = len(files) > 60
        act = dice.choices(
            ["write", "create", "delete", "rename", "mode", "link", "folder", "drop", "move", "turn"],
            [6, 1 if some else 5, 6 if some else 2, 3, 2, 2, 1, 1 if some else 0.4, 1, 0.5],
        )[0]
        if act == "create" or not files:
            self._write(place, self._new_path(place))
        elif act == "write":
            self._write(place, dice.choice(files))
        elif act == "delete":
            self._delete(place, dice.choice(files + links))
        elif act == "rename":
            self._rename(place, dice.choice(files + links), self._new_path(place))
        elif act == "mode":
            path = dice.choice(files + folders)
            (place.root / path).chmod(dice.choice(FOLDER_MODES if path in folders else MODES))
        elif act == "link":
            self._link(place, dice.choice(links) if links and dice.random() < 0.5 else self._new_path(place))
        elif act == "folder" or not folders:
            self._make_folder(place, self._new_path(place))
        elif act == "drop":
            self._delete(place, dice.choice(folders))
        elif act == "move":
            self._rename(place, dice.choice(folders), self._new_path(place))
        else:  # a file becomes a folder
            path = dice.choice(files)
            self._delete(place, path)
            self._write(place, f"{path}/{dice.choice(NAMES)}")

    def _paths(self, place: Place, kind: str) -> list[str]:
        return sorted(path for path, each in read(place.root).items() if each.kind == kind)

    def _new_path(self, place: Place) -> str:
        """Return the path of something new, in any folder, or in a new one."""
        folders = ["", *(f"{each}/" for each in self._paths(place, "folder") if each.count("/") < 3)]
        self._number += 1
        new = f"{self.dice.choice(NAMES).lstrip('.')} {self._number}"
        if self.dice.random() < 0.3:
            new = f"{new}/{self.dice.choice(NAMES)}"
        return self.dice.choice(folders) + new

    def _write(self, place: Place, path: str) -> None:
        self._number += 1
        size = LARGE if self.dice.random() < 0.06 else self.dice.randint(0, 4000)
        content = f"{self._number} {place.name} {path}\n".encode() + self.dice.randbytes(size)
        target = place.root / path
        if target.is_dir() and not target.is_symlink():
            self._delete(place, path)
        self._make_folder(place, os.path.dirname(path))  # noqa: PTH120 (relative to a home)
        if target.is_symlink() or self.dice.random() < 0.5:  # some editors replace a file, others write into it
            aside = target.with_name(f"{target.name}.aside")
            aside.write_bytes(content)
            mode = target.stat().st_mode & 0o7777 if target.is_file() and not target.is_symlink() else 0o644
            aside.chmod(mode)
            aside.replace(target)
        else:
            target.write_bytes(content)
        os.lchown(target, *place.owner)
        self._made(place, path, digest(content))

    def _link(self, place: Place, path: str) -> None:
        self._number += 1
        target = place.root / path
        if os.path.lexists(target):
            self._delete(place, path)
        self._make_folder(place, os.path.dirname(path))  # noqa: PTH120
        leads = f"to {self._number} {self.dice.randrange(10**9)}"
        target.symlink_to(leads)
        os.lchown(target, *place.owner)
        self._made(place, path, leads)

    def _made(self, place: Place, path: str, version: str) -> None:
        self.known.add(version)
        self.fresh.add((place.name, path))

    def _make_folder(self, place: Place, path: str) -> None:
        """Create a folder and those above it; a file or a link in the way becomes a folder."""
        above = place.root
        for name in path.split("/") if path else ():
            above /= name
            if above.is_symlink() or above.is_file():
                self._delete(place, str(above.relative_to(place.root)))
            if not above.exists():
                above.mkdir()
                os.chown(above, *place.owner)

    def _delete(self, place: Place, path: str) -> None:
        target = place.root / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()
        self._gone(place, path)

    def _gone(self, place: Place, path: str) -> None:
        self.fresh = {
            (name, each)
            for name, each in self.fresh
            if name != place.name or (each != path and not each.startswith(f"{path}/"))
        }

    def _rename(self, place: Place, path: str, new: str) -> None:
        if new.startswith(f"{path}/"):
            return
        self._make_folder(place, os.path.dirname(new))  # noqa: PTH120
        if not os.path.lexists(place.root / path):  # it was in the way of the new folder
            return
        (place.root / path).rename(place.root / new)
        self._gone(place, path)
        below = f"{new}/"
        for each, entry in read(place.root).items():
            if entry.version and (each == new or each.startswith(below)):
                self.fresh.add((place.name, each))
