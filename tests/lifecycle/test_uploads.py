"""Large uploads: other commands do not wait for them, and an interrupted one continues where it was."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

MB = 1_000_000


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


@pytest.fixture
def small(laptop: Laptop) -> Path:
    """Another project of the user, with little code, which alpha has already."""
    folder = laptop.home / "small"
    folder.mkdir()
    (folder / "a.py").write_text("print('small')\n")
    assert laptop("--context", "alpha", "run", "a.py", cwd=folder).code == 0
    return folder


@contextmanager
def link(laptop: Laptop, lab: Lab, **rules: Any) -> Iterator[None]:
    """Change the link to alpha for new connections, and open one."""
    laptop.quick("login", "--close", "alpha")
    lab.faults.delay("alpha", Rules(**rules))
    try:
        laptop.quick("login", "alpha")
        yield
    finally:
        lab.faults.heal("alpha")
        laptop.quick("login", "--close", "alpha")


def start(laptop: Laptop, *words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start yurt in the background."""
    return subprocess.Popen(
        [YURT, "--context", "alpha", *words],
        env={**os.environ, **laptop.environment},
        cwd=cwd or laptop.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def rows(laptop: Laptop) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = laptop.quick("ps", "--cached", "--json").json["data"]
    return found


def uploading(laptop: Laptop) -> str:
    """Wait until a run is being uploaded; return it."""

    def found() -> list[str]:
        return [row["id"] for row in rows(laptop) if row["state"] in ("waiting", "submitting")]

    eventually(lambda: bool(found()))
    with suppress(AssertionError):
        eventually(lambda: any("uploading its code" in row["reason"] for row in rows(laptop)), seconds=20)
    time.sleep(1.5)
    (run,) = found()
    return run


def uploaded(lab: Lab) -> int:
    """Return the bytes that closed connections to alpha have sent to the site."""
    log = lab.faults.rules_file("alpha").with_suffix(".log")
    return sum(json.loads(line)["up"] for line in log.read_text().splitlines()) if log.exists() else 0


def seconds(laptop: Laptop, *words: str, cwd: Path) -> float:
    started = time.monotonic()
    done = laptop(*words, cwd=cwd)
    assert done.code == 0, done
    return time.monotonic() - started


@pytest.mark.slow
def test_other_commands_do_not_wait_for_an_upload(laptop: Laptop, lab: Lab, small: Path, ssh: Ssh) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    (laptop.project / "large").write_bytes(os.urandom(18 * MB))
    with link(laptop, lab, rate=MB):
        process = start(laptop, "run", "sh", "-c", f"echo large >> {ledger}")
        run = uploading(laptop)
        calls = [["ps"], ["--context", "alpha", "run", "sh", "-c", f"echo small >> {ledger}"], ["show", run], ["ps"]]
        took = [seconds(laptop, *words, cwd=small) for words in calls]
        states = {row["id"]: row["state"] for row in rows(laptop)}
        assert states.pop(run) == "waiting" and "waiting" not in states.values()
        assert process.poll() is None, "the upload ended before the other commands were called"
        assert max(took) < 8, took
        out, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, ""), (out, err)
    assert laptop.ended(run)["state"] == "completed"
    eventually(lambda: sorted(ssh("alpha", f"cat {ledger}").split()) == ["large", "small"])


def test_an_interrupted_upload_continues(laptop: Laptop, lab: Lab, ssh: Ssh) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    (laptop.project / "large").write_bytes(os.urandom(8 * MB))
    with link(laptop, lab, rate=MB):
        process = start(laptop, "run", "sh", "-c", f"echo ran >> {ledger}")
        run = uploading(laptop)
        incoming = f"/lustre/scratch/alice/yurt/projects/{rows(laptop)[0]['project']}/incoming"
        eventually(lambda: int(ssh("alpha", f"du -sb {incoming}").split()[0]) > 3 * MB)
        process.send_signal(signal.SIGKILL)
        process.wait()
    (row,) = rows(laptop)
    assert (row["id"], row["state"]) == (run, "waiting")
    with link(laptop, lab, cut_at=6 * MB, direction="up"):  # all of it would be interrupted again; the rest fits
        done = laptop("agent", "once", "--json")
        assert done.json["data"]["submitted"] == [run], done
    assert laptop.ended(run)["state"] == "completed"
    assert ssh("alpha", f"cat {ledger}") == "ran"
    assert ssh("alpha", f"ls {incoming}") == ""


def test_a_lost_connection_says_that_the_run_is_saved_and_continues(laptop: Laptop, lab: Lab) -> None:
    (laptop.project / "large").write_bytes(os.urandom(8 * MB))
    with link(laptop, lab, cut_at=5 * MB, direction="up", connections=1):
        done = laptop("--context", "alpha", "run", "true")
    assert done.code == 0 and "is saved and will be submitted by the next yurt command" in done.err
    run = rows(laptop)[0]["id"]
    with link(laptop, lab, cut_at=5 * MB, direction="up"):
        assert laptop("wait", run, "--timeout", "100").code == 0


@pytest.mark.slow
def test_a_small_run_overtakes_an_interrupted_upload(laptop: Laptop, lab: Lab, small: Path) -> None:
    """Other commands continue the upload only for a few seconds."""
    (laptop.project / "large").write_bytes(os.urandom(40 * MB))
    with link(laptop, lab, rate=MB):
        process = start(laptop, "run", "true")
        run = uploading(laptop)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert seconds(laptop, "--context", "alpha", "run", "a.py", cwd=small) < 8
        assert rows(laptop)[0]["state"] == "queued"
        assert seconds(laptop, "ps", cwd=small) < 15
        row = next(row for row in rows(laptop) if row["id"] == run)
        assert row["state"] == "waiting" and "of 40.0 MB of its code are uploaded" in row["reason"]
        assert laptop.quick("cancel", run, "--json").json["data"][0]["state"] == "cancelled", "it was never submitted"


@pytest.mark.slow
def test_the_same_code_is_uploaded_once(laptop: Laptop, lab: Lab, ssh: Ssh) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    (laptop.project / "large").write_bytes(os.urandom(8 * MB))
    before = uploaded(lab)
    with link(laptop, lab, rate=MB):
        first = start(laptop, "run", "sh", "-c", f"echo 1 >> {ledger}")
        uploading(laptop)
        second = start(laptop, "run", "sh", "-c", f"echo 2 >> {ledger}")
        for process in (first, second):
            out, err = process.communicate(timeout=100)
            assert (process.returncode, err) == (0, ""), (out, err)
    assert uploaded(lab) - before < 12 * MB
    assert laptop.quick("wait", *(row["id"] for row in rows(laptop)), "--timeout", "100").code == 0
    assert sorted(ssh("alpha", f"cat {ledger}").split()) == ["1", "2"]


def test_a_run_cancelled_during_its_upload_is_not_submitted(laptop: Laptop, lab: Lab, ssh: Ssh) -> None:
    (laptop.project / "large").write_bytes(os.urandom(20 * MB))
    with link(laptop, lab, rate=MB):
        process = start(laptop, "run", "true")
        run = uploading(laptop)
        done = laptop("cancel", run, "--json")
        assert (done.code, done.json["data"][0]["state"]) == (0, "cancelled")
        process.communicate(timeout=10)
    assert laptop.row(run)["state"] == "cancelled"
    assert ssh("alpha", f"ls -d /lustre/scratch/alice/yurt/projects/*/runs/{run} 2> /dev/null || true") == ""


@pytest.mark.slow
def test_uploads_killed_and_cut_at_any_moment(laptop: Laptop, lab: Lab, ssh: Ssh) -> None:
    """No run is lost or started twice, and no process that was killed blocks another."""
    ledger, draw = f"/lustre/scratch/alice/ledger-{time.time()}", random.Random(7)
    expected = []
    for number in range(4):
        (laptop.project / "large").write_bytes(os.urandom(3 * MB))
        with link(laptop, lab, rate=2 * MB, cut_at=draw.choice([-1, 2 * MB]), direction="up"):
            known = {row["id"] for row in rows(laptop)}
            process = start(laptop, "run", "sh", "-c", f"echo {number} >> {ledger}")
            eventually(lambda known=known: bool({row["id"] for row in rows(laptop)} - known))  # type: ignore[misc]
            other = start(laptop, "agent", "once")
            time.sleep(draw.uniform(0, 2.5))
            for each in (process, other):
                os.killpg(each.pid, signal.SIGKILL)
                each.communicate()
            expected.append(str(number))
    eventually(lambda: laptop.quick("agent", "once", "--json").json["data"]["pending"] == [], seconds=60)
    assert laptop.quick("wait", *(row["id"] for row in rows(laptop)), "--timeout", "100").code == 0
    assert sorted(ssh("alpha", f"cat {ledger}").split()) == expected
    left = [each.name for each in (laptop.home / "data" / "outbox").iterdir()]
    assert not any(laptop.quick("ps", "--json").json["warnings"]) and len(left) <= 4


@pytest.mark.slow
def test_progress_on_a_terminal_and_as_lines(laptop: Laptop, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (laptop.project / "large").write_bytes(os.urandom(5 * MB))
    with link(laptop, lab, rate=MB):
        done = laptop("-v", "--context", "alpha", "run", "true")
        assert done.code == 0
        lines = [line.split("  ", 1)[1].strip() for line in done.err.splitlines() if "uploading the code of" in line]
        assert any(" of 5.0 MB, " in line and " MB/s, " in line and line.endswith(" s left") for line in lines), (
            done.err
        )
        (laptop.project / "large").write_bytes(os.urandom(5 * MB))
        monkeypatch.chdir(laptop.project)
        terminal = laptop.spawn("--context", "alpha", "run", "true", columns=160)
        terminal.expect(r"uploading the code of \S+: \d\.\d of 5\.0 MB, \d\.\d MB/s, \d s left")
        terminal.expect("submitted on alpha")
        terminal.wait()
