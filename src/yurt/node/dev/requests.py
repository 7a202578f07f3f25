"""What the laptop can ask of a dev node over its socket, and the answers."""

import shlex
from typing import Any, Callable, Dict, List, Optional

from yurt.node import backup
from yurt.node.dev import sessions, ssh, terminals
from yurt.node.dev.control import Send
from yurt.node.dev.desk import Desk
from yurt.node.dev.worker import Task, Worker
from yurt.node.files import NodeError, NotThereError

PAUSE = 0.5
QUIET = 10.0
"""A line is sent at least so often, so that the client can tell a long backup from a lost connection."""


class Requests:
    """Answers requests. Work on the workspace goes to the worker; the rest is answered at once."""

    def __init__(
        self,
        desk: Desk,
        worker: Worker,
        *,
        save: Callable[[str], Any],
        save_last: Callable[[str], int],
        look: Callable[[], Optional[float]],
        leave: Callable[[], None],
        served: Dict[str, str],
    ) -> None:
        self._desk, self._worker, self._save, self._look, self._leave = desk, worker, save, look, leave
        self._save_last, self._served = save_last, served

    def answer(self, request: Dict[str, Any], send: Send) -> Optional[Dict[str, Any]]:
        """Carry out one request and return its answer; None if it was sent. Raises NodeError with the reason."""
        do = request.get("do")
        if do == "info":
            return dict(self._desk.status.fields(), **self._served)
        if do == "authorize":
            try:
                ssh.authorize(self._desk.place.folder, str(request.get("key") or ""))
            except ssh.SshError as error:
                raise NodeError(str(error)) from None
            return {}
        if do == "time":
            end = self._look()
            self._desk.status.write()  # `dev status` shows it from now on
            return {"end": end}
        if do == "backup":
            reason = str(request.get("reason") or "asked")
            return self._wait(self._worker.submit("backup", lambda: self._backup(reason)), send)
        if do == "check":
            return self._wait(self._worker.submit("check", self._check), send)
        if do == "restore":
            number, paths = int(request.get("version") or 0), [str(each) for each in request.get("paths") or []]
            return self._wait(self._worker.submit("restore", lambda: self._restore(number, paths)), send)
        if do == "down":
            self._down(bool(request.get("backup", True)), bool(request.get("drop")), send)
            return None
        raise NodeError("unknown request %r" % do)

    def _wait(self, task: Task, send: Send) -> Dict[str, Any]:
        last, quiet = None, QUIET  # the first line at once: the client knows that the dev node answers
        while not task.wait(PAUSE):
            progress, quiet = self._desk.status.get("progress"), quiet + PAUSE
            if progress != last or quiet >= QUIET:
                send({"progress": progress or {"phase": task.name, "done": 0, "total": 0}})
                last, quiet = progress, 0.0
        if isinstance(task.error, backup.MissingPathError):
            raise NotThereError(str(task.error))
        if isinstance(task.error, backup.BackupError):
            raise NodeError(str(task.error))
        if task.error is not None:
            raise task.error
        return dict(task.result)

    def _backup(self, reason: str) -> Dict[str, Any]:
        version = self._save(reason)
        if version is not None:
            return {"version": version._asdict(), "changed": True}
        base = self._desk.status.get("version")
        known = [each for each in backup.versions(self._desk.config.backups) if each.number == base]
        return {"version": known[0]._asdict() if known else None, "changed": False}

    def _check(self) -> Dict[str, Any]:
        damaged = self._desk.check()
        return dict(self._backup("check"), damaged=damaged)

    def _restore(self, number: int, paths: List[str]) -> Dict[str, Any]:
        if paths:
            return self._desk.restore_paths(number, paths)
        aside, work = self._desk.restore(number), self._desk.place.workspace
        text = "the workspace was replaced by v%d; a shell that was in it is in %s now: type `cd %s`"
        terminals.tell(text % (number, aside, shlex.quote(work)), only=terminals.used_by(sessions.working_in(aside)))
        return {"aside": aside, "version": self._desk.status.get("version")}

    def _down(self, with_backup: bool, drop: bool, send: Send) -> None:
        answer: Dict[str, Any] = {"version": 0}
        if with_backup:
            answer = self._wait(self._worker.submit("backup", lambda: self._last_backup(drop)), send)
        send(dict(answer, ok=True))
        self._leave()

    def _last_backup(self, drop: bool) -> Dict[str, Any]:
        added = self._desk.layer.drop() if drop else self._desk.layer.added()
        number = self._save_last("down")
        known = [each for each in backup.versions(self._desk.config.backups) if each.number == number]
        return {"version": number, "note": known[0].note if known else "", "added": added}
