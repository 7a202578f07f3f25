"""The scripts that gather the records in run folders, and the parsers of their output. Pure."""

from __future__ import annotations

import io
import re
import tarfile

from yurt.backends import scripts
from yurt.model import layout
from yurt.model.files import Gathered


def gatherer() -> str:
    return scripts.text("gather.sh", "job")


def tasks_gatherer() -> str:
    return scripts.text("gather_tasks.sh", "job")


LINE = re.compile(r"(\d+)/([^/:]+?)(?:\.d/text)?:(.*)")
LOGGED = re.compile(rf"==> (\d+)/({re.escape(layout.METRICS)}) <==")


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
    try:
        with tarfile.open(fileobj=io.BytesIO(answer), mode="r:") as archive:
            for member in archive:
                path = (
                    member.name.removesuffix("/text").removesuffix(".d")
                    if member.name.endswith("/text")
                    else member.name
                )
                folder, _, name = path.rpartition("/")
                each = found.setdefault(folder, Gathered())
                content = archive.extractfile(member)
                each.files[name] = content.read() if content is not None else b""
                if name == layout.RUN:
                    each.made = float(member.mtime)
    except (tarfile.TarError, EOFError):
        cut = True
    if cut and found:
        found.popitem()
    return found
