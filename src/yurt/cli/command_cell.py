"""The command of a run in a narrow table: what differs between the commands of a list stays visible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from yurt.cli import render

CUT = "… "
"""In place of the beginning that commands share."""


class CommandCell:
    """A command that drops the beginning it shares with other commands if it does not fit its column."""

    def __init__(self, command: Sequence[str], shared: int) -> None:
        self.text = render.command_line(command)
        self.first = render.command_line(command[:1])
        self.rest = render.command_line(command[shared:]) if shared else ""

    @property
    def widest(self) -> int:
        return render.width(self.text)

    def draw(self, width: int, *, paint: bool) -> str:
        """Return the command, its first word and the rest, or only the rest: the first of these that fits."""
        del paint
        shown = self.text
        if self.rest and render.width(shown) > width:
            with_first = f"{self.first} {CUT}{self.rest}"
            shown = with_first if render.width(with_first) <= width else CUT + self.rest
        shown = render.short(shown, width)
        return shown + " " * (width - render.width(shown))


def cells(commands: Sequence[Sequence[str]]) -> list[CommandCell]:
    """Return a cell for each command; commands with the same first word are compared."""
    groups: dict[str, list[Sequence[str]]] = {}
    for command in commands:
        groups.setdefault(command[0] if command else "", []).append(command)
    shared = {first: _shared(group) for first, group in groups.items()}
    return [CommandCell(command, shared[command[0] if command else ""]) for command in commands]


def _shared(commands: Sequence[Sequence[str]]) -> int:
    """Return how many words all commands begin with; 0 if they are all equal. An option stays with its value."""
    together = takewhile(lambda words: len(set(words)) == 1, zip(*commands, strict=False))
    count = sum(1 for _words in together)
    if all(len(command) == count for command in commands):
        return 0
    if count > 1 and commands[0][count - 1].startswith("-"):
        count -= 1
    return count
