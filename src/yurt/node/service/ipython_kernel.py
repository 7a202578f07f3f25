"""Starts a Python kernel of Jupyter without ports: `python ipython_kernel.py MODULE [WORD…]` for `python -m MODULE`.

Processes that a cell forks send their output to the kernel through a port of the loopback: here, through a socket in
the private folder. The debugger of JupyterLab needs a port, so it is switched off.
"""

import os
import runpy
import sys
from importlib import import_module
from typing import Any


def use_no_ports(folder: str) -> None:
    """Replace what opens ports in ipykernel. `folder` is private."""
    import zmq
    from ipykernel import iostream
    from zmq.eventloop.zmqstream import ZMQStream

    thread: Any = iostream.IOPubThread

    def setup_pipe_in(self: Any) -> None:
        self._pipe_uuid = os.urandom(16)
        self._pipe_port = "ipc://%s/pipe-%d" % (folder, os.getpid())
        pipe = self.socket.context.socket(zmq.PULL)
        pipe.linger = 0
        pipe.bind(self._pipe_port)
        self._pipe_in = ZMQStream(pipe, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def setup_pipe_out(self: Any) -> Any:
        context = zmq.Context()
        pipe = context.socket(zmq.PUSH)
        pipe.linger = 3000
        pipe.connect(self._pipe_port)
        return context, pipe

    thread._setup_pipe_in, thread._setup_pipe_out = setup_pipe_in, setup_pipe_out


def use_no_debugger() -> None:
    """Let ipykernel believe that debugpy is not installed; cells can still import it."""
    modules: Any = sys.modules
    modules["debugpy"] = None
    try:
        import_module("ipykernel.debugger")
    except ImportError:  # before ipykernel 6
        pass
    finally:
        del modules["debugpy"]


def main(module: str) -> None:
    """Run the module of a kernel, as `python -m MODULE` does."""
    runtime = os.environ.get("JUPYTER_RUNTIME_DIR", "")
    if runtime:
        try:
            use_no_debugger()
            use_no_ports(runtime)
        except ImportError:  # a kernel without ipykernel
            pass
    sys.path.insert(0, os.getcwd())
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]  # notebooks must not import the modules beside this one
    main(sys.argv.pop(1))
