"""What run folders say of their runs: the script that gathers it, and what it answered, read. Pure."""

from __future__ import annotations

import io
import re
import tarfile

import msgspec

from yurt.backends.shell import scripts
from yurt.model import layout
from yurt.model.state import Ending


class Gathered(msgspec.Struct):
    """What one run folder says."""

    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    """By name, without the `.d/text` of a disk without hard links."""
    made: float = 0
    """When it was made."""

    def text(self, name: str) -> str:
        return self.files.get(name, b"").decode(errors="replace").strip()

    @property
    def starts(self) -> int:
        numbers = (name.removeprefix(layout.START) for name in self.files if name.startswith(layout.START))
        return max((int(number) for number in numbers if number.isdigit()), default=0)


def gatherer() -> str:
    return scripts.text("gather.sh", "job")


def tasks_gatherer() -> str:
    return scripts.text("gather_tasks.sh", "job")


LINE = re.compile(r"(\d+)/([^/:]+?)(?:\.d/text)?:(.*)")
LOGGED = re.compile(rf"==> (\d+)/({re.escape(layout.METRICS)}) <==")


def read_tasks(text: str) -> dict[str, dict[int, Gathered]]:
    """What the folders of tasks say, by sweep's folder and number."""
    found: dict[str, dict[int, Gathered]] = {}
    tasks: dict[int, Gathered] = {}
    logged: re.Match[str] | None = None
    for line in text.split("\n"):
        if logged is not None:
            tasks.setdefault(int(logged[1]), Gathered()).files[logged[2]] = line.encode()
            logged = None
        elif line.startswith("= "):
            tasks = found.setdefault(line[2:], {})
        elif (said := LINE.fullmatch(line)) is not None:
            tasks.setdefault(int(said[1]), Gathered()).files[said[2]] = said[3].encode()
        else:
            logged = LOGGED.fullmatch(line)
    return found


def ending(said: Gathered) -> Ending | None:
    """What the job wrote of its end; None if nothing, or it is not whole."""
    try:
        return msgspec.json.decode(said.files.get(layout.EXIT) or b"null", type=Ending | None)
    except msgspec.MsgspecError:
        return None


def read(answer: bytes, *, cut: bool) -> dict[str, Gathered]:
    """What came, by folder, in the order asked for. If it was cut off the last folder is not whole, and left out."""
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
