"""The receiver of an upload reports so often that a sender with the smallest window never waits for it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from yurt.backends import scripts
from yurt.transport.pace import LEAST, PIECE


@pytest.mark.timeout(60)
def test_it_reports_within_the_smallest_window(tmp_path: Path) -> None:
    content = bytes(20 << 20)  # on a fast link its pieces grow
    digest = hashlib.sha256(content).hexdigest()
    words = [str(tmp_path), "file", "sent/it", "", str(len(content)), digest, "nonce", "", str(PIECE)]
    script = scripts.text("receive_large.sh") + 'receive_large "$@"'
    with subprocess.Popen(["sh", "-c", script, "sh", *words], stdin=-1, stdout=-1) as receiver:
        assert receiver.stdin is not None and receiver.stdout is not None
        written = reported = 0
        while reported < len(content):
            count = min(len(content), reported + LEAST) - written
            receiver.stdin.write(content[:count])
            receiver.stdin.flush()
            written += count
            reported = int(receiver.stdout.readline().split()[1])  # waits for ever if the pieces are larger
        receiver.stdin.close()
    assert receiver.returncode == 0 and (tmp_path / "sent" / "it").stat().st_size == len(content)
