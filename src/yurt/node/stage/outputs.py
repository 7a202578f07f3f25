"""Copies the outputs of a run from the disk of a node to where they stay, and back for a later start."""

import os
import time
from typing import Callable, List, NamedTuple, Sequence, Tuple

from yurt.node.files import remove
from yurt.node.stage import tree
from yurt.node.stage.words import amount, host, is_full

PATIENCE = 30.0
"""Seconds for which a full disk may get room."""

PAUSE = 2.0


class Output(NamedTuple):
    """An output: its name in the folder of the run, and the path that it is copied to."""

    name: str
    target: str


class LateError(Exception):
    """There is no time left."""


class Report(NamedTuple):
    """What became of the outputs."""

    copied: int
    """Files that were copied."""
    problem: str
    """What was not copied and why, in a sentence; empty if everything was."""


def copy_back(files: str, outputs: Sequence[Output], check: tree.Check, say: Callable[[str], None]) -> Report:
    """Copy what is new, smallest files first. Never raises OSError.

    `check` raises LateError when the time is up. What is not copied then keeps its earlier content.
    """
    todo, problem = _todo(files, outputs, say)
    copied, began, why = 0, time.monotonic(), problem
    while todo:
        left = []  # type: List[Tuple[tree.Entry, str]]
        full = False
        for at, (entry, target) in enumerate(todo):
            try:
                check()
                os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
                if entry.kind == "folder":
                    _folder(entry, target)
                elif entry.kind == "link":
                    tree.copy_link(entry, target)
                else:
                    tree.copy_file(entry, target, check)
                    copied += 1
            except LateError:
                left += todo[at:]
                why, full = "the job was killed before it was complete", False
                break
            except OSError as error:
                left.append((entry, target))
                full = full or is_full(error)
                why = "no space left in %s" % os.path.dirname(target) if is_full(error) else _why(error, target)
        todo = left
        if not full or time.monotonic() - began > PATIENCE:
            break
        try:
            _pause(check)
        except LateError:
            break
    return Report(copied, _in_words([entry for entry, _target in todo], why))


def bring(output: Output, path: str, check: tree.Check) -> None:
    """Copy an output of an earlier start to the folder of the run. OSError if that fails."""
    if not os.path.lexists(output.target):
        return
    for entry in tree.scan(output.target, follow=False):
        target = os.path.join(path, entry.path) if entry.path else path
        if entry.kind == "folder":
            os.makedirs(target, mode=0o700, exist_ok=True)
        elif entry.kind == "link":
            tree.copy_link(entry, target)
        else:
            if os.path.isdir(target) and not os.path.islink(target):
                remove(target)
            tree.copy_file(entry, target, check)


def _todo(
    files: str, outputs: Sequence[Output], say: Callable[[str], None]
) -> Tuple[List[Tuple[tree.Entry, str]], str]:
    """Return what to copy, in order, and why something cannot be read."""
    found, problem = [], ""
    for output in outputs:
        path = os.path.join(files, output.name)
        try:
            entries = tree.scan(path, follow=False)
        except FileNotFoundError:
            say("output %s was not made" % output.name)
            continue
        except OSError as error:
            problem = "cannot read output %s: %s" % (output.name, error.strerror)
            say(problem)
            continue
        if not entries or (entries[0].kind == "folder" and len(entries) == 1):
            say("output %s is empty" % output.name)
            continue
        for entry in entries:
            target = os.path.join(output.target, entry.path) if entry.path else output.target
            if entry.kind != "file" or not tree.is_same(entry, target):
                named = entry._replace(path=os.path.join(output.name, entry.path).rstrip("/"))
                found.append((named, target))
    order = {"folder": 0, "link": 1, "file": 2}
    return sorted(found, key=lambda each: (order[each[0].kind], each[0].size)), problem


def _folder(entry: tree.Entry, target: str) -> None:
    if os.path.islink(target) or (os.path.exists(target) and not os.path.isdir(target)):
        os.unlink(target)
    if not os.path.isdir(target):
        os.mkdir(target, entry.mode | 0o700)


def _pause(check: tree.Check) -> None:
    until = time.monotonic() + PAUSE
    while time.monotonic() < until:
        check()
        time.sleep(0.1)


def _why(error: OSError, target: str) -> str:
    return "%s: %s" % (error.filename or target, error.strerror or error)


def _in_words(left: Sequence[tree.Entry], why: str) -> str:
    files = [each for each in left if each.kind != "folder"]
    if not files:
        return why if left or why else ""
    largest = max(files, key=lambda each: each.size)
    size = amount(sum(each.size for each in files))
    if len(files) == 1:
        return "output %s (%s) was not copied back from %s: %s" % (largest.path, size, host(), why)
    text = "%d files of the outputs (%s, such as %s) were not copied back from %s: %s"
    return text % (len(files), size, largest.path, host(), why)
