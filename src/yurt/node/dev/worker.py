"""One thread that does the work on the workspace, one task at a time: never two backups at once."""

import signal
import threading
from typing import Any, Callable, List, Optional

SHIELDED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}


def shield() -> None:
    """Block signals in this thread and in the programs that it starts.

    A scheduler signals all processes of a job: a tar that dies of it would spoil the backup that the signal is for.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SHIELDED)


class Task:
    """Something to do, then its result or its error."""

    def __init__(self, name: str, action: Callable[[], Any]) -> None:
        self.name, self.action = name, action
        self.result: Any = None
        self.error: Optional[Exception] = None
        self._done = threading.Event()

    def run(self) -> None:
        try:
            self.result = self.action()
        except Exception as error:
            self.error = error
        self._done.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._done.set()

    def wait(self, seconds: float) -> bool:
        """Return whether it is done, after at most so many seconds."""
        return self._done.wait(seconds)

    def done(self) -> bool:
        return self._done.is_set()


class Worker:
    """Runs tasks in the order in which they are submitted. `wake` is called after each."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: List[Task] = []
        self._current: Optional[Task] = None
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, name: str, action: Callable[[], Any]) -> Task:
        task = Task(name, action)
        with self._changed:
            self._waiting.append(task)
            self._changed.notify()
        return task

    def is_idle(self) -> bool:
        with self._changed:
            return self._current is None and not self._waiting

    def drop_waiting(self, error: Exception) -> None:
        """Fail the tasks that have not begun."""
        with self._changed:
            dropped, self._waiting = self._waiting, []
        for task in dropped:
            task.fail(error)

    def _work(self) -> None:
        shield()
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                self._current = task = self._waiting.pop(0)
            task.run()
            with self._changed:
                self._current = None
            self._wake()
