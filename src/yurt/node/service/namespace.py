"""A network of its own for a program that listens on a port: other users of the node cannot reach the port.

The program runs in a user and network namespace whose loopback is the only interface. Connections to a unix socket
outside are passed on to its port.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Optional

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
SET_FLAGS, UP, RUNNING = 0x8914, 0x1, 0x40
"""To switch the loopback on."""

PORT = 8000
PIECE = 1 << 16
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def isolate() -> None:
    """Give this process, which must have one thread, a network of its own. OSError if the kernel does not allow it."""
    try:
        import ctypes
    except ImportError:
        raise OSError("this Python has no ctypes") from None
    import fcntl

    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        raise OSError("this system has no network namespaces")
    if libc.unshare(NEW_USER | NEW_NETWORK):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    maps = {"setgroups": "deny", "uid_map": "%d %d 1" % (user, user), "gid_map": "%d %d 1" % (group, group)}
    for name, text in maps.items():
        with open("/proc/self/" + name, "w") as stream:
            stream.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, SET_FLAGS, struct.pack("16sH14x", b"lo", UP | RUNNING))


def is_allowed() -> bool:
    """Return whether a program can have a network of its own on this node."""
    child = os.fork()
    if not child:
        try:
            isolate()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def start(argv: List[str], environment: Dict[str, str], path: str) -> "subprocess.Popen[bytes]":
    """Start a program that listens on PORT in a network of its own, behind a unix socket at `path`.

    The socket is there once the program listens. The process returned ends with the code of the program.
    """
    from yurt.node.service.children import end_with_parent  # this file is also a program, without the others

    here = os.path.abspath(__file__)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", here, path, *argv],
        env=environment,
        stdin=subprocess.DEVNULL,
        preexec_fn=end_with_parent,  # noqa: PLW1509 - the runner has one thread
    )


def main(path: str, argv: List[str]) -> int:
    """Isolate this process, run the program, and pass connections on until it ends."""
    aside = path + ".new"
    before = os.umask(0o177)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(aside)
    os.umask(before)
    listener.listen(128)
    isolate()
    came: List[int] = []
    children: "List[subprocess.Popen[bytes]]" = []

    def pass_on(number: int, _frame: Any) -> None:
        came.append(number)
        for each in children:
            each.send_signal(number)

    for number in SIGNALS:
        signal.signal(number, pass_on)
    try:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stderr.write("yurt: %s cannot be started: %s\n" % (argv[0], error.strerror))
        return 127
    children.append(child)
    for early in came[:1]:  # it came before there was a program
        child.send_signal(early)
    threading.Thread(target=_serve, args=(listener, aside, path), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _connected() -> socket.socket:
    """Connect to the program. OSError if it does not listen."""
    try:
        return socket.create_connection(("127.0.0.1", PORT))
    except OSError:
        return socket.create_connection(("::1", PORT))


def _serve(listener: socket.socket, aside: str, path: str) -> None:
    while True:
        try:
            _connected().close()
            break
        except OSError:
            time.sleep(0.1)
    os.rename(aside, path)
    while True:
        near: Optional[socket.socket] = None
        try:
            near, _address = listener.accept()
            if is_same_user(near):
                threading.Thread(target=_carry, args=(near,), daemon=True).start()
            else:
                near.close()
        except (OSError, RuntimeError):  # no more files or threads: some connections must end first
            if near is not None:
                near.close()
            time.sleep(0.1)


def is_same_user(connection: socket.socket) -> bool:
    """Return whether a process of this user is at the other end of a unix socket."""
    size = struct.calcsize("3i")
    _pid, user, _group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(user == os.getuid())


def _carry(near: socket.socket) -> None:
    try:
        far = _connected()
    except OSError:
        near.close()
        return
    try:
        back = threading.Thread(target=_pump, args=(far, near), daemon=True)
        back.start()
        _pump(near, far)
        back.join()
    except RuntimeError:  # no more threads
        pass
    finally:
        near.close()
        far.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while True:
            piece = source.recv(PIECE)
            if not piece:
                break
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
