"""`python -m tests.campaign.hostile`: replaces each field of each answer of a site by hostile words.

A case is one recorded answer with one field replaced. What a site prints may be wrong, but must not start a program,
write a file outside of its folders, hang, or raise anything but a YurtError. Exits with 1 if it does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.campaign import hostile_answers as answers
from tests.campaign.hostile_answers import ANSWERS, Recorded
from tests.campaign.hostile_places import PLACES
from tests.campaign.hostile_python import PYTHON
from yurt.errors import YurtError

EVERY = [*ANSWERS, *PLACES, *PYTHON]
"""All recorded answers."""

CASES = 20_000
SLOW = 20
"""Seconds that one case may take."""

PLAIN = [
    "", " ", "-", "--", "-F/tmp/cfg", "-E/tmp/log", "-oProxyCommand=id", "--install-extension=x", "--output=/tmp/out",
    ".", "..", "../../../../tmp/x", "/", "/etc/passwd", "~/.ssh/authorized_keys", "~root", "a/../../b", "//", "./-x",
    'al" x', "it's", "`id`", "$(id)", "${HOME}", "$HOME", ";id", "|id", "&id", "a b", "a\tb", "*", "?", "[a-z]",
    "{a,b}", "%", "%h", "%%", "%n%s", "%d%C", "\\", "\\\\", "\\n", "a\\", "#", "!", "=", ":", ",", "|", "||||||||",
    "::", "=:=", "a\nb", "\n", "\r", "\r\n", "\nHost *\n  ProxyCommand id\n", "= queue", "= folders\n", "\x00",
    "a\x00b", "\x01", "\x07", "\x08", "\x1b[2J", "\x1b]0;owned\x07", "\x1b]8;;http://x\x07", "\x7f", "\x9b6n",
    "\u202e", "\u2028", "ü", "日本", "🙂", "e\u0301", "\ufeff", "²", "٣", "\udcff", "\udc80/..", "A" * 300,
    "x" * 10_000, "9" * 5_000, "/" * 5_000, "../" * 400, "0", "-1", "+1", "00", "1e999", "1e18", "-1e18", "nan",
    "inf", "NaN", "Infinity", "0x10", "1_000", "18446744073709551616", "99999999999999999999999999", "0-999999999999",
    "0-2000000000", "5-1", "0-8:0", "[0-99999999%4]", "1,2,,3", "4:0:0-3", "null", "true", "false", "{}", "[]",
    "[[[[[[", "{\"a\":", "\"", "\\ud800", "[" * 5_000, "<script>", "http://evil/", "file:///", "UNLIMITED", "INVALID",
    "N/A", "(null)", "None", "Unknown", "9999-99-99T99:99:99", "0000-00-00T00:00:00", "1-00:00:00", "n[1-2]", "n[1",
    "n]", "n[1-99999999999]", "((((", "a" * 40 + "!", "@", "user@host", "user@host:22", "ssh://h", "::1", "[::1]",
]  # fmt: skip
NUMBERS: list[object] = [-1, 10**30, -(10**30), 1e300, 2**63, 1e18, None, True, [], {}, [[]], {"a": {}}, 0.5]
"""What replaces a value of JSON, in addition to the words."""


def words(count: int = 200) -> list[str]:
    """Return hostile words: the plain ones, and combinations of them."""
    dice = Random("hostile")
    found = list(dict.fromkeys(PLAIN))
    while len(found) < count:
        found.append("".join(dice.choice(PLAIN)[:200] for _part in range(dice.randint(2, 3))))
    return found[:count]


CLOSEST = ("dev node", "run.json", "word")
"""Answers whose words become arguments and paths of this machine: each sample has the telling words for them."""

TELLING = ("-F/tmp/cfg", "--output=/tmp/out", "../../../../tmp/x", 'al" x', "a\nb", "a\x00b")


class Case(NamedTuple):
    """A recorded answer, the field to replace, and what replaces it."""

    recorded: Recorded
    field: int
    word: object


def cases() -> Iterator[Case]:
    """Yield each field of each answer with each word, or with each value of JSON."""
    every: list[object] = [*words()]
    for recorded in EVERY:
        for field in range(recorded.fields):
            yield from (Case(recorded, field, word) for word in (*every, *(NUMBERS if recorded.json else ())))


class Violation(BaseException):
    """What no answer may cause. Not an Exception: nothing that handles errors may hide it."""


class Watch:
    """Watches what this process does while a case runs: programs, connections, and files outside of a folder."""

    PROGRAMS = (
        "subprocess.Popen",
        "os.posix_spawn",
        "os.exec",
        "os.system",
        "os.fork",
        "socket.connect",
        "webbrowser.open",
    )
    CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate")

    def __init__(self) -> None:
        self.folder = ""
        self.others: frozenset[int | None] = frozenset()
        """Threads of other tests, which may outlive these."""
        sys.addaudithook(self._see)

    @contextlib.contextmanager
    def only(self, folder: Path) -> Iterator[None]:
        """Violation if a program starts in this block, if a file outside of the folder changes, or if it hangs."""

        def hangs(*_signal: object) -> None:
            raise Violation(f"more than {SLOW} s")

        before = signal.signal(signal.SIGALRM, hangs)
        signal.alarm(SLOW)
        self.others = frozenset(each.ident for each in threading.enumerate()) - {threading.get_ident()}
        self.folder = f"{os.path.realpath(folder)}/"
        compiles, sys.dont_write_bytecode = not sys.dont_write_bytecode, True  # of a module that is imported late
        try:
            yield
        finally:
            self.folder = ""
            sys.dont_write_bytecode = not compiles
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder or threading.get_ident() in self.others:
            return
        if event in self.PROGRAMS:
            raise Violation(f"{event} {arguments[:2]}")
        if event in self.CHANGES:
            self._check(event, arguments[:2] if event in ("os.rename", "os.link") else arguments[:1])
        elif event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self._check(event, arguments[:1])

    def _check(self, event: str, paths: Sequence[object]) -> None:
        for each in paths:
            path = os.fsdecode(each) if isinstance(each, (str, bytes, os.PathLike)) else ""
            whole = os.path.abspath(path)  # noqa: PTH100 (a link is not followed: this only compares names)
            if path and not f"{whole}/".startswith(self.folder) and path != os.devnull:
                raise Violation(f"{event} {path!r}")


WATCH = Watch()


def run(case: Case, folder: Path) -> str:
    """Return what went wrong in a case; empty if nothing did."""
    answer = case.recorded.changed(case.field, case.word)
    try:
        with WATCH.only(folder):
            case.recorded.use(answers.Site(folder, answer))
    except YurtError:
        pass
    except Violation as error:
        return str(error)
    except Exception as error:
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]!r} in {last.filename}:{last.lineno}"
    return ""


def campaign(chosen: Sequence[Case], report: Callable[[str], None]) -> dict[str, list[str]]:
    """Run cases; return what went wrong, with the names of the cases."""
    wrong: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="yurt-hostile-") as temporary, answers.user(Path(temporary)):
        for recorded in EVERY:  # each is read as it is, or the campaign shows nothing
            recorded.use(answers.Site(Path(temporary), recorded.content))
        for number, case in enumerate(chosen):
            found = run(case, Path(temporary))
            if found:
                where = f"{case.recorded.name}, field {case.field} = {str(case.word)[:40]!a}"
                wrong.setdefault(found, []).append(where)
                report(f"{where}: {found}")
            if number % 1000 == 999:
                report(f"{number + 1} cases")
    return wrong


def sample(count: int, seed: int) -> list[Case]:
    """Return some of the cases, at least one of each field."""
    dice = Random(seed)
    every = list(cases())
    fields: dict[tuple[str, int], list[Case]] = {}
    for case in every:
        fields.setdefault((case.recorded.name, case.field), []).append(case)
    chosen = [dice.choice(each) for each in fields.values()]
    chosen += [case for case in every if case.recorded.name in CLOSEST and case.word in TELLING]
    return chosen + dice.sample(every, max(0, min(count, len(every)) - len(chosen)))


def main() -> int:
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 1
    began, chosen = time.monotonic(), sample(CASES, seed)
    wrong = campaign(chosen, lambda line: print(line, flush=True))
    print(f"seed {seed}: {len(chosen)} cases in {time.monotonic() - began:.0f} s, {len(wrong)} kinds of failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
