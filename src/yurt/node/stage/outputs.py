"""Copies the outputs of a run from the disk of a node to where they stay, and back for a later start."""

import functools
import os
import time
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from yurt.node.files import remove
from yurt.node.stage import tree
from yurt.node.stage.words import amount, host, is_full

PATIENCE = 30.0
"""Seconds for which a full disk may get room."""

PAUSE = 2.0

NAMED = 5
"""Files that are named if they are not copied, or will not be of use."""

LATE = "the job was killed before it was complete"


class Output(NamedTuple):
    """An output: its name in the folder of the run, and the path that it is copied to."""

    name: str
    target: str
    spare: str = ""
    """A path in the run folder for what cannot be copied to the target; empty if the target is there."""
    place: str = ""
    """The target as the user named it."""


class Item(NamedTuple):
    """Something to copy, its path named as the user knows it."""

    entry: tree.Entry
    target: str
    spare: str
    place: str


class LateError(Exception):
    """There is no time left."""


class Report(NamedTuple):
    """What became of the outputs."""

    copied: int
    """Files that were copied."""
    problem: str
    """What was not copied and why, in a sentence; empty if everything was."""
    left: bool
    """Whether something is only on the node."""


class Here(NamedTuple):
    """What a run has on this node, for links in its outputs."""

    files: str
    """The folder that it sees as $YURT_STAGE."""
    inputs: Sequence[str] = ()
    """The copies of its inputs."""
    disks: Sequence[str] = ()
    """Folders that only this node has."""


def copy_back(here: Here, outputs: Sequence[Output], check: tree.Check, say: Callable[[str], None]) -> Report:
    """Copy what is new, smallest files first. Never raises OSError.

    `check` raises LateError when the time is up. What is not copied then keeps its earlier content.
    """
    todo, why = _todo(here, outputs, say)
    copied, began = 0, time.monotonic()
    while todo:
        before = _files(todo)
        todo, late, error = _copy_all(todo, check)
        copied += before - _files(todo)
        if late or error is not None:
            why = LATE if late or error is None else _why(error)
        if late or error is None or not is_full(error) or time.monotonic() - began > PATIENCE:
            break
        try:
            _pause(check)
        except LateError:
            break
    left = [each.entry for each in todo]
    spared = [each._replace(target=each.spare, spare="") for each in todo if each.spare]
    if spared and len(spared) == len(todo) and not _copy_all(spared, check)[0]:
        return Report(copied, _spared_in_words(todo, why), False)
    return Report(copied, _in_words(left, why), bool(todo))


def _files(items: Sequence[Item]) -> int:
    return sum(each.entry.kind == "file" for each in items)


def _copy_all(todo: Sequence[Item], check: tree.Check) -> Tuple[List[Item], bool, Optional[OSError]]:
    """Copy everything; return what is left, whether the time is up, and an error. A full disk is the error, if so."""
    left = []  # type: List[Item]
    problem = None  # type: Optional[OSError]
    for at, item in enumerate(todo):
        try:
            check()
            os.makedirs(os.path.dirname(item.target), mode=0o700, exist_ok=True)
            if item.entry.kind == "folder":
                _folder(item.entry, item.target)
            elif item.entry.kind == "link":
                tree.copy_link(item.entry, item.target)
            else:
                tree.copy_file(item.entry, item.target, check)
        except LateError:
            return [*left, *todo[at:]], True, problem
        except OSError as error:
            left.append(item)
            if problem is None or is_full(error):
                problem = error
    return left, False, problem


def bring(output: Output, path: str, check: tree.Check) -> None:
    """Copy an output of an earlier start to the folder of the run. OSError if that fails."""
    for source in (output.target, output.spare):
        if source and os.path.lexists(source):
            _bring(source, path, check)


def _bring(source: str, path: str, check: tree.Check) -> None:
    for entry in tree.scan(source, follow=False):
        target = os.path.join(path, entry.path) if entry.path else path
        if entry.kind == "folder":
            os.makedirs(target, mode=0o700, exist_ok=True)
        elif entry.kind == "link":
            tree.copy_link(entry, target)
        else:
            if os.path.isdir(target) and not os.path.islink(target):
                remove(target)
            tree.copy_file(entry, target, check)


def _todo(here: Here, outputs: Sequence[Output], say: Callable[[str], None]) -> Tuple[List[Item], str]:
    """Return what to copy, in order, and why something cannot be read."""
    found = []  # type: List[Item]
    problem = ""
    replaced = _real([*here.inputs, *(os.path.join(here.files, each.name) for each in outputs)])
    lost = _real([here.files, *here.disks])
    notes = []  # type: List[str]
    for output in outputs:
        path = os.path.join(here.files, output.name)
        try:
            entries = tree.scan(path, False, replaced, lost, functools.partial(_note, notes, output.name))
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
            target, spare = (_below(each, entry.path) for each in (output.target, output.spare))
            if entry.kind != "file" or not tree.is_same(entry, target):
                named = entry._replace(path=os.path.join(output.name, entry.path).rstrip("/"))
                found.append(Item(named, target, spare, output.place))
    for each in notes[:NAMED]:
        say(each)
    if len(notes) > NAMED:
        say("and %d more" % (len(notes) - NAMED))
    order = {"folder": 0, "link": 1, "file": 2}
    return sorted(found, key=lambda each: (order[each.entry.kind], each.entry.size)), problem


def _note(notes: List[str], name: str, path: str, text: str) -> None:
    notes.append("%s %s" % (os.path.join(name, path), text))


def _real(paths: Sequence[str]) -> List[str]:
    return [os.path.realpath(each) for each in paths]


def _folder(entry: tree.Entry, target: str) -> None:
    if os.path.islink(target) or (os.path.exists(target) and not os.path.isdir(target)):
        os.unlink(target)
    if not os.path.isdir(target):
        os.mkdir(target, entry.mode | 0o700)
    for name in os.listdir(target):
        if name.endswith(tree.ASIDE):  # of a start that was killed
            os.unlink(os.path.join(target, name))


def _pause(check: tree.Check) -> None:
    until = time.monotonic() + PAUSE
    while time.monotonic() < until:
        check()
        time.sleep(0.1)


def _below(folder: str, path: str) -> str:
    return os.path.join(folder, path) if folder and path else folder


def _why(error: OSError) -> str:
    if is_full(error):
        return "no space left on the disk of %s" % os.path.dirname(error.filename or "")
    return "%s: %s" % (error.filename or "", error.strerror or error)


def _in_words(left: Sequence[tree.Entry], why: str) -> str:
    what, several = _what(left)
    if not what:
        return why
    return "%s %s not copied back from %s: %s" % (what, "were" if several else "was", host(), why)


def _spared_in_words(todo: Sequence[Item], why: str) -> str:
    what, several = _what([each.entry for each in todo])
    places = ", ".join(sorted({each.place for each in todo if each.place}))
    instead = "%s in the outputs of the run instead" % ("they are" if several else "it is")
    return "%s could not be copied to %s: %s; %s" % (what or "an empty folder", places, why, instead)


def _what(left: Sequence[tree.Entry]) -> Tuple[str, bool]:
    """Return files in words, and whether there are several; empty for folders alone."""
    files = [each for each in left if each.kind != "folder"]
    if not files:
        return "", False
    largest = max(files, key=lambda each: each.size)
    size = amount(sum(each.size for each in files))
    if len(files) == 1:
        return "output %s (%s)" % (largest.path, size), False
    return "%d files of the outputs (%s, such as %s)" % (len(files), size, largest.path), True
