"""Runs a service: starts its program where only its user can reach it, and says where in service.json."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, Optional

from yurt.node import limits
from yurt.node.files import NodeError, remove, write_json
from yurt.node.service import children, namespace, programs
from yurt.node.service.place import Place, make

VARIABLE = "YURT_SERVICE"
FILE = "service.json"
"""In the run folder, which may be on a shared disk: it contains no secret."""

LOOK = 300.0
"""Seconds between two queries of the time that is left."""

GRACE, REST = 8.0, 2.0
"""Seconds between TERM and KILL: for the program, and for processes that it has left."""

FAILED = 78


class Status:
    """The content of service.json."""

    def __init__(self, environment: Dict[str, str], **fields: Any) -> None:
        folder = environment.get("YURT_RUN_DIR") or os.getcwd()
        self._path = os.path.join(folder, FILE)
        restarts = int(environment.get("YURT_RESTARTS") or 0)
        self._fields: Dict[str, Any] = {"phase": "starting", "node": os.uname().nodename, "restarts": restarts}
        self._fields.update(fields)

    def set(self, **fields: Any) -> None:
        """Change fields, and write the file. A full disk is no reason to stop."""
        if all(self._fields.get(name) == value for name, value in fields.items()):
            return
        self._fields.update(fields)
        try:
            write_json(self._path, dict(self._fields, written=time.time()))
        except OSError as error:
            say("%s cannot be written: %s" % (self._path, error.strerror))


def say(text: str) -> None:
    sys.stderr.write("yurt: %s\n" % text)
    sys.stderr.flush()


def run(environment: Dict[str, str]) -> int:
    """Run the service that YURT_SERVICE describes until its program ends; return its exit code."""
    stop = _Stop()
    children.adopt()
    config = json.loads(environment.pop(VARIABLE))
    status = Status(environment, program=config["program"])
    status.set(start=time.time(), end=_end(environment))
    place: Optional[Place] = None
    try:
        place = make()
        return _Service(config, place, status, environment, stop).run()
    except NodeError as error:
        return _failed(status, str(error))
    except OSError as error:
        return _failed(status, "the service cannot be started: %s" % error)
    finally:
        children.end_all(REST)
        if place is not None:
            remove(place.folder)


def _failed(status: Status, why: str) -> int:
    say(why)
    status.set(phase="failed", note=why)
    return FAILED


class _Stop:
    """Whether a signal has asked this process to end."""

    def __init__(self) -> None:
        self.asked = False
        for number in namespace.SIGNALS:
            signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: Any) -> None:
        self.asked = True


class _Service:
    """A program that runs."""

    def __init__(
        self, config: Dict[str, Any], place: Place, status: Status, environment: Dict[str, str], stop: _Stop
    ) -> None:
        self._place, self._status, self._environment, self._stop = place, status, environment, stop
        self._port = 0
        found = programs.program(config, place)
        if found.token:
            descriptor = os.open(place.token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                stream.write(found.token)
        variables = found.environment(environment)
        if shutil.which(found.argv[0], path=variables.get("PATH")) is None:
            raise NodeError("the program %s does not exist on this node, or cannot be executed" % found.argv[0])
        if not found.listens_on_port:
            self._way = "socket"
            self._child = _started(found.argv, variables)
        elif namespace.is_allowed():
            self._way = "network"
            self._child = namespace.start(_with_port(found.argv, namespace.PORT), variables, place.socket)
        elif config.get("open"):
            self._way, self._port = "port", _free_port()
            say("every user of node %s can reach port %d" % (os.uname().nodename, self._port))
            self._child = _started(_with_port(found.argv, self._port), variables)
        else:
            raise NodeError(found.refusal % os.uname().nodename)

    def run(self) -> int:
        """Wait for the program. Say when it listens, and how much time is left."""
        look, pause = time.monotonic() + LOOK, 0.05
        ready = False
        while True:
            found = self._end() if self._stop.asked else self._child.poll()
            if found is not None:
                code = found
                break
            if not ready and self._listens():
                ready = True
                self._say_ready()
            time.sleep(pause)
            pause = min(1.0 if ready else 0.3, pause * 1.2)
            if time.monotonic() > look:
                look = time.monotonic() + LOOK
                self._status.set(end=_end(self._environment))
        code = code if code >= 0 else 128 - code
        if not ready and not self._stop.asked:
            say("the program ended before it listened")
        self._status.set(phase="ended", code=code, listened=ready)
        return 128 + signal.SIGTERM if self._stop.asked else code

    def _say_ready(self) -> None:
        token = self._place.token if os.path.exists(self._place.token) else ""
        where = {"port": self._port} if self._port else {"socket": self._place.socket}
        self._status.set(phase="ready", way=self._way, token=token, **where)

    def _end(self) -> int:
        """End the program, and return its code."""
        self._child.terminate()
        try:
            return self._child.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()

    def _listens(self) -> bool:
        try:
            if self._port:
                socket.create_connection(("127.0.0.1", self._port)).close()
                return True
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self._place.socket)
                return True
        except OSError:
            return False


def _started(argv: Any, environment: Dict[str, str]) -> "subprocess.Popen[bytes]":
    try:
        # A pipe that nobody writes to: TensorBoard ends when this process, which holds the other end, has ended.
        return subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.PIPE,
            preexec_fn=children.end_with_parent,  # noqa: PLW1509 - the runner has one thread
        )
    except OSError as error:
        raise NodeError("%s cannot be started: %s" % (argv[0], error.strerror)) from None


def _with_port(argv: Any, port: int) -> Any:
    return [word.replace(programs.PORT, str(port)) for word in argv]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end(environment: Dict[str, str]) -> Optional[float]:
    """Return when the job reaches its time limit; None if it has none, or that is not known."""
    job = environment.get("SLURM_JOB_ID")
    try:
        left = limits.time_left(job) if job else None
    except limits.Unknown:
        left = None
    return None if left is None else round(time.time() + left, -1)
