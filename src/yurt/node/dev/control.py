"""The socket of a dev node: one request in JSON per connection, answered by lines of JSON; for this user alone."""

import json
import os
import socket
import struct
import tempfile
import threading
from typing import Any, Callable, Dict, Iterator, Optional

from yurt.node.dev.status import FILE
from yurt.node.files import NodeError, NotThereError, read_json

LONGEST_PATH = 100
LONGEST_REQUEST = 1000000
Send = Callable[[Dict[str, Any]], None]
Answer = Callable[[Dict[str, Any], Send], Optional[Dict[str, Any]]]


def listen(folder: str) -> socket.socket:
    """Return a listening socket, 0600, in the folder; in a folder of its own if that path is too long."""
    path = os.path.join(folder, "control")
    if len(os.fsencode(path)) > LONGEST_PATH:
        path = os.path.join(tempfile.mkdtemp(prefix="yurt-dev-", dir="/tmp"), "control")
    if os.path.lexists(path):
        os.unlink(path)  # of a holder that was killed
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        server.bind(path)
    finally:
        os.umask(before)
    server.listen(16)
    return server


def serve(server: socket.socket, answer: Answer) -> None:
    """Answer requests in threads, until the process ends."""

    def accept() -> None:
        while True:
            try:
                connection, _address = server.accept()
            except OSError:
                return
            threading.Thread(target=_talk, args=(connection, answer), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def is_same_user(connection: socket.socket) -> bool:
    """Return whether the other end is a process of this user; True where the system cannot say: the folder is 0700."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    size = struct.calcsize("3i")
    _pid, uid, _gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(uid == os.getuid())


def _talk(connection: socket.socket, answer: Answer) -> None:
    def send(line: Dict[str, Any]) -> None:
        try:
            connection.sendall(json.dumps(line).encode() + b"\n")
        except OSError:  # the client is gone; the request is carried out anyway
            pass

    with connection:
        if not is_same_user(connection):
            return
        connection.settimeout(60)
        try:
            with connection.makefile("rb") as stream:
                request = json.loads(stream.readline(LONGEST_REQUEST).decode())
            if not isinstance(request, dict):
                raise ValueError("not an object")
        except (OSError, ValueError) as error:
            send({"error": "the request is not usable: %s" % error})
            return
        try:
            found = answer(request, send)
            if found is not None:
                send(dict(found, ok=True))
        except NodeError as error:
            send({"error": str(error), "missing": isinstance(error, NotThereError)})
        except Exception as error:  # whatever fails, the client gets an answer
            send({"error": "the dev node failed to do this: %s: %s" % (type(error).__name__, error)})


def ask(run_folder: str, request: str) -> Iterator[Dict[str, Any]]:
    """Send a request to the holder of a run on this node; yield its lines. Raises NodeError without a holder."""
    status = read_json(os.path.join(run_folder, FILE))
    path = status.get("socket") or ""
    if not path:
        raise NodeError("the dev node is starting; repeat the command in a moment")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError as error:
            here, there = os.uname().nodename, status.get("node")
            where = "" if here == there else "; it runs on %s, this is %s" % (there, here)
            raise NodeError("the dev node does not answer: %s%s" % (error.strerror or error, where)) from None
        if not is_same_user(connection):
            raise NodeError("the socket %s belongs to another user" % path)
        connection.sendall(request.encode() + b"\n")
        with connection.makefile("rb") as stream:
            for line in stream:
                yield json.loads(line.decode())
