"""The files for systemd and launchd, read by the programs that they are for."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from yurt.agent import units

ARGV = ["/opt/my tools/bin/yurt", "agent", "start", "--foreground", 'odd"%$\\']


def test_launchd() -> None:
    assert plistlib.loads(units.launchd(ARGV).encode())["ProgramArguments"] == ARGV


def test_systemd(tmp_path: Path) -> None:
    text = units.systemd(["/bin/sh", *ARGV[1:]])
    assert '"odd\\"%%$$\\\\"' in text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs the Debian package systemd")
    file = tmp_path / "yurt-agent.service"
    file.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert "yurt-agent.service:" not in done.stderr, done.stderr
