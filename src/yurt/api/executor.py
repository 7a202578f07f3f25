"""`yurt.executor`: functions on any context, by the interface of concurrent.futures."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from types import TracebackType
from typing import Any, Unpack

from yurt.api import pickles
from yurt.api.batch import LONGEST, Posted
from yurt.api.future import Call
from yurt.api.options import Options, fields
from yurt.api.sender import Sender
from yurt.backends import scripts
from yurt.backends.kinds import kind_of
from yurt.config import contexts
from yurt.errors import YurtError
from yurt.lifecycle.plan.request import Request
from yurt.sites.fan_out import ready


class YurtExecutor(Executor):
    """Calls that are submitted at about the same time go out as one sweep. It ends as any Executor: by `with`.

    Ctrl-C inside the block leaves what is out to go on, and says how to end it.
    """

    def __init__(self, context: str | None, python: str, options: Options) -> None:
        ready()
        asked = fields(options, "yurt.executor()")
        found = contexts.named(contexts.current_name(context or ""))
        python = python or (sys.executable if kind_of(found.type).here else "")
        self._sender = Sender(found, partial(_request, asked, python))
        weakref.finalize(self, self._sender.close).atexit = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Call:
        """Have a function called with these arguments, as they are now."""
        return self._post(fn, lambda: _dumped(fn), (args, kwargs), pickles.shown(fn, args, kwargs))

    def map(
        self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[Any]:
        """As of the standard library. All calls go out together; with a chunksize, so many are made by one task."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        with self._sender.batch.held(LONGEST):  # what it goes through may wait for the value of another call
            calls = _Mapped(self._post, fn, chunks=chunksize > 1)
            if chunksize == 1:
                return calls.map(fn, *iterables, timeout=timeout)
            chunks = _chunks(zip(*iterables, strict=False), chunksize)
            return _one_by_one(calls.map(fn, chunks, timeout=timeout))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is submitted meanwhile goes out as one sweep, at its end, or when its result is waited for."""
        with self._sender.batch.held():
            yield

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As of the standard library: nothing more is taken. With `cancel_futures`, what does not run is cancelled."""
        self._sender.close()
        if cancel_futures:
            for call in self._sender.open():
                call.cancel()
        if wait:
            self._sender.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._leave()
        else:
            self.shutdown()

    def _leave(self) -> None:
        """Ctrl-C: whoever is on a cluster goes on there."""
        self._sender.close()
        for call in self._sender.batch.empty():
            call.cancel()
        self._sender.sent()
        for sweep in self._sender.receiver.leave():
            print(f"yurt: {sweep} goes on; to end it: yurt cancel {sweep}", file=sys.stderr)

    def _post(self, fn: Callable[..., Any], function: Callable[[], bytes], given: Any, shown: dict[str, Any]) -> Call:
        call = Call(self._sender.receiver.withdraw)
        title = pickles.title(fn)
        try:
            posted = Posted(call, title, function(), pickles.dump(given, f"the arguments of {title}()"), shown)
        except YurtError as error:
            call.begin()
            call.set_exception(error)
            return call
        self._sender.post(posted)
        return call


class _Mapped(Executor):
    """For one `map`: the standard library's own, with the function pickled once for all calls."""

    def __init__(self, post: Callable[..., Call], fn: Callable[..., Any], *, chunks: bool) -> None:
        self._post, self._function, self._chunks = (
            post,
            cache(lambda: _dumped(fn)),
            chunks,
        )

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_named: Any) -> Call:
        if not self._chunks:
            return self._post(fn, self._function, (args, {}), pickles.shown(fn, args, {}))
        (chunk,) = args
        return self._post(fn, self._function, chunk, {"calls": len(chunk), **pickles.shown(fn, chunk[0], {})})


def _request(asked: dict[str, Any], python: str, sets: Sequence[dict[str, Any]], title: str) -> Request:
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    words = ["/bin/sh", "-c", scripts.text("start_call.sh"), "yurt", python, here]
    return Request(words=words, sets=list(sets), pass_sets=False, calls=title, **asked)


def _dumped(fn: Callable[..., Any]) -> bytes:
    return pickles.dump(fn, f"{pickles.title(fn)}()")


def _chunks(calls: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(islice(calls, size)):
        yield chunk


def _one_by_one(chunks: Iterator[list[Any]]) -> Iterator[Any]:
    """The values in chunks. A generator, as the standard library's is: who closes it wants no more of them."""
    for chunk in chunks:
        yield from chunk


def executor(context: str | None = None, *, python: str = "", **options: Unpack[Options]) -> YurtExecutor:
    """A concurrent.futures.Executor whose calls run on a context, or on the current one.

    Options are those of `yurt run`: cpus=2, gpus="a100:1", mem="8G", time="30m", venv=…, tags=[…]. `python` is the
    interpreter there; without it, that of venv or conda, else the version that runs here.
    """
    return YurtExecutor(context, python, options)
