"""`yurt.executor`: run Python functions on a context through the interface of concurrent.futures."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from types import TracebackType
from typing import Any, NoReturn, Unpack

from yurt.api import leaving, pickles
from yurt.api.batch import MAX_DELAY, Posted
from yurt.api.future import Call, has_raised, settle
from yurt.api.options import Options, fields
from yurt.api.sender import Sender
from yurt.backends import scripts
from yurt.backends.kinds import kind_of
from yurt.config import contexts
from yurt.contexts.fan_out import ready
from yurt.errors import UserError, YurtError
from yurt.lifecycle.plan import plan as planning
from yurt.lifecycle.plan.request import Request

NO_LIMIT = 10_000
"""The number of workers for libraries that ask for it, if the number of parallel calls has no limit."""

Initializer = tuple[Callable[..., object], tuple[Any, ...]]


class YurtExecutor(Executor):
    """A `concurrent.futures.Executor` that runs calls on a context. Create one with `yurt.executor`.

    Calls submitted at about the same time become the tasks of one sweep. Use the executor in a `with` block, or call
    `shutdown`; otherwise the program waits for its calls when it exits. Ctrl-C does not cancel submitted calls: yurt
    stops waiting for them, and prints which sweeps continue and the command that cancels them. Calls that are not
    submitted yet are cancelled.
    """

    def __init__(
        self, context: str | None, python: str, first: Initializer | None, options: Options, per_process: int = 0
    ) -> None:
        ready()
        request = {**fields(options, "yurt.executor()"), "calls_per_process": per_process}
        found = contexts.site(contexts.current_name(context or ""))
        python = python or (sys.executable if kind_of(found.type).here else "")
        planning.check(found, _request(request, python, [{}], "calls"))
        self._first = first
        self._max_workers = options.get("max_parallel") or NO_LIMIT  # dask reads it
        self._sender = Sender(found, partial(_request, request, python))
        weakref.finalize(self, self._sender.close).atexit = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Call:
        """Submit `fn(*args, **kwargs)` and return its future.

        `submit` pickles the function and its arguments; later changes to them have no effect. If they cannot be
        pickled, or take more than 100 MB, the future raises `yurt.CallError`. Raises `RuntimeError` after `shutdown`
        and while the interpreter exits, and `concurrent.futures.BrokenExecutor` after the initializer has failed.
        """
        return self._post(fn, lambda: self._dumped(fn), (args, kwargs), pickles.shown(fn, args, kwargs))

    def map(
        self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[Any]:
        """Like the built-in `map`, but the calls run on the context. Returns an iterator over the results, in order.

        All calls become one sweep. With `chunksize` above 1, one task makes that many calls. The iterator raises
        `TimeoutError` if a result is not available `timeout` seconds after the call to `map`. An exception, or the
        end of the iterator before its last result, cancels the calls that are not running yet; Ctrl-C does not.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        deadline = None if timeout is None else time.monotonic() + timeout
        function = cache(lambda: self._dumped(fn))
        with self._sender.batch.hold(MAX_DELAY):  # an iterable may wait for the result of another call
            given = zip(*iterables, strict=False)
            if chunksize == 1:
                calls = [self._post(fn, function, (each, {}), pickles.shown(fn, each, {})) for each in given]
                return _results(calls, deadline, self._sender.abandon)
            calls = [
                self._post(fn, function, chunk, {"calls": len(chunk), **pickles.shown(fn, chunk[0], {})})
                for chunk in _chunks(given, chunksize)
            ]
            return _flattened(_results(calls, deadline, self._sender.abandon))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Return a context manager that submits all calls made inside the block as one sweep.

        The calls are submitted at the end of the block, or earlier if the program waits for the result of one of them.
        """
        with self._sender.batch.hold():
            yield

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop accepting calls; with `wait`, return after all calls have finished and their callbacks have run.

        With `cancel_futures`, cancel the calls that are not running yet.
        """
        self._sender.finish()
        if cancel_futures:
            self._sender.cancel_all()
        if wait:
            self._sender.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            leaving.leave([self._sender])
            return
        try:
            self.shutdown()
        except KeyboardInterrupt:
            leaving.leave([self._sender])
            raise

    @property
    def _broken(self) -> bool:
        """Whether the executor accepts no more calls after a failure; the standard library's executors have it too."""
        return self._sender.broken

    def __reduce__(self) -> NoReturn:
        raise TypeError("an executor cannot be pickled; create one inside the function")

    def _dumped(self, fn: Callable[..., Any]) -> bytes:
        """Return a pickled function. It shares its global variables with the initializer in the same pickle."""
        return pickles.dump(fn if self._first is None else (fn, *self._first), f"{pickles.title(fn)}()")

    def _post(
        self, fn: Callable[..., Any], function: Callable[[], bytes], arguments: Any, shown: dict[str, Any]
    ) -> Call:
        call = Call(self._sender.withdraw, self._sender.callbacks.run)
        title = pickles.title(fn)
        try:
            posted = Posted(call, title, function(), pickles.dump(arguments, f"the arguments of {title}()"), shown)
        except YurtError as error:
            settle(call, error=error)
            return call
        self._sender.post(posted)
        return call


def _request(options: dict[str, Any], python: str, sets: Sequence[dict[str, Any]], title: str) -> Request:
    words = ["/bin/sh", "-c", scripts.text("start_call.sh"), "yurt", python, f"python{pickles.HERE}"]
    own = "" if python else pickles.HERE
    return Request(words=words, sets=list(sets), pass_sets=False, calls=title, calls_python=own, **options)


def _chunks(calls: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(islice(calls, size)):
        yield chunk


def _results(calls: list[Call], deadline: float | None, abandon: Callable[[list[Call]], None]) -> Iterator[Any]:
    """Yield the results in order and let go of them. The end of the iterator cancels the other calls."""
    calls.reverse()
    try:
        while calls:
            yield _result(calls, None if deadline is None else deadline - time.monotonic())
    except GeneratorExit:
        abandon(calls)
        raise


def _result(calls: list[Call], timeout: float | None) -> Any:
    """Remove the last call and return its result. An error cancels the other calls; Ctrl-C does not."""
    call = calls.pop()
    try:
        return call.result(timeout)
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt) or has_raised(call, error):
            for each in (call, *calls):
                each.cancel()
        raise
    finally:
        del call  # the traceback of the exception would refer to the future, which refers to the exception


def _flattened(chunks: Iterator[list[Any]]) -> Iterator[Any]:
    """Yield the values of all chunks. A generator, as the standard library's is, so that a caller can close it."""
    for chunk in chunks:
        chunk.reverse()
        while chunk:
            yield chunk.pop()


def executor(
    context: str | None = None,
    *,
    max_workers: int | None = None,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[Any, ...] = (),
    max_tasks_per_child: int | None = None,
    python: str = "",
    **options: Unpack[Options],
) -> YurtExecutor:
    """Return a `concurrent.futures.Executor` that runs function calls on a context.

        with yurt.executor("alpha", cpus=2, time="30m") as executor:
            losses = list(executor.map(train, [0.1, 0.01, 0.001]))

    Each call is a task of a sweep, with the resources that the options request. yurt does not have to be installed on
    the site.

    - `context`: where the calls run; the current context if None.
    - `max_workers`: how many calls may run at the same time, the same as the option `max_parallel`; no limit if None.
    - `initializer`: a function that each process calls with the arguments `initargs` before its first call, and before
      the first call of another function. If it raises an exception, `submit` and calls that are not running raise
      `concurrent.futures.BrokenExecutor`.
    - `max_tasks_per_child`: how many calls one process makes at most, on the context `local`; no limit if None. With 1,
      each call has a process of its own, as it always has on a cluster.
    - `python`: the Python interpreter on the site. Default: the interpreter of `venv` or `conda` if given, or of the
      environment that the project declares, which yurt builds as for `yurt run`; otherwise one with the same Python
      version as the calling program. On the context `local`, the calling program's own.
    - `options`: the [options](#options) of `yurt run`, such as `cpus=2`, `gpus="a100:1"`, `mem="8G"`, `venv="~/env"` or
      `tags=["first"]`.

    Raises `TypeError` for an unknown option, `yurt.errors.UserError` for an invalid value, `ValueError` if
    `max_workers` is less than 1, `yurt.errors.NotFoundError` for an unknown context, and `yurt.errors.RefusedError` if
    the context cannot provide the resources, as far as yurt has recorded that; otherwise the calls raise it.
    """
    if max_workers is not None and options.get("max_parallel") is not None:
        raise UserError(
            "max_workers and max_parallel cannot be combined", code="usage", hint="pass only `max_workers=`"
        )
    for name, limit in (("max_workers", max_workers), ("max_parallel", options.get("max_parallel"))):
        if limit is not None and limit <= 0:
            raise ValueError(f"{name} must be greater than 0")
    if max_workers is not None:
        options["max_parallel"] = max_workers
    if max_tasks_per_child is not None and (type(max_tasks_per_child) is not int or max_tasks_per_child < 1):
        raise ValueError("max_tasks_per_child must be an integer of at least 1")
    return YurtExecutor(context, python, _checked(initializer, initargs), options, max_tasks_per_child or 0)


def _checked(initializer: Callable[..., object] | None, arguments: tuple[Any, ...]) -> Initializer | None:
    """Return the initializer and its arguments. TypeError: it cannot be called. CallError: it cannot be pickled."""
    if initializer is None:
        return None
    if not callable(initializer):
        raise TypeError("initializer must be a callable")
    pickles.dump((initializer, tuple(arguments)), f"the initializer {pickles.title(initializer)}()")
    return initializer, tuple(arguments)
