"""joblib's parallel work as calls on a context: searches of scikit-learn, and all else that has an `n_jobs`.

yurt need not be installed there: what runs there travels by value, see `shared`.
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
    """For `joblib.parallel_config(backend=YurtBackend(executor))`: one fit of a search is then one task.

    Up to `jobs` are out at a time, whatever `n_jobs` says; how many of them run is for the executor's max_parallel and
    the site to say. Arrays that the calls share travel once.
    """

    supports_retrieve_callback = True

    def __init__(self, executor: Executor, *, jobs: int = 10_000) -> None:
        super().__init__()
        if jobs < 2:
            raise ValueError("with fewer than two jobs joblib does the work here")
        self._executor, self.default_n_jobs = executor, jobs
        self._alone = Lock()
        self._sharing: Sharing | None = None
        self._out: WeakSet[Future[Any]] = WeakSet()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """What joblib splits its work by."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return self.default_n_jobs

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Future[Any]:
        """Have some calls made, which joblib wraps as one without arguments."""
        with self._alone:
            if self._sharing is None:
                self._sharing = Sharing(func)
            function, arguments = self._sharing.split(func)
            future = self._executor.submit(function, arguments)
            self._out.add(future)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        return out.result()

    def stop_call(self) -> None:
        """The next call of Parallel has other data."""
        with self._alone:
            self._sharing = None

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002
        """After an error, and at Ctrl-C: what does not run yet never will."""
        with self._alone:
            out = list(self._out)
        for future in out:
            future.cancel()
