"""A dev node from its start to its end: nothing is lost when it moves, is killed, or meets another one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pexpect
import pytest

from tests.node.dev.conftest import DevNodes
from yurt.testing.waiting import eventually


def test_create_edit_end_and_move(dev: DevNodes, tmp_path: Path) -> None:
    """TERM saves the last edit; another node has it; back on the first node nothing is restored twice."""
    first = dev("n1").ready()
    assert first.numbers() == [1]
    (first.workspace / "a.txt").write_text("one")
    assert first.signal(signal.SIGTERM) == 128 + signal.SIGTERM
    assert first.status["phase"] == "ended" and first.numbers() == [1, 2], first.log
    assert first.said() == "version 2 saved"
    second = dev("n2").ready()
    assert (second.workspace / "a.txt").read_text() == "one" and "restored v2" in second.log
    (second.workspace / "a.txt").write_text("two")
    answer = second.ask("down")
    assert (answer["ok"], answer["version"]) == (True, 3) and second.ended() == 0
    third = dev("n1").ready()
    assert (third.workspace / "a.txt").read_text() == "two"
    assert sorted(each.name for each in third.root.iterdir()) == [".yurt-dev", "work"]
    assert stat.S_IMODE(third.backups.stat().st_mode) == 0o700
    third.ask("down", backup=False)
    assert third.ended() == 0 and not (third.backups / "holder").exists()


def test_killed_and_started_again_on_the_same_node(dev: DevNodes) -> None:
    """Unsaved changes are kept, and saved at once."""
    node = dev().ready()
    (node.workspace / "a.txt").write_text("unsaved")
    assert node.signal(signal.SIGKILL) == -signal.SIGKILL
    again = dev(run="r2").ready()
    assert (again.workspace / "a.txt").read_text() == "unsaved" and "kept" in again.log
    eventually(lambda: again.numbers() == [1, 2], pause=0.05)


def test_a_fork(dev: DevNodes) -> None:
    """A node with unsaved changes, while another node moved on: both are kept, as versions and as folders."""
    first = dev("n1").ready()
    (first.workspace / "a.txt").write_text("unsaved")
    first.signal(signal.SIGKILL)
    second = dev("n2").ready()  # after the beat of the first has stopped
    assert not (second.workspace / "a.txt").exists()
    (second.workspace / "b.txt").write_text("b")
    second.ask("down")
    third = dev("n1").ready()
    assert (third.workspace / "b.txt").read_text() == "b" and not (third.workspace / "a.txt").exists()
    aside = Path(third.ask("info")["aside"])
    assert aside == third.root / "work.fork-v1" and (aside / "a.txt").read_text() == "unsaved"
    assert "v3" in third.ask("info")["fork"] and third.numbers() == [1, 2, 3]
    target = third.root / "fork"
    assert third.program("restore", str(third.backups), "3", str(target))["ok"]
    assert (target / "a.txt").read_text() == "unsaved"


def test_a_failed_start_leaves_no_fork(dev: DevNodes) -> None:
    """The newest version cannot be restored now: a start keeps the unsaved changes where they are, each time."""
    first = dev("n1").ready()
    (first.workspace / "a.txt").write_text("unsaved")
    first.signal(signal.SIGKILL)
    second = dev("n2").ready()
    (second.workspace / "b.txt").write_text("b")
    second.ask("down")
    pack = json.loads((second.backups / "v2").read_bytes().split(b"\n")[0])["packs"][-1]
    file = second.backups / pack[0]
    file.rename(file.with_name("gone"))
    for _start in range(2):
        dev("n1").why()
        assert first.numbers() == [1, 2] and (first.workspace / "a.txt").read_text() == "unsaved"
    file.with_name("gone").rename(file)
    assert dev("n1").ready().numbers() == [1, 2, 3]


def test_ignored_files_are_not_removed(dev: DevNodes) -> None:
    """The workspace of a node that another one moved on from stays aside if it has files that no version has."""
    first = dev("n1").ready()
    (first.workspace / ".yurtignore").write_text("build\n")
    (first.workspace / "build").write_text("built here")
    first.ask("down")
    second = dev("n2").ready()
    assert not (second.workspace / "build").exists()
    (second.workspace / "b.txt").write_text("b")
    second.ask("down")
    third = dev("n1").ready()
    assert (third.root / "work.old-v2" / "build").read_text() == "built here"
    assert (third.workspace / "b.txt").read_text() == "b" and "not backed up" in third.log


def test_power_lost_just_after_a_restore(dev: DevNodes) -> None:
    """Files that were only in memory may be damaged, so they are restored again; what was there stays aside."""
    first = dev("n1").ready()
    (first.workspace / "a.txt").write_text("whole")
    first.ask("down")
    second = dev("n2").ready()
    mark = second.root / ".yurt-dev" / "default" / "unwritten"
    eventually(lambda: not mark.exists(), pause=0.02)
    (second.workspace / "a.txt").write_text("")
    second.signal(signal.SIGKILL)
    mark.write_text('{"boot": "an earlier one"}')
    third = dev("n2").ready()
    assert (third.workspace / "a.txt").read_text() == "whole" and third.numbers() == [1, 2]
    assert (third.root / "work.before-power-loss" / "a.txt").read_text() == "" and "lost power" in third.log
    eventually(lambda: not mark.exists(), pause=0.02)


def test_two_at_once(dev: DevNodes) -> None:
    first = dev("n1").ready()
    assert "runs on this node already" in dev("n1").why()
    assert f"runs on {os.uname().nodename} (run r1)" in dev("n2").why()
    (first.workspace / "a.txt").write_text("a")
    assert first.ask("backup")["version"]["number"] == 2 and not first.status["fork"]


def test_a_folder_that_yurt_did_not_make(dev: DevNodes, tmp_path: Path) -> None:
    (tmp_path / "n1" / "work").mkdir(parents=True)
    (tmp_path / "n1" / "work" / "mine").write_text("mine")
    assert "yurt did not make it" in dev("n1").why()
    assert (tmp_path / "n1" / "work" / "mine").read_text() == "mine"


def test_a_folder_of_another_user(dev: DevNodes, tmp_path: Path) -> None:
    (tmp_path / "n1" / ".yurt-dev").mkdir(parents=True)
    os.chown(tmp_path / "n1" / ".yurt-dev", 12345, 12345)
    assert f"{tmp_path}/n1/.yurt-dev belongs to another user" in dev("n1").why()
    (tmp_path / "shared" / "workspaces" / "default").mkdir(parents=True)
    os.chown(tmp_path / "shared" / "workspaces" / "default", 12345, 12345)
    assert "shared/workspaces/default belongs to another user" in dev("n2").why()


def test_a_workspace_on_a_shared_disk(dev: DevNodes, tmp_path: Path) -> None:
    """Keys and the socket stay on each node's own disk; what is known of the workspace is beside it, for all nodes."""
    shared = tmp_path / "lustre" / "desk"
    first = dev("n1", workspace=str(shared)).ready()
    (shared / "a.txt").write_text("unsaved")
    info = first.ask("info")
    own = tmp_path / "n1" / ".yurt-dev" / "default"
    assert (info["workspace"], info["folder"], info["socket"]) == (str(shared), str(own), str(own / "control"))
    assert list(own.glob("ssh/host_key-*")) and not list(shared.parent.rglob("*key*"))
    first.signal(signal.SIGKILL)
    second = dev("n2", workspace=str(shared)).ready()
    assert (shared / "a.txt").read_text() == "unsaved" and "kept" in second.log
    assert second.ask("down")["version"] == 2
    other = dev("n2", workspace=str(shared.with_name("other"))).ready()  # a second one beside it
    assert (shared.with_name("other") / "a.txt").exists()
    other.ask("down")
    dev("n1", workspace=str(shared)).ready()
    assert sorted(each.name for each in shared.parent.iterdir()) == [".yurt-dev", "desk", "other"]


def test_a_damaged_backup(dev: DevNodes) -> None:
    """A node that cannot restore it says what can be; the one with the files saves them again, also in `down`."""
    first = dev("n1", context="big").ready()
    (first.workspace / "a.txt").write_text("one")
    first.ask("backup")
    first.signal(signal.SIGKILL)
    flip(first.backups, "p2-*")
    why = dev("n2", context="big").why()
    assert (
        why.startswith("v2 cannot be restored: its file p2-")
        and "; v1 of " in why
        and " is the newest without damage: " in why
    ), why
    assert why.endswith(": `yurt dev up --context big --restore v1`\n"), why
    again = dev("n1").ready()
    eventually(lambda: again.numbers() == [1, 2, 3], pause=0.05)  # at once: the other node has noted the damage
    eventually(lambda: "saved again: p2-" in again.ask("info")["backup"]["note"], pause=0.05)
    assert "kept" in again.log
    flip(again.backups, "p3-*")
    answer = again.ask("check")
    assert (answer["damaged"], answer["changed"], answer["version"]["number"]) == ([2, 3], True, 4)
    assert again.ask("check")["changed"] is False
    flip(again.backups, "p4-*")
    assert again.ask("down")["version"] == 5 and again.ended() == 0
    third = dev("n3").ready()
    assert (third.workspace / "a.txt").read_text() == "one" and "restored v5" in third.log


def flip(backups: Path, start: str) -> None:
    """Change one bit of a pack."""
    file = next(backups.glob(start))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_restore(dev: DevNodes) -> None:
    """A whole version replaces the workspace, which is kept; the next node continues from there."""
    node = dev().ready()
    for text in ("one", "two"):
        (node.workspace / "a.txt").write_text(text)
        (node.workspace / f"{text}.txt").write_text(text)
        node.ask("backup")
    (node.workspace / "a.txt").write_text("three")
    parts = node.ask("restore", version=2, paths=["one.txt"])
    assert [each.name for each in Path(parts["folder"]).iterdir()] == ["one.txt"]
    with pexpect.spawn("cat", cwd=str(node.workspace), dimensions=(24, 999), encoding="utf-8") as shell:
        shell.sendline("here")
        shell.expect("here\r\nhere")
        answer = node.ask("restore", version=2)
        shell.expect_exact(
            f"replaced by v2; a shell that was in it is in {node.workspace}.before-v2 now: type `cd {node.workspace}`"
        )
    assert answer["aside"] == f"{node.workspace}.before-v2"
    assert Path(answer["aside"], "a.txt").read_text() == "three"
    assert sorted(each.read_text() for each in node.workspace.iterdir()) == ["one", "one"]
    assert "no version v99" in node.ask("restore", version=99)["error"]
    (node.workspace / "new.txt").write_text("new")
    node.signal(signal.SIGTERM)
    assert node.numbers() == [1, 2, 3, 4, 5, 6] and not node.status["fork"]
    other = dev("n2").ready()
    assert sorted(each.name for each in other.workspace.iterdir()) == ["a.txt", "new.txt", "one.txt"]
    other.ask("down")
    at = dev("n3", restore=3).ready()
    assert (at.workspace / "a.txt").read_text() == "two" and not (at.workspace / "new.txt").exists()


WRITES = """cd "$YURT_WORKSPACE" && trap '' HUP TERM; while :; do echo more >> written; sleep 0.01; done"""
"""A background process of a session that does not end by itself."""


@pytest.mark.parametrize("how", ["down", "signal"])
def test_no_session_outlives_the_node(dev: DevNodes, how: str) -> None:
    """What they write until their end is saved; a job that was submitted in a session is none of them."""
    node = dev().ready()
    info = node.ask("info")
    own = ["sh", "-c", '. "$0/environment" && exec sh -c "$1"', info["folder"], WRITES]
    job = ["sh", "-c", '. "$0/environment" && export SLURM_JOB_ID=7 && exec sleep 600', info["folder"]]
    with (
        subprocess.Popen([*own], start_new_session=True) as session,
        subprocess.Popen(info["sshd"], shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server,
        subprocess.Popen(job) as other,
    ):
        try:
            assert server.stdout is not None and server.stdout.readline().startswith(b"SSH-2.0")
            eventually((node.workspace / "written").exists, pause=0.02)
            assert node.signal(signal.SIGTERM) == 143 if how == "signal" else node.ask("down")["ok"]
            assert session.wait(60) == -signal.SIGKILL and server.wait(60) and other.poll() is None, node.log
            node.ended()
        finally:
            for each in (session, server, other):
                each.kill()
    again = dev("n2").ready()
    assert (again.workspace / "written").read_bytes() == (node.workspace / "written").read_bytes()


def test_interval_and_idle(dev: DevNodes) -> None:
    node = dev(interval=0.3, idle=2, idle_release=True, unused=True).ready()
    (node.workspace / "a.txt").write_text("a")
    assert node.ended() == 0, node.log
    assert "released, as it is idle" in node.log and len(node.numbers()) == 2


def test_a_failed_backup_is_retried(dev: DevNodes) -> None:
    node = dev(interval=0.3).ready()
    gone = node.backups.with_name("gone")
    node.backups.rename(gone)
    node.backups.write_text("in the way")
    (node.workspace / "a.txt").write_text("a")
    eventually(lambda: node.ask("info")["failure"], pause=0.05)
    assert "cannot create the backups folder" in node.ask("down")["error"] and node.process.poll() is None
    node.backups.unlink()
    gone.rename(node.backups)
    eventually(lambda: not node.ask("info")["failure"], pause=0.05)
    assert len(node.numbers()) == 2 and "backup failed: " in node.log
    node.backups.rename(gone)
    node.backups.write_text("in the way")
    (node.workspace / "a.txt").write_text("last")
    node.signal(signal.SIGTERM)
    assert re.fullmatch("its last backup failed: cannot create .*; version 2 is the newest", node.said())


def test_a_wiped_folder_is_made_again(dev: DevNodes) -> None:
    """Scratch disks are cleaned, also while a job runs. Clients know the host key, so it stays."""
    node = dev().ready()
    info = node.ask("info")
    folder = Path(info["folder"])
    host_key = next(folder.glob("ssh/host_key-*.pub"))
    assert host_key.read_text().startswith(info["host_key"])
    shutil.rmtree(folder)
    eventually(lambda: "there again" in node.log, pause=0.05)
    assert host_key.read_text().startswith(info["host_key"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(each.stat().st_mode) & 0o077 == 0 for each in folder.rglob("*"))
    key = f"{info['host_key']} me"
    assert node.ask("authorize", key=key)["ok"] and (folder / "ssh" / "authorized_keys").read_text() == f"{key}\n"
    (folder / "ssh" / "authorized_keys").unlink()
    eventually((folder / "ssh" / "authorized_keys").exists, pause=0.05)
    (node.workspace / "a.txt").write_text("a")
    assert node.ask("down")["version"] == 2 and node.ended() == 0 and not (folder / "control").exists()


def test_sessions_have_the_environment_of_the_job(dev: DevNodes) -> None:
    node = dev(limit_seconds=3600).ready()
    folder = Path(node.ask("info")["folder"])
    script = f". {folder}/environment; echo $MODULE_ROOT:$MY_TOKEN:$CCACHE_DIR:$TMPDIR"
    out = subprocess.check_output(["sh", "-c", script], env={"PATH": os.environ["PATH"]}, text=True)
    assert out == f"it's here::{folder}/caches/ccache:{folder}/caches/tmp\n"
    assert {stat.S_IMODE((folder / "caches" / each).stat().st_mode) for each in ("pip", "uv", "tmp")} == {0o700}
    assert abs(int((folder / "end").read_text()) - node.ask("time")["end"]) <= 1
    assert {stat.S_IMODE((folder / each).stat().st_mode) for each in ("environment", "control")} == {0o600}
    assert "not a public" in node.ask("authorize", key="nonsense")["error"]
    assert "unknown request" in node.ask("dance")["error"]


def test_a_signal_during_a_backup(dev: DevNodes) -> None:
    """The signal reaches all processes of the job, also tar: the backup completes, and the last edit is saved too."""
    node = dev(compression="gzip").ready()  # slow enough to be seen
    with (node.workspace / "large").open("wb") as file:
        for _ in range(40):
            file.write(os.urandom(1_000_000))
    asked = threading.Thread(target=node.ask, args=("backup",))
    asked.start()
    eventually(lambda: node.ask("info")["progress"], pause=0.01)
    (node.workspace / "last.txt").write_text("last")
    assert node.signal(signal.SIGTERM) == 128 + signal.SIGTERM
    asked.join()
    assert node.numbers() == [1, 2, 3], node.log
    other = dev("n2").ready()
    assert (other.workspace / "last.txt").read_text() == "last"
    assert (other.workspace / "large").stat().st_size == 40_000_000
