"""What a site sends that is not a recorded answer: output without an end, frames of a tunnel, names of files."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys
import tarfile
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.campaign.hostile_answers import FOLDER, RECORD, RUN, SWEEP_FOLDER, Output, Site
from tests.campaign.hostile_python import framed
from yurt.api import pickles
from yurt.errors import RefusedError, UnreachableError
from yurt.model import metric_rows
from yurt.model.calls import CallResult
from yurt.model.files import LogPosition, Pick
from yurt.model.growth import Growing
from yurt.model.run import Status
from yurt.model.usage_samples import usage
from yurt.model.verdict import read_sweep_verdict
from yurt.node.tunnel import DATA, HEAD, MAGIC, PACKED
from yurt.services import tunnel
from yurt.store import Entry
from yurt.transport import tar, wire
from yurt.transport.base import Answer
from yurt.transport.local import LocalHost
from yurt.transport.stream import Stream

PEAK = 100 << 20
"""Bytes that a test may use."""


class Endless(Site):
    """A site whose output does not end."""

    @contextlib.contextmanager
    def stream(self, script: str, *_arguments: str, **_more: Any) -> Iterator[Any]:
        del script
        output = Output(b"")
        with mock.patch.object(Output, "__iter__", lambda _output: self.chunks()):
            yield output

    def chunks(self) -> Iterator[bytes]:
        return itertools.chain([self._content], itertools.repeat(b"x" * (1 << 16)))

    def run(self, script: str, *_arguments: str, **_more: Any) -> Answer:
        del script
        return Answer(0, b"8 17.5 \0./a\0", b"")


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < PEAK
    finally:
        tracemalloc.stop()


def header_of_a_gigabyte() -> bytes:
    member = tarfile.TarInfo("./a")
    member.type, member.size = tarfile.XHDTYPE, 1 << 30
    return member.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    ("begin", "use"),
    [
        pytest.param(b"", lambda site, _to: site.backend.files.tail([LogPosition(RUN, FOLDER)], print, follow=True)),
        pytest.param(
            b"",
            lambda site, _to: site.backend.files.tail(
                [LogPosition(RUN, FOLDER), LogPosition(RUN, SWEEP_FOLDER)], print, seconds=1
            ),
        ),
        pytest.param(b"", lambda site, _to: site.backend.files.grow([Growing(folder=FOLDER)], ["events"], mock.Mock())),
        pytest.param(
            header_of_a_gigabyte(), lambda site, to: tar.bring(site, FOLDER, to, Pick(), lambda _done, _total: None)
        ),
        pytest.param(
            b"",
            lambda site, _to: site.backend.exec.ask(Entry(RECORD, Status(job="12")).placements[0], ["true"]),
        ),
    ],
    ids=["log", "logs", "growth", "tar", "command"],
)
def test_output_without_an_end(begin: bytes, use: Callable[[Site, Path], object], tmp_path: Path) -> None:
    with little_memory(), pytest.raises(RefusedError):
        use(Endless(tmp_path, begin), tmp_path)


def test_dotfiles_that_print_without_an_end(tmp_path: Path) -> None:
    command = mock.Mock()
    with Path("/dev/zero").open("rb") as command.stdout, (tmp_path / "err").open("w+b") as err:
        stream = Stream(LocalHost(), wire.pack("true"), command, err, start=time.monotonic() + 0.5, silence=60)
        with little_memory(), pytest.raises(UnreachableError):
            next(iter(stream))


def test_a_report_of_an_upload_that_is_no_number() -> None:
    seen: list[int] = []
    script = f"printf 'at x\\nat {'9' * 5000}\\nat 3\\n'; cat > /dev/null"
    assert LocalHost().send(script, content=b"abc", resume=False, moved=seen.append).code == 0
    assert seen == [3]


@pytest.mark.parametrize(
    "frame",
    [
        HEAD.pack(DATA, 1, 1 << 30),
        HEAD.pack(PACKED, 1, 7) + b"no zlib",
        HEAD.pack(PACKED, 1, 1027) + zlib.compress(bytes(1 << 20), 9)[:1027],
    ],
    ids=["long", "damaged", "bomb"],
)
def test_frames_that_no_far_end_sends(frame: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection counts as lost, and is opened again."""
    monkeypatch.setattr(tunnel, "LOOKS", (0.0, 0.0))
    program = f"import os, time\nos.write(1, {MAGIC + frame!r})\ntime.sleep(600)"

    async def main() -> None:
        lost = asyncio.Event()
        near = tunnel.Tunnel(lambda: [sys.executable, "-c", program], on_word=lambda _text: lost.set())
        running = asyncio.create_task(near.run())
        waiting = asyncio.create_task(lost.wait())
        done, _pending = await asyncio.wait({running, waiting}, timeout=25, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, waiting):
            task.cancel()
        assert done == {waiting}

    asyncio.run(main())


def test_a_traceback_that_names_other_files(tmp_path: Path) -> None:
    """Their lines are not shown: a pipe would block for ever, and /dev/zero has a line without an end."""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "script.py").write_text("first\nsecond\n")
    (tmp_path / "secret").write_text("password\n")
    names = ["/dev/zero", f"{tmp_path}/pipe.py", f"{tmp_path}/secret", f"{tmp_path}/script.py"]
    lines = "".join(f'  File "{name}", line 1, in train\n' for name in names)
    lines += f'  File "{tmp_path}/script.py", line {"9" * 5000}, in train\n'
    text = pickles.remote_traceback(CallResult(kind="raised", traceback=lines)).text
    assert text.count("\n") == len(names) + 2
    assert "    first\n" in text and "password" not in text


def test_results_of_other_calls(tmp_path: Path) -> None:
    """A result that is missing would shift those behind it."""
    answer = framed("2", {"result": b'{"ok":true}\n'}) + framed("3", {"result": b'{"ok":true}\n'})
    with pytest.raises(RefusedError, match="other results"):
        Site(tmp_path, answer).backend.files.call_results([FOLDER, f"{FOLDER}2"])


def test_verdicts_of_tasks_that_a_sweep_lacks() -> None:
    text = b'{"state":"cancelled","tasks":{"1-9999999":{"state":"cancelled"}},"natives":{"FAILED":"0-9999999"}}'
    found = read_sweep_verdict(text)
    assert found is not None
    assert [number for number, _each in found.each(3)] == [1, 2]
    assert [number for number, _native in found.native_of_each(3)] == [0, 1, 2]


def test_samples_that_no_machine_has() -> None:
    assert usage(b"0 %s.0 1.00 2.00 100 200 50 10\n" % (b"9" * 400)) is None
    assert usage(b"0 5.0 1.00 2.00 100 %s 50 10\n" % (b"9" * 5000)) is None


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"a": 1, "b": "NaN", "c": [1, {"d": 2}]}', {"a": 1, "b": "NaN", "c": [1, {"d": 2}]}),
        (b'{"a": 1' + b"0" * 30 + b"}", {"a": 1e30}),
        (b'{"a": -1' + b"0" * 400 + b"}", {"a": float("-inf")}),
        (b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}", None),
        (b'{"a": [' + b"[1]," * 500 + b"[]]}", {"a": [*[[1]] * 500, []]}),
        (b'{"a": "\\ud800"}', None),
        (b'{"a": "' + b"x" * metric_rows.LONGEST + b'"}', None),
        (b'{"a": 1', None),
        (b"", None),
    ],
    ids=["usual", "large", "huge", "deep", "wide", "surrogate", "long", "cut", "empty"],
)
def test_lines_of_metrics(line: bytes, found: dict[str, Any] | None) -> None:
    assert metric_rows.row(line) == found
