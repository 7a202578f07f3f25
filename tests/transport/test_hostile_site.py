"""A site whose rsync or tar sends other files than those that were requested."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from yurt.backends.shell import pull
from yurt.errors import RefusedError
from yurt.model.data import Manner
from yurt.model.files import Pick, unreported
from yurt.transport import rsync, rsync_copy, rsync_process, rsync_shell, tar
from yurt.transport.local import LocalHost
from yurt.transport.ssh import SshHost

# Stands for ssh: rsync's sender, which sends the content of FOLDER whatever was requested. The older protocol sends the
# rules of the receiver in the clear, so that it can leave them out.
SENDER = """\
import os, struct, subprocess, sys, threading

def read(count):
    text = b""
    while len(text) < count:
        text += os.read(0, count - len(text)) or sys.exit(1)
    return text

sys.stderr.write(MARK + "\\n")
sys.stderr.flush()
last = b""
while (character := read(1)) + last != b"\\0\\0":  # -s: the arguments are in the input
    last = character
argv = ["rsync", "--server", "--sender", "--protocol=29", "-ltprR" if RELATIVE else "-ltpr", ".", FOLDER]
process = subprocess.Popen(argv, stdin=subprocess.PIPE, bufsize=0)
process.stdin.write(read(4))
while length := struct.unpack("<i", read(4))[0]:
    read(length)
process.stdin.write(struct.pack("<i", 0))
def relay():
    while chunk := os.read(0, 1 << 16):
        process.stdin.write(chunk)

threading.Thread(target=relay, daemon=True).start()
os._exit(process.wait())
"""


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """The files that the site sends."""
    folder = tmp_path / "evil"
    (folder / "wandb").mkdir(parents=True)
    for name in ("run.wandb", "wandb/__init__.py", "wandb/settings"):
        (folder / name).write_text("x")
    return folder


@pytest.fixture
def host(evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshHost:
    """A host whose rsync sends these files."""
    monkeypatch.setenv("YURT_RUNTIME_DIR", str(tmp_path / "runtime"))
    return hostile(f"{evil}/", monkeypatch)


def hostile(folder: str, monkeypatch: pytest.MonkeyPatch, *, relative: bool = False) -> SshHost:
    sender = f"MARK, FOLDER, RELATIVE = {rsync_shell.MARK!r}, {folder!r}, {relative}\n{SENDER}"
    words = {"YURT_SHELL": f"unset YURT_SHELL; exec {shlex.join([sys.executable, '-c', sender])}"}
    monkeypatch.setattr(rsync_shell, "variables", lambda *_words, **_more: words)
    monkeypatch.setattr(SshHost, "session", lambda _self, _deadline: contextlib.nullcontext())
    return SshHost("alpha", "alice@alpha")


def names(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir()}


def bring(host: SshHost, target: Path, pick: Pick, **more: Any) -> str:
    """Fetch with rsync; return the error."""
    target.mkdir()
    with pytest.raises(RefusedError) as refused:
        pull.transfer(host, "/results", target, pick, unreported, has_rsync=True, **more)
    assert refused.value.code == "site-refused"
    return refused.value.message


def test_rsync_sends_what_is_requested(host: SshHost, tmp_path: Path) -> None:
    """The site's rsync works: the other tests fail for the right reason."""
    (tmp_path / "all").mkdir()
    way, _brought = pull.transfer(host, "/results", tmp_path / "all", Pick(), unreported, has_rsync=True)
    assert way == "rsync" and names(tmp_path / "all") == {"run.wandb", "wandb/__init__.py", "wandb/settings"}


def test_rsync_sends_files_that_are_not_selected(host: SshHost, tmp_path: Path) -> None:
    said = bring(host, tmp_path / "only", Pick(["*.wandb"]))
    assert said.startswith("alpha sent 'wandb/") and names(tmp_path / "only") == set()
    said = bring(host, tmp_path / "without", Pick(without=["wandb"]))
    assert "'wandb'" in said and names(tmp_path / "without") == set()


def test_rsync_sends_another_run(evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_RUNTIME_DIR", str(tmp_path / "runtime"))
    host = hostile("wandb", monkeypatch, relative=True)
    monkeypatch.chdir(evil)
    said = bring(host, tmp_path / "several", Pick(), names=["run1", "run2"])
    assert "'wandb" in said and names(tmp_path / "several") == set()


def test_rsync_sends_a_folder_in_place_of_a_file(host: SshHost, tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refused:
        rsync_copy.get(host, "/data/model.pt", tmp_path / "model.pt", Manner(), unreported)
    assert refused.value.code == "site-refused"
    assert not os.path.lexists(tmp_path / "model.pt")


def test_an_older_rsync_is_not_used_to_select(host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rsync_process, "_version", lambda: (3, 2, 4))
    for pick, more in ((Pick(["*"]), []), (Pick(without=["a"]), []), (Pick(), ["run1", "run2"])):
        with pytest.raises(rsync_process.Strange):
            rsync.bring(host, "/results", tmp_path, pick, unreported, names=more)
    with pytest.raises(rsync_process.Strange):
        rsync_copy.get(host, "/data/model.pt", tmp_path / "model.pt", Manner(), unreported)


def put_first(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> LocalHost:
    """Return a host on which these scripts come before the programs of the same names."""
    folder.mkdir()
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return LocalHost()


def archive(file: Path, *members: tuple[str, bytes, str]) -> Path:
    with tarfile.open(file, mode="w") as made:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind == tarfile.REGTYPE:
                member.size = len(content)
            else:
                member.linkname = content
            made.addfile(member, io.BytesIO(content.encode()))
    return file


@pytest.mark.parametrize(
    "other",
    [
        ("wandb/settings", tarfile.REGTYPE, "base_url"),
        ("./wandb/settings", tarfile.REGTYPE, "base_url"),
        ("../run.wandb", tarfile.REGTYPE, "x"),
        ("wandb", tarfile.SYMTYPE, "/tmp"),
        ("run.wandb/..", tarfile.DIRTYPE, ""),
        ("second.wandb", tarfile.LNKTYPE, "./.env"),
    ],
)
def test_tar_sends_files_that_are_not_selected(
    other: tuple[str, bytes, str], evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (evil / "second.wandb").write_text("2")
    sent = archive(tmp_path / "sent.tar", ("./run.wandb", tarfile.REGTYPE, "x"), other)
    host = put_first(tmp_path / "bin", monkeypatch, tar=f"exec cat {sent}")
    target = tmp_path / "target"
    target.mkdir()
    (target / ".env").write_text("private")
    with pytest.raises(RefusedError) as refused:
        tar.bring(host, str(evil), target, Pick(["*.wandb"]), unreported)
    assert "was not requested" in refused.value.message, refused.value
    assert names(target) == {"run.wandb", ".env"}


def test_find_lists_files_that_are_not_below_the_folder(
    evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (path, folders) in enumerate([("../x", []), ("/etc/x", []), ("a//x", []), ("run2/x", ["run1"])]):
        host = put_first(tmp_path / str(number), monkeypatch, find=f"printf '1 1 \\0./{path}\\0'")
        with pytest.raises(RefusedError) as refused:
            tar.bring(host, str(evil), tmp_path, Pick(), unreported, names=folders)
        assert "was not requested" in refused.value.message
