"""The scripts that read logs: what they send, and how many programs they start on a login node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from yurt.backends.shell import logs
from yurt.backends.slurm import queries
from yurt.lifecycle.files import metrics
from yurt.model.files import LogPosition
from yurt.model.log_chunks import LogChunks
from yurt.model.status_answer import split_files
from yurt.testing.waiting import eventually

PROGRAMS = ("wc", "tail", "head", "sleep")


@pytest.fixture
def counted(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment in which every program that the scripts start is noted in a file."""
    shims, log = tmp_path / "shims", tmp_path / "started"
    shims.mkdir()
    log.touch()
    for name in PROGRAMS:
        noted, arguments = (f"{name} $1", "0.05") if name == "sleep" else (name, '"$@"')  # time runs faster
        (shims / name).write_text(f'#!/bin/sh\necho "{noted}" >> {log}\nexec {shutil.which(name)} {arguments}\n')
        (shims / name).chmod(0o755)
    return {**os.environ, "PATH": f"{shims}:{os.environ['PATH']}"}, log


def read(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> tuple[dict[str, bytes], LogChunks]:
    done = subprocess.run(
        ["sh", "-c", logs.script(many=False), "sh", str(folder), *arguments], capture_output=True, check=True, env=env
    )
    found = {"out": b"", "err": b""}

    def sink(_log: LogPosition, which: str, part: bytes) -> None:
        found[which] += part

    chunks = LogChunks(LogPosition("r", str(folder)), sink)
    for at in range(0, len(done.stdout), 7001):  # chunks of a connection end anywhere
        chunks.feed(done.stdout[at : at + 7001])
    return found, chunks


def test_logs_in_one_answer(tmp_path: Path, counted: tuple[dict[str, str], Path]) -> None:
    (tmp_path / "out.log").write_bytes(b"one\nout 3\n\0two")
    (tmp_path / "err.log").write_bytes(b"")
    found, chunks = read(tmp_path, "0", "0", "", "", "1048576", env=counted[0])
    assert found == {"out": b"one\nout 3\n\0two", "err": b""} and not chunks.more
    assert counted[1].read_text().split() == ["wc", "head"]
    assert read(tmp_path, "4", "0", "", "")[0]["out"] == b"out 3\n\0two"
    assert read(tmp_path, "0", "0", "1", "")[0]["out"] == b"\0two"


def test_a_long_log_is_not_sent_at_once(tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    (tmp_path / "out.log").write_bytes(content)
    (tmp_path / "err.log").write_bytes(b"later")
    found, chunks = read(tmp_path, "0", "0", "", "", str(1 << 20))
    assert chunks.more and found == {"out": content[: 1 << 20], "err": b""}
    found, chunks = read(tmp_path, str(1 << 20), "0", "", "")
    assert not chunks.more and found == {"out": content[1 << 20 :], "err": b"later"}


@pytest.mark.parametrize("many", [False, True])
def test_following_an_idle_run_starts_few_programs(
    tmp_path: Path, counted: tuple[dict[str, str], Path], many: bool
) -> None:
    environment, log = counted
    folders = [tmp_path / f"run{number}" for number in range(10 if many else 1)]
    for folder in folders:
        folder.mkdir()
        (folder / "out.log").write_text("hello\n")
        (folder / "err.log").write_text("warning\n")
    if many:
        words = ["yes", "", "600", *(word for each in folders for word in (str(each), "0", "0", ""))]
        script = logs.script(many=True)
    else:
        words, script = [str(folders[0]), "0", "0", "", "yes"], logs.script(many=False)
    output = tmp_path / "output"
    with output.open("wb") as stream:
        process = subprocess.Popen(["sh", "-c", script, "sh", *words], env=environment, stdout=stream)
    try:
        eventually(lambda: log.read_text().count("sleep") >= 11)
        with (folders[0] / "out.log").open("a") as text:
            text.write("more\n")
        eventually(lambda: b"more\n" in output.read_bytes())
        for folder in folders:
            (folder / "exit.json").write_text("{}")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert output.read_bytes().count(b"hello\n") == len(folders)
    lines = log.read_text().splitlines()
    sleeps = [at for at, line in enumerate(lines) if line.startswith("sleep")][:11]
    pauses = [float(lines[at].split()[1]) for at in sleeps]
    assert pauses == sorted(pauses) and pauses[0] <= 1 and pauses[-1] == 2
    assert sleeps[-1] - sleeps[-4] <= 2 * 3, "more than two programs in a turn of two seconds"


def test_the_last_metrics_of_a_running_run(tmp_path: Path) -> None:
    rows = [f'{{"step": {step}, "loss": {1 / (step + 1)}}}' for step in range(5000)]
    rows[100:100] = ['{"step": 100, "accuracy": 0.5}', '{"step": 100, "note": "a, b: {c}"}', "= queue"]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*rows, '{"step": 9, "lo']))
    (tmp_path / "usage").write_text("= 1 1 2 -\n1 30.0 1.00 1.00 5 6 - -\n")
    script = queries.files_reader(str(tmp_path)) + "echo '= queue'; echo row"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    files, rest = split_files(done.stdout, asked=True)
    assert rest == b"= queue\nrow\n" and files is not None
    assert files.usage == b"= 1 1 2 -\n1 30.0 1.00 1.00 5 6 - -\n"
    assert len(files.metrics) < 1000
    assert metrics.of(files.metrics) == metrics.of((tmp_path / "metrics.jsonl").read_bytes())


def test_a_running_run_that_has_written_nothing(tmp_path: Path) -> None:
    script = queries.files_reader(str(tmp_path)) + "echo '= queue'"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stderr == b""
    files, rest = split_files(done.stdout, asked=True)
    assert files is not None and (files.metrics, files.usage, rest) == (b"", b"", b"= queue\n")


@pytest.mark.parametrize(
    "header", [b"out -5\n", b"out 99999999999999999999\n", b"out \xc2\xb2\n", b"\xff 1\n", b"skip-out x\n"]
)
def test_a_header_without_a_length_is_an_error(header: bytes) -> None:
    chunks = LogChunks(LogPosition("run", "/run"), lambda _log, _which, _part: None)
    with pytest.raises(ValueError, match=r".*"):
        chunks.feed(header + b"bytes")


def test_only_positions_of_logs_can_be_skipped() -> None:
    log = LogPosition("run", "/run")
    LogChunks(log, lambda _log, _which, _part: None).feed(b"skip-err 7\nskip-out 5\n")
    assert (log.out, log.err) == (5, 7)
    with pytest.raises(ValueError, match="not a log"):
        LogChunks(log, lambda _log, _which, _part: None).feed(b"skip-folder 7\n5")
    assert log.folder == "/run"


def test_the_last_lines_of_a_log_without_line_breaks(tmp_path: Path) -> None:
    """A progress bar writes one line for hours: only its end is sent, and this is said."""
    content = b"start\n" + os.urandom(1 << 20).replace(b"\n", b"\r") * 3
    (tmp_path / "out.log").write_bytes(content)
    (tmp_path / "err.log").write_bytes(b"one\ntwo\n" * 200_000)
    found, chunks = read(tmp_path, "0", "0", "1", "")
    assert found["out"] == content[-1_004_096:] and found["err"] == b"two\n" and chunks._log.cut == 1_004_096
    found, chunks = read(tmp_path, "0", "0", "300000", "")
    assert found == {"out": content, "err": (b"one\ntwo\n" * 200_000)[-300_000 * 4 :]} and not chunks._log.cut
