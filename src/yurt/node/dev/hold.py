"""The job of a dev node: opens the workspace, backs it up, and waits for requests and for the end of the job."""

import fcntl
import functools
import os
import select
import signal
import sys
import time
from typing import Any, Mapping, Optional

from yurt.node import backup
from yurt.node.dev import sessions, terminals
from yurt.node.dev.chores import Chores
from yurt.node.dev.claim import BEATS, Claim
from yurt.node.dev.config import Config, read
from yurt.node.dev.desk import Desk
from yurt.node.dev.door import Door
from yurt.node.dev.layer import Layer
from yurt.node.dev.place import choose
from yurt.node.dev.requests import Requests
from yurt.node.dev.schedule import Schedule
from yurt.node.dev.status import Status, backup_of
from yurt.node.dev.worker import Task, Worker
from yurt.node.files import NodeError, private_folder, write

UNUSABLE = 78
"""The exit code if the dev node cannot start; the reason is in the file `why`, as for every run."""

SAID = "said"
"""The file of the run folder with what exit.json says about the end."""

TICK = 1.0
KILL_WAIT = 30.0


def hold(environment: Mapping[str, str]) -> int:
    """Run a dev node until it is ended; return the exit code of the job."""
    run_folder = environment.get("YURT_RUN_DIR") or os.getcwd()
    try:
        return Holder(read(environment)).run(environment)
    except (NodeError, backup.BackupError, OSError) as error:
        why = str(error)
        print("yurt: %s" % why, file=sys.stderr, flush=True)
        try:
            write(os.path.join(run_folder, "why"), why + "\n")
        except OSError:
            pass
        return UNUSABLE


def say(line: str) -> None:
    """Write a line to the log of the run. A full disk is no reason to stop."""
    try:
        print("%s %s" % (time.strftime("%H:%M:%S"), line), flush=True)
    except OSError:
        pass


class Holder:
    """The main thread: it only waits and decides, so that it answers a signal at once."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.signal = 0
        self.leaving = False
        self._told_failure = False
        self._told_idle = False
        self._told_door = False
        self._wake_reader, self._wake_writer = os.pipe()
        for each in (self._wake_reader, self._wake_writer):
            os.set_blocking(each, False)
        signal.set_wakeup_fd(self._wake_writer)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
        node = os.uname().nodename
        self.status = Status(config.run_folder, name=config.name, run=config.run, node=node)
        self.schedule = Schedule(time.time(), config.interval, config.retry)
        self.worker = Worker(self._wake)

    def run(self, environment: Mapping[str, str]) -> int:
        """Start, wait, end. Raises NodeError, BackupError or OSError if the dev node cannot start."""
        place, notes = choose(self.config, environment)
        lock = self._lock(place.folder)
        self._own_backups()
        claim = Claim(self.config, place.folder)
        layer = Layer(place, environment)
        self.desk = Desk(self.config, place, layer, self.status, say)
        self.door = Door(place, layer.variables(environment))
        if self.door.problem:
            notes.append(self.door.problem)
        self.chores = Chores(self.config, place.folder, self.schedule, self.status, claim)
        self.chores.notes = notes
        requests = Requests(
            self.desk,
            self.worker,
            save=self.save,
            save_last=self.save_last,
            look=self.chores.look,
            leave=self._leave,
            served=self.door.served,
        )
        self.door.open(requests.answer)
        self.status.set(workspace=place.workspace, folder=place.folder, socket=self.door.socket, warnings=notes)
        try:
            opening = self.worker.submit("open", lambda: self._open(claim))
            self._wait_for(opening)
            if self.desk.workspace is not None and opening.error is None and not self.signal and not self.leaving:
                self._ready()
                self._keep()
            return self._end(opening)
        finally:
            self._end_sessions(sessions.HURRY)
            sessions.close(place.folder)
            if opening.done():
                claim.drop()
                self._leave_no_empty_backups()
            self.status.set(phase="ended", socket="")
            self.status.write()
            self.door.close()
            os.close(lock)

    def save(self, reason: str) -> Optional[Any]:
        """Save the workspace, in the worker; the schedule and the status say how it went. Raises BackupError."""
        began = time.time()
        try:
            version = self.desk.save(reason)
        except (backup.BackupError, OSError) as error:
            self._failed(error)
            raise
        self.schedule.saved(began, time.time() - began if version else self.schedule.last_seconds)
        self._told_failure = False
        self.status.set(failure="", next=self.schedule.shown_next(time.time()))
        if version is not None and not self.signal:
            self._retain()
        return version

    def save_last(self, reason: str) -> int:
        """Save the workspace and verify that, then end all sessions; return the version with all that they wrote.

        Raises BackupError: the sessions stay, unless only their last changes could not be saved.
        """
        self.save(reason)
        number = self._verified(reason)
        if self._end_sessions(sessions.GRACE) and self.save(reason) is not None:
            number = self._verified(reason)
        return number

    def _verified(self, reason: str) -> int:
        """Read all of the last version back, and return its number; what is damaged is saved again first."""
        try:
            return self.desk.verify()
        except backup.DamagedError:
            self.save(reason)
            return self.desk.verify()

    def _end_sessions(self, grace: float) -> bool:
        """Tell the terminals of all sessions, and end the processes in them; return whether there were any."""
        folder = self.desk.place.folder
        found = sessions.find(folder)
        if found:
            text = "dev node %s on %s ends; its workspace is backed up, and its sessions are ended"
            terminals.tell(text % (self.config.name, os.uname().nodename), only=terminals.used_by(found))
            sessions.end(folder, grace)
            say("ended all sessions")
        return bool(found)

    def _failed(self, error: Exception) -> None:
        self.schedule.failed(time.time())
        self.status.set(failure=str(error), progress=None, next=self.schedule.shown_next(time.time()))
        say("backup failed: %s" % error)
        if not self._told_failure:
            self._told_failure = True
            terminals.tell("the backup of %s failed: %s" % (self.desk.place.workspace, error))
        if not self.signal:
            self._retain()  # it may make room

    def _retain(self) -> None:
        try:
            self.desk.retain()
        except (backup.BackupError, OSError) as error:
            say("old versions cannot be dropped: %s" % error)

    def _lock(self, folder: str) -> int:
        """Lock the folder of the dev node on this node. A holder that was just killed is waited for."""
        descriptor = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + min(KILL_WAIT, BEATS * self.config.beat)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except OSError:
                if time.monotonic() > deadline or self.signal:
                    raise NodeError(
                        "the dev node %s runs on this node already; stop it with `yurt dev down`, or use another name"
                        % self.config.name
                    ) from None
            time.sleep(0.2)

    def _own_backups(self) -> None:
        """Create the backups folder, 0700, and check that it is this user's alone."""
        parent = os.path.dirname(self.config.backups)
        os.makedirs(parent, 0o700, exist_ok=True)
        if os.lstat(parent).st_uid != os.getuid():
            raise NodeError("%s belongs to another user" % parent)
        private_folder(self.config.backups)

    def _leave_no_empty_backups(self) -> None:
        """Remove the backups folder if no version was ever made."""
        try:
            os.rmdir(self.config.backups)
        except OSError:
            pass  # it is not empty

    def _open(self, claim: Claim) -> None:
        claim.take(lambda: bool(self.signal or self.leaving), lambda note: self.status.set(note=note))
        self.status.set(note="")
        self.chores.look()
        self.chores.start()
        self.desk.open()
        self._make_layer()
        newest = [each for each in backup.versions(self.config.backups) if each.number == self.status.get("version")]
        if newest:
            self.status.set(backup=backup_of(newest[0]))

    def _make_layer(self) -> None:
        self.desk.layer.make()
        if self.desk.layer.problem:
            say(self.desk.layer.problem)
            self.chores.notes.append(self.desk.layer.problem)
            self.status.set(warnings=[*self.status.get("warnings"), self.desk.layer.problem])

    def _wait_for(self, task: Task) -> None:
        """Wait for the start. On a signal, give up a restore; what is complete stays."""
        while not task.done():
            self._sleep()
            if (self.signal or self.leaving) and self.desk.workspace is None:
                self.desk.stopping = True
                return

    def _ready(self) -> None:
        workspace = self.desk.workspace
        unsaved = workspace.changes() if workspace is not None else 0
        if unsaved:
            say("%d unsaved changes" % unsaved)
        lost = workspace.lost() if workspace is not None else set()
        if lost:
            say("%d packs of the backups are damaged or missing" % len(lost))
        self.schedule.saved(0.0 if unsaved or lost else time.time(), 0.0)
        self.status.set(phase="ready", note="", next=self.schedule.shown_next(time.time()))
        say("ready: %s" % self.desk.place.workspace)

    def _keep(self) -> None:
        """Wait for requests and signals; back up when it is due."""
        while not self.signal and not self.leaving:
            now = time.time()
            due, reason = self.schedule.next_save()
            if now >= due and self.worker.is_idle():
                self.worker.submit("backup", functools.partial(self._save_quietly, reason))
            minutes = self.schedule.warning(now)
            if minutes is not None:
                terminals.tell(
                    "%d minutes left on %s; the workspace is backed up before the end" % (minutes, os.uname().nodename)
                )
                say("%d minutes left" % minutes)
            self._see_idle(now)
            self._keep_door()
            if self.worker.is_idle() and self.desk.layer.is_gone():
                self.worker.submit("packages", self._make_layer)
            self._sleep()

    def _keep_door(self) -> None:
        try:
            if self.door.keep():
                self.status.set(socket=self.door.socket)
                say("files in %s were gone and are there again" % self.desk.place.folder)
        except (NodeError, OSError) as error:
            if not self._told_door:
                say("files in %s are gone: %s" % (self.desk.place.folder, error))
            self._told_door = True

    def _see_idle(self, now: float) -> None:
        since = self.chores.idle.since
        if since is None or now - since < self.config.idle:
            self._told_idle = False
            self.status.set(idle_since=None)
            return
        self.status.set(idle_since=since)
        if not self._told_idle:
            self._told_idle = True
            text = "idle for %.0f minutes" % ((now - since) / 60)
            say(text)
            terminals.tell("%s; `yurt dev down` on your machine ends the job" % text)
            if self.config.idle_release:
                self.worker.submit("backup", self._release)

    def _release(self) -> None:
        try:
            self.save_last("idle")
        except backup.BackupError:
            self._told_idle = False
            return
        say("released, as it is idle")
        self._leave()

    def _save_quietly(self, reason: str) -> None:
        try:
            self.save(reason)
        except (backup.BackupError, OSError):
            pass  # said and scheduled again

    def _end(self, opening: Task) -> int:
        """Save a last time if a signal ends the job; return the exit code."""
        if opening.done() and opening.error is not None and not self.signal:
            raise opening.error
        self.desk.stopping = True
        self.status.set(phase="ending")
        self.worker.drop_waiting(NodeError("the job of the dev node ends"))
        self._end_sessions(sessions.HURRY)  # before the last backup: what they write later would be in none
        if self.leaving and not self.signal:
            say("ended")
            return 0
        if self.desk.workspace is not None:
            last = self.worker.submit("backup", lambda: self._save_quietly("end"))
            while not last.wait(0.1):
                pass
            self._say_version()
        say("ended by signal %d" % self.signal)
        return 128 + self.signal

    def _say_version(self) -> None:
        """Write for exit.json, which `yurt why` shows, what was saved at the end."""
        version, failure = self.status.get("version"), self.status.get("failure")
        text = "version %d saved" % version
        if failure:
            newest = "; version %d is the newest" % version if version else ""
            text = "its last backup failed: %s%s" % (failure, newest)
        try:
            if failure or version:
                write(os.path.join(self.config.run_folder, SAID), text + "\n")
        except OSError:
            pass  # the disk is full: the backups are what counts

    def _leave(self) -> None:
        self.leaving = True
        self._wake()

    def _on_signal(self, number: int, _frame: Any) -> None:
        self.signal = number

    def _wake(self) -> None:
        try:
            os.write(self._wake_writer, b".")
        except OSError:
            pass  # full: it is awake already

    def _sleep(self) -> None:
        select.select([self._wake_reader], [], [], TICK)
        try:
            os.read(self._wake_reader, 4096)
        except OSError:
            pass
