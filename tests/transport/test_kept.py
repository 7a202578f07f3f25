"""Scripts that a site keeps: sent once, then called by their checksum; purged and tampered ones are sent again."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO

import pytest

from tests.transport.conftest import site
from yurt.lab import Lab
from yurt.transport import wire
from yurt.transport.base import LONG
from yurt.transport.command import Command
from yurt.transport.ssh import SshHost

PADDING = "\n".join(f"# line {number}" for number in range(LONG // 8))
SCRIPT = f'eval "$yurt_first"\n{PADDING}\necho "$1 $(cat)"\n'


def sh(parcel: wire.Parcel, more: bytes, home: Path, *, cut: int = 0) -> bytes:
    whole = parcel.stdin + more
    return subprocess.run(
        ["sh", "-c", parcel.command],
        input=whole[: len(whole) - cut],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    ).stdout


def packed(keep: wire.Keep, first: str = "") -> wire.Parcel:
    return wire.pack(SCRIPT, ["it's"], first=first, keep=keep)


def test_saved_and_called(tmp_path: Path) -> None:
    call = packed("call", "echo first")
    assert call.missing in sh(call, b"input", tmp_path) and len(call.stdin) < 1000
    save = packed("save", "echo first")
    output = sh(save, b"input", tmp_path)
    assert wire.unpack(save, output) == wire.Framed(b"first\nit's input\n", 0)
    assert wire.was_kept(save, output) and save.name == call.name
    assert [path.name for path in (tmp_path / ".cache" / "yurt" / "scripts").iterdir()] == [save.name]
    again = packed("call", "echo 'it'")
    output = sh(again, b"more", tmp_path)
    assert wire.unpack(again, output) == wire.Framed(b"it\nit's more\n", 0) and not wire.was_kept(again, output)


@pytest.mark.parametrize("change", ["append", "truncate", "replace", "folder"])
def test_a_file_that_differs_is_not_executed(tmp_path: Path, change: str) -> None:
    sh(packed("save"), b"", tmp_path)
    (file,) = (tmp_path / ".cache" / "yurt" / "scripts").iterdir()
    match change:
        case "append":
            file.write_text(file.read_text() + f"\ntouch {tmp_path}/evil\n")
        case "truncate":
            file.write_text(file.read_text()[:-10])
        case "replace":
            file.write_text(f"touch {tmp_path}/evil\nyurt_main() {{ touch {tmp_path}/evil; }}\n{wire.END}")
        case "folder":
            file.unlink()
            file.mkdir()
    call = packed("call", f"touch {tmp_path}/first")
    output = sh(call, b"input", tmp_path)
    assert wire.unpack(call, output) is None and call.missing in output
    assert not (tmp_path / "evil").exists() and not (tmp_path / "first").exists()


def test_a_truncated_script_does_nothing(tmp_path: Path) -> None:
    """Wherever the connection breaks: what arrived is either the whole script, or not executed."""
    save = packed("save", f"echo first >> {tmp_path}/ledger")
    stub = len(save.stdin) - len(SCRIPT) - 60
    for cut in [1, 2, 3, 20, len(wire.END), 100, len(SCRIPT) // 2, len(SCRIPT), len(save.stdin) - stub + 5]:
        sh(save, b"", tmp_path, cut=cut)
        assert not (tmp_path / "ledger").exists(), cut
    assert not (tmp_path / ".cache").exists()
    sh(save, b"", tmp_path)
    assert (tmp_path / "ledger").read_text() == "first\n"


def test_old_scripts_are_removed(tmp_path: Path) -> None:
    import os
    import time

    folder = tmp_path / ".cache" / "yurt" / "scripts"
    folder.mkdir(parents=True)
    (folder / "old").write_text("x")
    (folder / "new").write_text("x")
    os.utime(folder / "old", (time.time() - 90 * 86400,) * 2)
    save = packed("save")
    sh(save, b"", tmp_path)
    assert {path.name for path in folder.iterdir()} == {"new", save.name}


def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the size of every script that is sent."""
    sent: list[int] = []
    start = SshHost.start

    def noted(self: SshHost, parcel: wire.Parcel, err: IO[bytes] | None) -> Command:
        sent.append(len(parcel.stdin))
        return start(self, parcel, err)

    monkeypatch.setattr(SshHost, "start", noted)
    return sent


@pytest.mark.lab
def test_on_a_site(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    host = site(lab, "alpha")
    host.run("rm -rf ~/.cache/yurt/scripts")
    sent = sizes(monkeypatch)

    def call() -> list[int]:
        sent.clear()
        assert host.run(SCRIPT, "a", stdin=b"b", first="echo c", fixed=True).out == b"c\na b\n"
        return [size // LONG for size in sent]

    assert [call(), call()] == [[1], [0]]
    host.run("rm -rf ~/.cache/yurt/scripts")  # purged
    assert [call(), call()] == [[0, 1], [0]]
    host.run("for each in ~/.cache/yurt/scripts/*; do echo 'echo evil' >> $each; done")
    assert [call(), call()] == [[0, 1], [0]]
    host.run(
        "rm -rf ~/.cache/yurt/scripts && mkdir -p ~/.cache/yurt && : > ~/.cache/yurt/scripts"
    )  # nothing can be kept
    assert [call(), call()] == [[0, 1], [1]]
    host.run("rm -f ~/.cache/yurt/scripts")
    assert [call(), call()] == [[1], [0]]
