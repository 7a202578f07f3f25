"""yurt's own ssh configuration: what ssh makes of it, and the line that includes it."""

from __future__ import annotations

import stat
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from yurt.config import paths
from yurt.dev import keys, ssh_config
from yurt.errors import RefusedError
from yurt.model.site_words import UserName

HOMES = ["plain", "a home", "100% yurt's"]


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / str(request.param)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("YURT_CONFIG_HOME", str(made / "config"))
    monkeypatch.setenv("YURT_DATA_HOME", str(made / "data"))
    return made


def settings(host: str, *words: str) -> dict[str, str]:
    """What ssh uses for a host."""
    argv = ["ssh", "-G", "-F", str(ssh_config.file()), *words, host]
    out = subprocess.check_output(argv, text=True)
    return dict(line.split(" ", 1) for line in out.splitlines() if " " in line)


def test_ssh_understands_every_path(home: Path, tmp_path: Path) -> None:
    ssh_config.add("default", UserName("alice"))
    ssh_config.add("gpu", UserName("bob"))
    found = settings("yurt-dev-gpu")
    assert (found["user"], found["hostkeyalias"], found["hostname"]) == ("bob", "yurt-dev-gpu", "yurt-dev-gpu")
    assert settings("yurt-dev")["user"] == "alice" and settings("other")["user"] != "alice"
    assert found["stricthostkeychecking"] in ("yes", "true") and found["identitiesonly"] == "yes"
    assert (keys.folder() / "id_ed25519").exists()
    script, out, other = tmp_path / "script", tmp_path / "out", tmp_path / "other"
    script.write_text(f"printf '%s\\n' \"$*\" \"$YURT_CONFIG_HOME\" > '{out}'")
    other.write_text(ssh_config.file().read_text().replace(f"{sys.executable} -P -m yurt", f"sh {script}"))
    done = subprocess.run(["ssh", "-v", "-F", str(other), "yurt-dev-gpu"], capture_output=True, text=True, check=False)
    assert out.read_text().splitlines() == ["dev connect gpu", str(home / "config")]
    assert f"identity file {keys.private_key()} type" in done.stderr


def test_the_file_is_replaced_whole_and_private(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh_config.add("default", UserName("alice"))
    assert stat.S_IMODE(ssh_config.file().stat().st_mode) == 0o600
    before, inode = ssh_config.file().read_text(), ssh_config.file().stat().st_ino
    ssh_config.add("default", UserName("alice"))
    assert ssh_config.file().stat().st_ino == inode
    write = paths.write_private

    def full(path: Path, content: bytes) -> None:
        if path == ssh_config.file():
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(paths, "write_private", full)
    with pytest.raises(OSError, match="No space"):
        ssh_config.add("gpu", UserName("alice"))
    assert ssh_config.file().read_text() == before
    monkeypatch.undo()


def test_names_added_at_once_are_all_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path))
    keys.public_key()
    names = [f"n{number}" for number in range(12)]
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        list(pool.map(ssh_config.add, names, [UserName("alice")] * 12))
    text = ssh_config.file().read_text()
    assert all(f"\nHost yurt-dev-{name}\n" in text for name in names), text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dev", "ssh_config"]


def test_a_file_that_ssh_cannot_read_does_not_replace_the_old_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh_config.add("default", UserName("alice"))
    before = ssh_config.file().read_text()
    block = ssh_config.block
    for added in ('  User "al" x"\n', "  IdentityFiles x\n", "  User eve\nHost x\n"):

        def wrong(name: str, user: UserName, added: str = added) -> str:
            return block(name, user).replace("  User", f"{added}  User")

        monkeypatch.setattr(ssh_config, "block", wrong)
        with pytest.raises(RefusedError, match=r"dev node .(default|gpu). would be invalid"):
            ssh_config.add("gpu", UserName("bob"))
        assert ssh_config.file().read_text() == before
    assert sorted(each.name for each in keys.folder().iterdir()) == ["id_ed25519", "id_ed25519.pub", "names.json"]


def test_users_of_earlier_versions_are_read_again(home: Path) -> None:
    ssh_config.add("gpu", UserName("DOMAIN\\alice"))
    names = keys.folder() / "names.json"
    names.write_text('{"gpu": "DOMAIN\\\\alice", "old": "al\\" x"}')
    ssh_config.add("default", UserName("bob@example.org"))
    assert settings("yurt-dev-gpu")["user"] == "DOMAIN\\alice" and settings("yurt-dev")["user"] == "bob@example.org"
    assert "old" not in ssh_config.file().read_text()


def test_the_line_is_proposed_once(home: Path) -> None:
    config = home / ".ssh" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("Host *\n  User me\n")
    ssh_config.add("default", UserName("alice"))
    proposed = ssh_config.proposal()
    assert proposed is not None and proposed.after == f"{ssh_config.line()}\n\nHost *\n  User me\n"
    assert ssh_config.accept(proposed) and config.read_text() == proposed.after
    assert ssh_config.proposal() is None
    out = subprocess.check_output(["ssh", "-G", "-F", str(config), "yurt-dev"], text=True)
    assert "user alice\n" in out and "hostkeyalias yurt-dev\n" in out


def test_a_declined_line_is_not_proposed_again(home: Path) -> None:
    assert ssh_config.proposal() is not None
    ssh_config.decline()
    assert ssh_config.proposal() is None and not (home / ".ssh" / "config").exists()


def test_a_change_meanwhile_is_kept(home: Path) -> None:
    config = home / ".ssh" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("Host a\n")
    proposed = ssh_config.proposal()
    assert proposed is not None
    config.write_text("Host b\n")
    assert not ssh_config.accept(proposed) and config.read_text() == "Host b\n"
