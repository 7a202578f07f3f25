"""What doctor finds on this machine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import hints
from tests.calls import Called
from tests.user import User
from yurt.contexts.doctor import fixes, keys, machine, ssh_config
from yurt.contexts.doctor.finding import Fix
from yurt.contexts.doctor.keys import read_key
from yurt.contexts.doctor.programs import version_in
from yurt.errors import RefusedError

SOURCE = Path(machine.__file__).parents[2]


@pytest.fixture(autouse=True)
def home(user: User) -> Path:
    folder = user.home / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    user.environment["HOME"] = str(folder)
    return folder


def key(path: Path, *options: str, passphrase: str = "") -> Path:
    argv = ["ssh-keygen", "-q", *(options or ("-t", "ed25519")), "-N", passphrase, "-f", str(path)]
    subprocess.run(argv, check=True)
    return path


def problems(done: Called) -> list[tuple[str, str]]:
    listed: list[dict[str, Any]] = done.json["data"]["machine"]
    assert all(each["remedy"] for each in listed if each["result"] in ("warning", "fault"))
    assert [problem for each in listed for problem in hints.wrong(each["remedy"], ["big", "local"])] == []
    return [(each["result"], each["text"]) for each in listed if each["result"] in ("warning", "fault")]


def test_a_machine_without_faults(user: User, home: Path) -> None:
    key(home / ".ssh" / "id_ed25519")
    done = user.quick("doctor", "local", "--json")
    assert done.code == 0 and problems(done) == []
    text = user.quick("doctor", "local").out
    assert text.startswith("this machine\n  ✓ ") and "0 faults" in text


def test_keys(user: User, home: Path) -> None:
    ssh = home / ".ssh"
    key(ssh / "id_ed25519").chmod(0o644)
    key(ssh / "old", "-t", "rsa", "-b", "2048")
    key(ssh / "locked", passphrase="secret")
    ssh.chmod(0o777)
    done = user.quick("doctor", "local", "--json")
    assert done.code == 1
    assert sorted(problems(done)) == [
        ("fault", "~/.ssh/id_ed25519: other users can read it, so ssh ignores it"),
        ("fault", "~/.ssh: other users can write to it"),
        ("warning", "~/.ssh/locked has a passphrase and is not in the agent, so only `yurt login` can use it"),
        ("warning", "~/.ssh/old is weak: RSA with 2048 bits"),
    ]


def test_paths_that_the_user_cannot_read(user: User, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = home / ".ssh"
    locked = [key(ssh / "id_ed25519"), ssh / "config"]
    locked[1].touch(0o600)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path not in locked and access(path, mode))
    assert problems(user.quick("doctor", "local", "--json")) == [
        ("fault", "you cannot read ~/.ssh/config, so ssh ignores it"),
        ("fault", "you cannot read ~/.ssh/id_ed25519, so ssh ignores it"),
    ]
    locked[:] = [ssh, user.home / "config"]
    monkeypatch.setattr(keys, "private_keys", lambda _where: [])
    found = problems(user.quick("doctor", "local", "--json"))
    assert ("fault", "you cannot read ~/.ssh, so ssh finds no key and no configuration") in found
    assert sum("is not readable and writable" in text for _, text in found) == (user.home / "config").exists()


def test_a_configuration_of_ssh_that_does_not_end(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    real = keys.run
    monkeypatch.setattr(keys, "run", lambda argv: None if argv[0] == "ssh" else real(argv))
    found = problems(user.quick("doctor", "local", "--json"))
    assert ("fault", "ssh does not read its configuration within 10 s") in found


def test_a_folder_for_a_key_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fix = Fix(title="", command=["ssh-keygen", "-f", str(tmp_path / "file" / "ssh" / "key")])
    with pytest.raises(RefusedError, match="cannot create"):
        fixes.apply(fix)


def test_an_agent(user: User, home: Path) -> None:
    locked = key(home / ".ssh" / "locked")
    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    agent = dict(re.findall(r"(SSH_\w+)=([^;]+);", started))
    try:
        subprocess.run(["ssh-add", "-q", str(locked)], env={**os.environ, **agent}, check=True)
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(locked)], check=True)
        with_agent = user.quick("doctor", "local", "-v", SSH_AUTH_SOCK=agent["SSH_AUTH_SOCK"]).out
    finally:
        os.kill(int(agent["SSH_AGENT_PID"]), 15)
    assert "~/.ssh/locked: ED25519, in the agent" in with_agent and "the agent has 1 key\n" in with_agent
    assert ("warning", "the agent that SSH_AUTH_SOCK names does not respond") in problems(
        user.quick("doctor", "local", "--json", SSH_AUTH_SOCK=f"{home}/nowhere")
    )


def test_files_index_contexts_and_variables(user: User, home: Path) -> None:
    key(home / ".ssh" / "id_ed25519")
    config = user.home / "config"
    config.mkdir()
    (config / "contexts.yaml").write_text(
        "contexts:\n  big:\n    type: slurm\n    tmie: 3\n    slurm_url: a@b.example\n"
    )
    config.chmod(0o755)
    (user.home / "data").mkdir(mode=0o700, exist_ok=True)
    (user.home / "data" / "yurt.db").write_bytes(b"not an index, but long enough to be read as one" * 100)
    done = user.quick("doctor", "local", "--json", YURT_CONTXT="big")
    found = dict(zip((text for _result, text in problems(done)), problems(done), strict=True))
    assert done.code == 1 and {result for result, text in found.values() if "run index" in text} == {"fault"}
    assert "yurt does not know a variable" in found
    assert "a context is invalid" in found
    assert any("other users can read or change it" in text for text in found)
    (invalid,) = (each for each in done.json["data"]["machine"] if each["text"] == "a context is invalid")
    assert "tmie" in invalid["detail"] and re.search(r"contexts\.yaml:4", invalid["detail"])


def test_programs_that_are_missing(user: User, tmp_path: Path) -> None:
    only = tmp_path / "bin"
    only.mkdir()
    for name in (
        "sh",
        "ssh",
        "tar",
        "bash",
        "id",
        "head",
        "df",
        "awk",
        "uname",
        "date",
        "mv",
        "rm",
        "cat",
        "find",
        "tail",
    ):
        (only / name).symlink_to(f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}")
    (only / "git").write_text("#!/bin/sh\necho git version 1.8.3.1\n")
    (only / "git").chmod(0o755)
    found = problems(user.quick("doctor", "local", "--json", PATH=str(only)))
    assert ("fault", "git is too old: version 1.8.3.1; the oldest that works is 2.17") in found
    assert ("warning", "rsync is not installed; yurt uses it for faster downloads") in found


def test_every_variable_that_yurt_reads_is_known() -> None:
    internal = {"YURT_CLEAN", "YURT_COMPLETE", "YURT_SCRATCH", "YURT_SHARE"}
    read = set()
    for file in SOURCE.rglob("*.py"):
        if "/node/" not in str(file) and "/job/" not in str(file):
            read |= set(re.findall(r'environ(?:\.get\(|\[|\.pop\()"(YURT_[A-Z_]+)"', file.read_text()))
    assert read - internal - machine.VARIABLES - {f"YURT_{name}" for name in machine.OF_RUNS} <= {"YURT_PARAMS"}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17", (9, 2)),
        ("OpenSSH_for_Windows_8.1p1, LibreSSL 3.0.2", (8, 1)),
        ("git version 2.39.5 (Apple Git-154)", (2, 39, 5)),
        ("rsync  version v3.5.0  protocol version 32", (3, 5, 0)),
        ("tar (GNU tar) 1.34", (1, 34)),
        ("bsdtar 3.5.3 - libarchive 3.5.3", (3, 5, 3)),
        ("*** Zstandard CLI (64-bit) v1.5.4, by Yann Collet ***", (1, 5, 4)),
        ("", ()),
    ],
)
def test_versions(line: str, version: tuple[int, ...]) -> None:
    assert version_in(line) == version


def test_a_version_of_thousands_of_digits() -> None:
    assert len(str(version_in(f"x 1.{'9' * 5000}"))) < 100


def test_lines_of_ssh_keygen() -> None:
    found = read_key("256 SHA256:abc+/ alice (at) home (ED25519)\n")
    assert (found.bits, found.fingerprint, found.type) == (256, "SHA256:abc+/", "ED25519")
    assert read_key("256 SHA256:x no comment (ED25519-SK)").type == "ED25519-SK"
    assert read_key("is not a public key file").type == ""


def test_an_alias_is_added_once_and_never_breaks_other_blocks(tmp_path: Path) -> None:
    before = "Include other.conf\nHost old\n  User bob"
    after = ssh_config.with_alias(before, "big", "login.big.example", "alice")
    assert after == before + "\n\nHost big\n  HostName login.big.example\n  User alice\n"
    assert ssh_config.works(after, "big", "login.big.example", "alice")
    assert not ssh_config.works("Host *\n  User bob\n" + after, "big", "login.big.example", "alice")
    real, link = tmp_path / "real", tmp_path / "config"
    real.write_text(before)
    real.chmod(0o640)
    link.symlink_to(real)
    assert ssh_config.write(link, before, after) and real.read_text() == after and link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert not ssh_config.write(link, before, after), "the file has changed"


def test_an_alias_keeps_the_line_endings_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"Host *\r\n  Compression no\r\n")
    before = ssh_config.text_of(file)
    after = ssh_config.with_alias(before, "big", "login.big.example", "alice")
    assert ssh_config.works(after, "big", "login.big.example", "alice")
    assert ssh_config.write(file, before, after)
    assert file.read_bytes().startswith(b"Host *\r\n  Compression no\r\n\r\nHost big\r\n")
    assert "\r" not in fixes.preview(Fix(title="", file="f", before=before, after=after))


def test_the_page_where_a_site_wants_keys() -> None:
    assert (
        keys.registration("narval3.narval.calcul.quebec")
        == "register it at https://ccdb.alliancecan.ca/ssh_authorized_keys"
    )
    assert "ssh-copy-id" in keys.registration("login.example.com")
