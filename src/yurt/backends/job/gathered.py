"""The scripts that gather the records in run folders, and the parsers of their output. Pure."""

from __future__ import annotations

import re

from yurt.backends import scripts
from yurt.backends.job import tar_members
from yurt.model import layout
from yurt.model.files import Gathered


def gatherer() -> str:
    return scripts.text("gather.sh", "job")


def tasks_gatherer() -> str:
    return scripts.text("gather_tasks.sh", "job")


LINE = re.compile(r"([0-9]{1,9})/([^/:]+?)(?:\.d/text)?:(.*)")
LOGGED = re.compile(rf"==> ([0-9]{{1,9}})/({re.escape(layout.METRICS)}) <==")


def read_tasks(text: str) -> dict[str, dict[int, Gathered]]:
    """Return the records of tasks, by folder of the sweep and task number."""
    found: dict[str, dict[int, Gathered]] = {}
    tasks: dict[int, Gathered] = {}
    logged: re.Match[str] | None = None
    for line in text.split("\n"):
        if logged is not None:
            tasks.setdefault(int(logged[1]), Gathered()).files[logged[2]] = line.encode()
            logged = None
        elif line.startswith("= "):
            tasks = found.setdefault(line[2:], {})
        elif (match := LINE.fullmatch(line)) is not None:
            tasks.setdefault(int(match[1]), Gathered()).files[match[2]] = match[3].encode()
        else:
            logged = LOGGED.fullmatch(line)
    return found


def read(answer: bytes, *, cut: bool) -> dict[str, Gathered]:
    """Return the records by folder, in the requested order. `cut`: the output is truncated; omit its last folder."""
    found: dict[str, Gathered] = {}
    files, times, complete = tar_members.read_with_times(answer)
    if not (cut or complete):
        raise ValueError("the archive of the records is incomplete")
    for member, content in files.items():
        path = member.removesuffix("/text").removesuffix(".d") if member.endswith("/text") else member
        folder, _, name = path.rpartition("/")
        each = found.get(folder)
        if each is None:
            each = found[folder] = Gathered()
        each.files[name] = content
        if name == layout.RUN:
            each.made = times[member]
    if cut and found:
        found.popitem()
    return found
