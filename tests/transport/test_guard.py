"""Programs that yurt has started end with it, also if it is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from yurt.testing.waiting import eventually

RSYNC = """\
#!/bin/sh
sleep 600 &
echo "$$ $!" > {folder}/pids
wait
"""

COPY = """\
from pathlib import Path
from yurt.transport.local import LocalHost
from yurt.transport.rsync_process import Process
from yurt.transport.rsync_report import Report
from yurt.model.files import unreported
Process(LocalHost(), Report()).run(["{folder}/rsync"], unreported)
"""


def ended(process: str) -> bool:
    file = Path(f"/proc/{process}/status")
    return not file.exists() or "State:\tZ" in file.read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_transfer_ends_with_a_yurt_that_is_killed(tmp_path: Path) -> None:
    rsync, pids = tmp_path / "rsync", tmp_path / "pids"
    rsync.write_text(RSYNC.format(folder=tmp_path))
    rsync.chmod(0o755)
    with subprocess.Popen([sys.executable, "-c", COPY.format(folder=tmp_path)]) as yurt:
        eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        yurt.send_signal(signal.SIGKILL)
    for each in pids.read_text().split():
        eventually(lambda each=each: ended(each))  # type: ignore[misc]
