"""Runs joblib's parallel work on a context: searches of scikit-learn, and everything else with an `n_jobs`.

yurt does not have to be installed on the site: the code that runs there is pickled by value, see `shared`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Lock
from typing import Any
from weakref import WeakSet

from joblib.parallel import ParallelBackendBase

from yurt.recipes.shared import Sharing


class YurtBackend(ParallelBackendBase):  # type: ignore[misc]
    """A joblib backend that runs each unit of work, such as one fit of a search, as one task.

    Use it with `joblib.parallel_config(backend=YurtBackend(executor))`. Up to `jobs` tasks are submitted at a time;
    `n_jobs` is ignored. The executor's `max_parallel` and the site limit how many of them run. Arrays shared by the
    calls are uploaded once.
    """

    supports_retrieve_callback = True

    def __init__(self, executor: Executor, *, jobs: int = 10_000) -> None:
        super().__init__()
        if jobs < 2:
            raise ValueError(f"jobs must be at least 2, not {jobs}: with fewer, joblib works in this process")
        self._executor, self.default_n_jobs = executor, jobs
        self._lock = Lock()
        self._sharing: Sharing | None = None
        self._futures: WeakSet[Future[Any]] = WeakSet()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return the number of workers that joblib splits its work by."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return self.default_n_jobs

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Future[Any]:
        """Submit a batch of calls, which joblib wraps in one function without arguments."""
        with self._lock:
            if self._sharing is None:
                self._sharing = Sharing(func)
            function, arguments = self._sharing.split(func)
            future = self._executor.submit(function, arguments)
            self._futures.add(future)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        return out.result()

    def stop_call(self) -> None:
        """Drop the shared arrays: the next call of Parallel has other data."""
        with self._lock:
            self._sharing = None

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002
        """Cancel the tasks that are not running yet, after an error or Ctrl-C."""
        with self._lock:
            futures = list(self._futures)
        for future in futures:
            future.cancel()
