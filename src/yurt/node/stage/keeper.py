"""Keeps the staged files of one start of a run on one node, from before its command starts until after it has ended.

It copies the inputs, waits for the end of the command, and copies the outputs back. job.sh reads the file `stage.NODE`
in the run folder: `in PATH` when the inputs are there, `no REASON` if they cannot be, `out FILES REASON` at the end.
"""

import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from yurt.node.files import NodeError, read_json
from yurt.node.stage import copies, disk, outputs, own
from yurt.node.stage.copies import Copy, Input
from yurt.node.stage.outputs import LateError, Output
from yurt.node.stage.tree import is_inside
from yurt.node.stage.words import host, one_line

ROOM = 2048
"""Bytes of the file for job.sh. It is overwritten in place: at the end, its disk may be full."""

ASKED = b"end"
"""What the file `stage-end` begins with when the command has ended on all nodes."""


class Arguments(NamedTuple):
    """What job.sh says about a start."""

    record: str
    """The path of run.json."""
    folder: str
    """The run folder."""
    run: str
    """The id of the run, or of the task of a sweep."""
    start: int
    nodes: int
    window: float
    """Seconds after TERM in which outputs can be copied; 0 for no limit."""
    sweep: str
    """The folder of the sweep; empty for a single run."""


class Ended(Exception):
    """The command has ended before the inputs were there."""


def read_arguments(words: Sequence[str]) -> Arguments:
    record, folder, run, start, nodes, window, sweep = words
    return Arguments(record, folder, run, int(start), int(nodes), float(window), sweep)


class Moments:
    """When the command has ended, and when the job will be killed: from signals, or from a file of the run folder."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.parent = os.getppid()
        self.ended = False
        self.until = None  # type: Optional[float]
        self.preparing = True
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM, signal.SIGURG):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGUSR2, self._on_end)

    def _on_term(self, _number: int, _frame: Any) -> None:
        if self.until is None and self.arguments.window:
            self.until = time.monotonic() + self.arguments.window

    def _on_end(self, _number: int, _frame: Any) -> None:
        self.ended = True
        if self.preparing:
            self.preparing = False
            raise Ended

    def look(self) -> bool:
        """Return whether the command has ended, or job.sh is gone."""
        if self.arguments.nodes > 1:
            try:
                with open(os.path.join(self.arguments.folder, "stage-end"), "rb") as stream:
                    self.ended = self.ended or stream.read(8).startswith(ASKED)
            except OSError:
                pass
        return self.ended or os.getppid() != self.parent

    def wait(self) -> None:
        """Return when the command has ended."""
        pause = 2.0 if self.arguments.nodes > 1 else 10.0
        while not self.look():
            ready, _, _ = select.select([self.reader], [], [], 0.3 if self.until is not None else pause)
            if ready:
                os.read(self.reader, 512)

    def check(self) -> None:
        """Raise LateError if the job will be killed soon."""
        if self.until is not None and time.monotonic() >= self.until:
            raise LateError

    def nothing(self) -> None:
        """Check nothing: signals interrupt what is done before the command starts."""


class Staged(NamedTuple):
    """What a start has on this node."""

    own: own.Own
    copies: List[Copy]


def keep(arguments: Arguments) -> int:
    """Stage, wait, copy back, clean up. Return 0 if nothing of the run is left on the node."""
    moments = Moments(arguments)
    reply = Reply(arguments)
    stage = read_json(arguments.record).get("stage") or {}
    wanted = [Input(each["name"], each["path"]) for each in stage.get("inputs", ())]
    results = [_output(each, arguments) for each in stage.get("outputs", ())]
    used = []  # type: List[Copy]
    place = None  # type: Optional[own.Own]
    base = ""
    try:
        base = disk.base(os.environ)
        own.clear(base, arguments.run)
        copies.clear(base)
        place = own.make(base, arguments.run, arguments.start)
        for each in wanted:
            used.append(_use(base, each, arguments.run))
        own.link(place, wanted, used)
        _prepare(place, results, arguments, moments)
        reply.write("in %s" % place.files)
        moments.preparing = False
    except Ended:
        reply.write("out 0 ")
        _leave(place, used, arguments)
        return 0
    except (NodeError, OSError) as error:
        moments.preparing = False
        reply.write("no %s" % (error if isinstance(error, NodeError) else _in_words(error, base)))
        _leave(place, used, arguments)
        return 0
    moments.wait()
    here = outputs.Here(place.files, [each.path for each in used], _node_disks(base, arguments.folder))
    report = outputs.copy_back(here, results, moments.check, say)
    problem = report.problem
    if report.left and not disk.is_of_job(base, os.environ):
        problem += "; the outputs stay in %s on that node for a day" % place.files
    reply.write("out %d %s" % (report.copied, problem))
    if report.left:
        own.keep_for_later(place)
        place = None
    _leave(place, used, arguments)
    return 1 if problem else 0


def say(text: str) -> None:
    """Write a line to err.log of the run."""
    try:
        sys.stderr.write("yurt: %s\n" % text)
        sys.stderr.flush()
    except OSError:
        pass


class Reply:
    """The file that job.sh reads."""

    def __init__(self, arguments: Arguments) -> None:
        self.path = os.path.join(arguments.folder, "stage.%s" % host())

    def write(self, text: str) -> None:
        """Replace the text, in place if possible. If the disk is full, job.sh notices that this process has ended."""
        line = one_line(text) if not text.endswith(" ") else text.rstrip() + " "
        content = line.encode("utf-8", "replace")[: ROOM - 1].ljust(ROOM - 1) + b"\n"
        try:
            try:
                descriptor = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                self._create(content)
                return
            try:
                os.pwrite(descriptor, content, 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            say("cannot write %s: %s" % (self.path, error.strerror))

    def _create(self, content: bytes) -> None:
        aside = "%s.%d.aside" % (self.path, os.getpid())
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(aside, self.path)


def _output(each: Dict[str, str], arguments: Arguments) -> Output:
    """Return an output with the path that it is copied to; with several nodes, each has a folder of its own."""
    name, base = each["name"], each.get("path", "")
    below = os.path.join(name, host()) if arguments.nodes > 1 else name
    in_run = os.path.join(arguments.folder, "outputs", below)
    if not base:
        return Output(name, in_run)
    return Output(name, os.path.join(base, arguments.run, below), in_run, each.get("place") or base)


def _node_disks(base: str, run_folder: str) -> List[str]:
    """Return folders that other nodes do not share: the run folder is in none of them."""
    found = [base, os.path.dirname(base), "/tmp", "/var/tmp", os.environ.get("TMPDIR") or base]
    real = os.path.realpath(run_folder)
    return [each for each in found if not is_inside(real, [os.path.realpath(each)])]


def _use(base: str, wanted: Input, run: str) -> Copy:
    try:
        return copies.use(base, wanted, say)
    except NodeError as error:
        if "does not fit" not in str(error):
            raise
        own.clear(base, run, everything=True)  # outputs that earlier runs left
        return copies.use(base, wanted, say)


def _prepare(place: own.Own, results: Sequence[Output], arguments: Arguments, moments: Moments) -> None:
    """Create the outputs; in a later start, with what the earlier ones wrote."""
    for each in results:
        path = os.path.join(place.files, each.name)
        if arguments.start > 1 and not place.earlier:
            outputs.bring(each, path, moments.nothing)
        if not os.path.lexists(path) and "." not in each.name:
            os.mkdir(path, 0o700)


def _leave(place: Optional[own.Own], used: Sequence[Copy], arguments: Arguments) -> None:
    if place is not None:
        own.drop(place)
    drop = not _more_tasks(arguments)
    for each in used:
        copies.release(each, drop)


def _more_tasks(arguments: Arguments) -> bool:
    """Return whether tasks of the same sweep have not started, which need the same inputs."""
    if not arguments.sweep or os.path.exists(os.path.join(arguments.sweep, "cancel")):
        return False
    try:
        started = len(os.listdir(os.path.join(arguments.sweep, "tasks")))
    except OSError:
        return False
    return started < int(read_json(arguments.record).get("tasks") or 0)


def _in_words(error: OSError, base: str) -> str:
    return "cannot stage files in %s on %s: %s" % (error.filename or base, host(), error.strerror or error)
