"""`yurt.checkpointing`: for scripts that are stopped and started again, where to save and when.

with yurt.checkpointing() as saved:
    step = int(saved.load("step") or 0)
    while step < 1000:
        step += 1
        if saved.wanted:
            saved.save("step", str(step))
            saved.leave()
"""

import os
import signal
import sys
import threading
from typing import Any, Dict, Optional, Union

AGAIN = 85
"""The exit code that asks to be started again."""

ASIDE = ".aside"


class Checkpointing:
    """What an earlier start saved, and whether it is time to save: see `checkpointing`.

    Outside of a run it works too, in a folder that is gone when the script ends, and no signal is caught.
    """

    def __init__(self) -> None:
        self.restarts = int(os.environ.get("YURT_RESTARTS") or 0)
        """How often this run was started before."""
        self._folder = os.environ.get("YURT_CHECKPOINTS") or ""
        self._inside = bool(self._folder)
        self._before: Dict[int, Any] = {}
        self._wanted = False

    @property
    def folder(self) -> str:
        """The folder of checkpoints, for libraries that save by themselves. It outlives this start."""
        if not self._folder:
            import atexit
            import shutil
            import tempfile

            self._folder = tempfile.mkdtemp(prefix="yurt-")
            atexit.register(shutil.rmtree, self._folder, True)
        return self._folder

    @property
    def wanted(self) -> bool:
        """Whether the run will be stopped soon: save, then `leave`."""
        return self._wanted

    def path(self, name: str) -> str:
        """Where the checkpoint of a name is, or would be."""
        return os.path.join(self.folder, name)

    def save(self, name: str, content: Union[bytes, bytearray, memoryview, str]) -> None:
        """Save bytes or text under a name, whole or not at all. OSError: it is not saved, what was there stands."""
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
        """The bytes of a checkpoint, or `otherwise` if there is none."""
        try:
            with open(self.path(name), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return otherwise

    def leave(self) -> None:
        """End this start; the run is started again with what was saved, where that was asked for."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # it may be closed, or full
                pass
        if threading.current_thread() is not threading.main_thread():
            os._exit(AGAIN)  # there sys.exit would end the thread alone
        sys.exit(AGAIN)

    def __enter__(self) -> "Checkpointing":
        if self._inside:
            os.makedirs(self._folder, exist_ok=True)
            self._clean()
            for number in (signal.SIGUSR1, signal.SIGTERM):
                try:
                    self._before[number] = signal.signal(number, self._ask)
                except ValueError:  # only the main thread may: here nobody hears of a signal
                    break
        return self

    def __exit__(self, *_error: Any) -> None:
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)
        self._before = {}

    def _ask(self, _number: int, _frame: Any) -> None:
        self._wanted = True

    def _clean(self) -> None:
        """Remove what earlier starts of this task were killed in the middle of."""
        mine = ".%s." % _task()
        for top, _folders, files in os.walk(self._folder):
            for name in files:
                if name.endswith(ASIDE) and mine in name and ".%d." % os.getpid() not in name and self.restarts:
                    _remove(os.path.join(top, name))


def checkpointing() -> Checkpointing:
    """For `with yurt.checkpointing() as saved:`. In the loop: if saved.wanted: saved.save(…); saved.leave()."""
    return Checkpointing()


def _task() -> str:
    """Which of the tasks of a job this is: they may have the same process id, on different nodes."""
    return "task%s" % (os.environ.get("SLURM_PROCID") or "0")


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        pass


def _sync(folder: str) -> None:
    """So that a renamed file has its name after a power cut too; not every disk can."""
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
