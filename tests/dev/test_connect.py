"""Words of a site on the way to a dev node: a node, a user and a folder that ssh and VS Code would read as options."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from yurt.backends.answers import Asked
from yurt.backends.shell.exec import ShellExec
from yurt.config import facts, paths
from yurt.dev import keys, shortcut, ssh_config
from yurt.dev import ssh as dev_ssh
from yurt.dev import ssh_connection as connect
from yurt.dev.desks import Desk
from yurt.errors import RefusedError
from yurt.model.facts import Facts
from yurt.model.run import Run, Status
from yurt.model.site_words import NodeName
from yurt.store import Entry
from yurt.transport.ssh import SshHost

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG"


class Site:
    """A hostile site: what it prints about a dev node."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.info = {"sshd": "sshd -i", "host_key": HOST_KEY, "folder": "/tmp/dev", "workspace": "/tmp/work"}
        self.started: list[list[str]] = []
        monkeypatch.setattr(connect, "ask", lambda _entry, _request: self.info)
        monkeypatch.setattr(ShellExec, "ask", lambda *_arguments: Asked(0, f"{HOST_KEY}\n".encode(), b""))
        monkeypatch.setattr(SshHost, "session", lambda *_arguments: subprocess.Popen(["true"]))
        self._run = subprocess.run
        monkeypatch.setattr(subprocess, "run", self._start)

    def _start(self, argv: list[str], **more: object) -> subprocess.CompletedProcess[str]:
        if "-G" in argv:
            return self._run(argv, **more)  # type: ignore[call-overload, no-any-return]
        self.started.append(argv)
        return subprocess.CompletedProcess(argv, 0, "", "")

    def shows(self, *, node: str = "n1", user: str = "alice", workspace: str = "/tmp/work") -> Entry:
        self.info = {**self.info, "workspace": workspace}
        run = Run(
            id="1hmpf4s-q3m6f", context="alpha", context_type="slurm", project="p", source="/p", created=0.0,
            command=["true"], folder="/scratch/runs/1hmpf4s-q3m6f", purpose="dev", name="default",
        )  # fmt: skip
        entry = Entry(run, Status(state="running", job="7", node=node))
        self._patch.setattr(dev_ssh, "running", lambda *_arguments: Desk("default", entry))
        self._patch.setattr(dev_ssh, "facts_of", lambda _context: Facts(probed_at=0.0, user=user, host="login"))
        self._patch.setattr(facts, "load", lambda _context: None)
        return entry


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    for name in ("HOME", "YURT_CONFIG_HOME", "YURT_DATA_HOME", "YURT_RUNTIME_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    paths.write_private(
        paths.config_home() / "contexts.yaml",
        b"current_context: alpha\ncontexts:\n  alpha:\n    type: slurm\n    slurm_url: alice@login.invalid\n",
    )
    keys.public_key()
    return Site(monkeypatch)


def test_an_honest_site(site: Site) -> None:
    entry = site.shows()
    argv = dev_ssh.command("default", ["true"], terminal=False)
    assert argv[-2] == "yurt-dev" and len(site.started) == 1 and site.started[0][-3:] == ["--", "n1", "true"]
    assert connect.argv(entry, connect.link(entry, "default"), "default")[-3:-1] == ["--", "n1"]
    assert shortcut.file("default").exists()
    dev_ssh.command("default", ["true"], terminal=False)
    assert shortcut.file("default").exists()
    dev_ssh.add_name(site.shows(node="n2"))  # it moved
    assert not shortcut.file("default").exists()
    site.shows()
    assert dev_ssh.editor("default").data.command == ["code", "--remote", "ssh-remote+yurt-dev", "/tmp/work"]


@pytest.mark.parametrize(
    "node", ["-F/tmp/cfg", "-E/tmp/log", "-oProxyCommand=id", "n1 n2", "n[1-2]", "n1\nn2", "", "*"]
)
def test_a_node_that_is_no_name_starts_no_ssh(site: Site, node: str) -> None:
    site.shows(node=node)
    with pytest.raises(RefusedError, match="is not the name of a node") as refused:
        dev_ssh.command("default", ["hostname"], terminal=False)
    assert refused.value.code == "ssh-failed" and not site.started  # then the scheduler opens the terminal


def test_a_link_of_an_earlier_version_is_read_again(site: Site) -> None:
    entry = site.shows()
    link = connect.link(entry, "default")
    with pytest.raises(RefusedError, match="is not the name of a node"):
        connect.argv(entry, msgspec.structs.replace(link, node="-F/tmp/cfg"), "default")


@pytest.mark.parametrize(
    "workspace", ["--install-extension=evil", "-r", "work", "", "/tmp/a\nb", "/tmp/\x1b[2J", "/\ud800"]
)
def test_code_gets_an_absolute_path(site: Site, workspace: str) -> None:
    site.shows(workspace=workspace)
    with pytest.raises(RefusedError, match="is not an absolute path"):
        dev_ssh.editor("default")


def test_a_user_that_is_no_name_leaves_the_ssh_configuration(site: Site) -> None:
    site.shows()
    dev_ssh.command("default", [], terminal=True)
    before = ssh_config.file().read_bytes()
    site.shows(user='al" x')
    with pytest.raises(RefusedError, match="alpha: 'al\" x' is not the name of a user") as refused:
        dev_ssh.command("default", [], terminal=True)
    assert refused.value.code == "site-invalid" and ssh_config.file().read_bytes() == before


def test_ssh_takes_the_name_of_a_node_for_a_host(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Match exec 'touch ran'\n")
    for text in ("n1", "gpu-07.cluster.example", "_n"):
        argv = SshHost("alpha", "login.invalid").hop(NodeName(text), tmp_path / "hosts", "-Eran", prompt=False)
        program, *rest = argv
        done = subprocess.run([program, "-G", *rest], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert f"host {text}\n" in done.stdout and f"hostname {text}\n" in done.stdout
    for text in (f"-F{tmp_path}/config", "-Eran", "--", "-"):
        with pytest.raises(RefusedError):
            NodeName(text)
    assert [each.name for each in tmp_path.iterdir()] == ["config"]
