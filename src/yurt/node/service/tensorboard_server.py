"""The process that runs TensorBoard on a unix socket: `python tensorboard_server.py SOCKET FOLDER SECONDS`.

It ends when its standard input ends, which it shares with nobody: the process that started it has ended then, however
that happened. It writes no file but its log, and listens on no port.
"""

import contextlib
import os
import sys
import threading
from typing import Any


def main(socket: str, folder: str, seconds: str) -> None:
    """Serve a log folder until standard input ends."""
    threading.Thread(target=_end_with_input, args=(socket,), daemon=True).start()
    from tensorboard import default, program
    from werkzeug import serving

    class Handler(serving.WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def address_string(self) -> str:
            return "unix"

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            pass

    class Server(serving.ThreadedWSGIServer, program.TensorBoardServer):  # type: ignore[misc]
        daemon_threads = True

        def __init__(self, app: Any, _flags: Any) -> None:
            super().__init__(f"unix://{socket}", 0, app, Handler)

        def get_url(self) -> str:
            return f"unix://{socket}"

    os.umask(0o177)  # the socket; the process creates no other file
    made = program.TensorBoard(plugins=default.get_plugins(), server_class=Server)
    flags = [
        f"--logdir={folder}",
        f"--reload_interval={seconds}",
        # Its data server would listen on a port of this machine, for every user.
        "--load_fast=false",
        # Runs may write several event files at a time, and may pause for days.
        "--reload_multifile=true",
        "--reload_multifile_inactive_secs=-1",
        "--window_title=yurt",
    ]
    made.configure(argv=["tensorboard", *flags])
    made.launch()
    threading.Event().wait()


def _end_with_input(socket: str) -> None:
    while os.read(0, 1):
        pass
    with contextlib.suppress(OSError):
        os.unlink(socket)
    os._exit(0)


if __name__ == "__main__":
    if os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]  # programs must not import the modules beside this one
    main(*sys.argv[1:4])
