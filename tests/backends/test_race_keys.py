"""Several races change authorized_keys at once: no key of the user or of another race is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

from yurt.backends import scripts

MINE = "ssh-ed25519 MINE me\n"


def start(home: Path, script: str, stdin: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        ["sh", "-c", scripts.text("claims.sh") + script],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    return process


def test_races_that_end_and_begin_at_once_keep_the_other_keys(tmp_path: Path) -> None:
    keys = tmp_path / ".ssh" / "authorized_keys"
    keys.parent.mkdir()
    keys.write_text(MINE + "".join(f"restrict ssh-ed25519 K yurt-race-old{n}\n" for n in range(12)))
    races = tmp_path / "races"
    for number in range(6):
        (races / f"new{number}").mkdir(parents=True)
    running = [start(tmp_path, f"close_race {races}/old{n}") for n in range(12)]
    running += [start(tmp_path, f"add_keys {races}/new{n} restrict 1", "xssh-ed25519 N\n") for n in range(6)]
    for each in running:
        each.wait(60)
    lines = keys.read_text().splitlines()
    assert sorted(line.split()[-1] for line in lines) == ["me", *(f"yurt-race-new{n}" for n in range(6))]
    assert [path.name for path in keys.parent.iterdir()] == ["authorized_keys"]


def test_the_lock_of_a_killed_process_is_ignored(tmp_path: Path) -> None:
    keys = tmp_path / ".ssh" / "authorized_keys"
    (tmp_path / ".ssh" / "authorized_keys.yurt-lock").mkdir(parents=True)
    keys.write_text(MINE + "restrict ssh-ed25519 K yurt-race-old\n")
    assert start(tmp_path, f"sleep() {{ :; }}; close_race {tmp_path}/races/old").wait(60) == 0
    assert keys.read_text() == MINE
    assert [path.name for path in keys.parent.iterdir()] == ["authorized_keys"]
