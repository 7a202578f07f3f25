"""`yurt.checkpointing`: tells a script that may be restarted where to save and when."""

import os
import signal
import sys
import threading
from typing import Any, Dict, Optional, Union

AGAIN = 85
"""The exit code that requests a restart."""

ASIDE = ".aside"


class Checkpointing:
    """The checkpoints of this run, and whether it is time to save. Returned by `yurt.checkpointing`.

    Outside of a run it uses a temporary folder, which is removed when the script exits, and catches no signals.
    """

    def __init__(self) -> None:
        self.restarts = int(os.environ.get("YURT_RESTARTS") or 0)
        """The number of earlier starts of this run."""
        self._folder = os.environ.get("YURT_CHECKPOINTS") or ""
        self._inside = bool(self._folder)
        self._before: Dict[int, Any] = {}
        self._wanted = False

    @property
    def folder(self) -> str:
        """The checkpoint folder, for libraries that write their own files. It is kept for the next start."""
        if not self._folder:
            import atexit
            import shutil
            import tempfile

            self._folder = tempfile.mkdtemp(prefix="yurt-")
            atexit.register(shutil.rmtree, self._folder, True)
        return self._folder

    @property
    def wanted(self) -> bool:
        """Whether the run will be stopped soon: save, then call `leave`."""
        return self._wanted

    def path(self, name: str) -> str:
        """Return the path of a checkpoint, which may not exist."""
        return os.path.join(self.folder, name)

    def save(self, name: str, content: Union[bytes, bytearray, memoryview, str]) -> None:
        """Save bytes or text under a name, atomically. Raises `OSError` if it fails; the earlier checkpoint is kept."""
        target = self.path(name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        aside = "%s.%s%s" % (target, _task() + ".%d.%d" % (os.getpid(), threading.get_ident()), ASIDE)
        try:
            with open(aside, "wb") as stream:
                stream.write(content.encode("utf-8") if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(aside, target)
        except BaseException:
            _remove(aside)
            raise
        _sync(os.path.dirname(target))

    def load(self, name: str, otherwise: Optional[bytes] = None) -> Optional[bytes]:
        """Return the bytes of a checkpoint, or `otherwise` if it does not exist."""
        try:
            with open(self.path(name), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return otherwise

    def leave(self) -> None:
        """Exit and request a restart; the run is restarted if its restart policy allows it."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # it may be closed, or the disk full
                pass
        if threading.current_thread() is not threading.main_thread():
            os._exit(AGAIN)  # sys.exit would end only this thread
        sys.exit(AGAIN)

    def __enter__(self) -> "Checkpointing":
        if self._inside:
            os.makedirs(self._folder, exist_ok=True)
            self._clean()
            for number in (signal.SIGUSR1, signal.SIGTERM):
                try:
                    self._before[number] = signal.signal(number, self._ask)
                except ValueError:  # not the main thread: signals cannot be caught
                    break
        return self

    def __exit__(self, *_error: Any) -> None:
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)
        self._before = {}

    def _ask(self, _number: int, _frame: Any) -> None:
        self._wanted = True

    def _clean(self) -> None:
        """Remove temporary files that killed starts of this task left."""
        mine = ".%s." % _task()
        for top, _folders, files in os.walk(self._folder):
            for name in files:
                if name.endswith(ASIDE) and mine in name and ".%d." % os.getpid() not in name and self.restarts:
                    _remove(os.path.join(top, name))


def checkpointing() -> Checkpointing:
    """Return a context manager for saving and loading checkpoints.

        with yurt.checkpointing() as saved:
            step = int(saved.load("step") or 0)
            while step < 1000:
                step += 1
                if saved.wanted:
                    saved.save("step", str(step))
                    saved.leave()

    `wanted` is true shortly before the run is stopped; `leave` exits and requests a restart.
    """
    return Checkpointing()


def _task() -> str:
    """Return a name for this task of the job; tasks on different nodes may have the same process id."""
    return "task%s" % (os.environ.get("SLURM_PROCID") or "0")


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        pass


def _sync(folder: str) -> None:
    """Flush a folder, so that a rename survives a power failure; not every file system supports it."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    except OSError:
        pass
    finally:
        os.close(opened)
