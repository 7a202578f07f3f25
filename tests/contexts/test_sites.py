"""context add, context probe and login on both clusters, as a user types them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pexpect
import pytest

from tests.calls import Called, call
from tests.lifecycle.test_outbox import without_controller
from tests.user import User, end_masters
from yurt.clocks import clocks
from yurt.config import contexts
from yurt.config import facts as kept
from yurt.contexts.add import complete
from yurt.errors import UserError
from yurt.lab import Lab, versions
from yurt.lab.relay import Rules
from yurt.model.context import Context
from yurt.model.facts import Account, Facts, NodeFacts, Partition
from yurt.transport import master

pytestmark = pytest.mark.lab


class Newcomer(User):
    """A user with an empty configuration who can reach the lab's clusters."""

    def __init__(self, home: Path, lab: Lab) -> None:
        super().__init__(home)
        self.lab = lab
        self.ssh = ["--ssh-option=-F", f"--ssh-option={lab.instance.client / 'ssh_config'}"]

    def add(self, cluster: str, *more: str, name: str = "") -> Called:
        return self("context", "add", name or cluster, "--slurm-url", f"alice@{cluster}", *self.ssh, *more)

    @property
    def contexts(self) -> Path:
        return self.home / "config" / "contexts.yaml"


@pytest.fixture
def laptop(tmp_path: Path, lab: Lab) -> Iterator[Newcomer]:
    with Newcomer(tmp_path / "laptop", lab) as found:
        yield found


def test_add_alpha_finds_everything(laptop: Newcomer) -> None:
    added = laptop.add("alpha", "--json")
    assert added.code == 0, added.err
    data = added.json["data"]
    written = data["context"]
    assert (written["partition"], written["account"], written["storage_dir"]) == ("main", "lab", "$SCRATCH")
    facts = data["facts"]
    assert facts["slurm_version"] == versions.installed(laptop.lab.root) and facts["accounting"] and facts["requeue"]
    assert facts["max_array"] == 10001 and facts["min_job_age"] == 60 and facts["enforces_limits"]
    limits = {
        each["name"]: (each["max_minutes"], each["grace_seconds"], each["preempt"]) for each in facts["partitions"]
    }
    assert limits == {
        "main": (1440, 0, ""),
        "short": (2, 0, ""),
        "scavenge": (1440, 0, "requeue"),
        "spot": (1440, 20, "requeue"),
    }
    assert facts["accounts"][0]["qos"] == ["few", "normal"] and facts["accounts"][0]["default"]
    assert {each["name"]: each["max_submit"] for each in facts["qos"]} == {"normal": None, "few": 4}
    assert facts["modules"] == "environment-modules" and facts["home_refusal"] == ""
    assert {each["name"]: each["path"] for each in facts["tiers"]} == {
        "home": "/home/alice",
        "project": "/lustre/project/alice",
        "scratch": "/lustre/scratch/alice",
    }
    assert {"python3", "git", "rsync", "unison", "zstd", "lz4", "sshd"} <= set(facts["tools"])
    assert "a100" in {kind["gpu_type"] for each in facts["partitions"] for kind in each["nodes"]}
    assert data["current"], "the first context is the current one"
    show = laptop("context", "show", "--json").json["data"]
    assert show


def test_add_beta_finds_its_rules(laptop: Newcomer) -> None:
    facts = laptop.add("beta", "--json").json["data"]["facts"]
    assert not facts["accounting"] and facts["accounts"] == [] and not facts["enforces_limits"]
    assert not facts["requeue"] and "requeue is not allowed" in facts["requeue_refusal"]
    assert "jobs cannot be submitted from /home" in facts["home_refusal"]
    assert facts["max_array"] == 101 and facts["min_job_age"] == 10


def test_one_round_trip(laptop: Newcomer, tmp_path: Path) -> None:
    """ssh is started once for the connection's settings, once to connect, once to query."""
    log = tmp_path / "calls"
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {shutil.which("ssh")} "$@"\n')
    wrapper.chmod(0o755)
    laptop.environment["PATH"] = f"{wrapper.parent}:{os.environ['PATH']}"
    assert laptop.add("alpha").code == 0
    first = log.read_text().splitlines()
    assert len([line for line in first if " -G " not in f" {line} " and " -M " not in f" {line} "]) == 1, first
    log.unlink()
    assert laptop("context", "probe", "alpha").code == 0
    assert len(log.read_text().splitlines()) == 1


def test_values_of_the_user_are_kept_and_must_exist(laptop: Newcomer) -> None:
    added = laptop.add("alpha", "--partition", "short", "--storage-dir", "~/runs", "--json").json["data"]["context"]
    assert (added["partition"], added["storage_dir"]) == ("short", "~/runs")
    before = laptop.contexts.read_bytes()
    refused = laptop.add("alpha", "--partition", "shrot", name="two")
    assert refused.code == 2 and "partition 'shrot' not found on the site" in refused.err
    taken = laptop.add("alpha")
    assert taken.code == 2 and "context 'alpha' already exists" in taken.err
    bad = laptop.add("alpha", name="no name")
    assert bad.code == 2 and laptop.contexts.read_bytes() == before


def test_unreachable_site_writes_nothing(laptop: Newcomer) -> None:
    answer = laptop("context", "add", "x", "--slurm-url", "alice@127.0.0.1", "--ssh-option=-p", "--ssh-option=1")
    assert answer.code == 4 and "refused the connection" in answer.err
    assert not laptop.contexts.exists()


def test_connection_lost_in_the_middle_of_a_probe(laptop: Newcomer, lab: Lab) -> None:
    assert laptop.add("alpha").code == 0
    end_masters(laptop.runtime)
    before = kept_file(laptop).read_bytes()
    try:
        for cut_at in (1000, 2600, 4200, 5000):
            lab.faults.delay("alpha", Rules(cut_at=cut_at, direction="up"))
            answer = laptop("context", "probe", "alpha")
            assert answer.code == 4 and "Traceback" not in answer.err, answer
            end_masters(laptop.runtime)
        lab.faults.delay("alpha", Rules(cut_at=7000, direction="down", connections=1))
        assert "lost connection before the output was complete" in laptop("context", "probe", "alpha").err
        assert kept_file(laptop).read_bytes() == before
    finally:
        lab.faults.heal("alpha")
    assert laptop("context", "probe", "alpha").code == 0
    assert kept_file(laptop).read_bytes() != before


def kept_file(laptop: Newcomer) -> Path:
    return laptop.home / "config" / "facts" / "alpha.json"


def test_facts_are_private_expire_and_belong_to_one_address(laptop: Newcomer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert laptop.add("alpha").code == 0
    assert kept_file(laptop).stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("YURT_CONFIG_HOME", laptop.environment["YURT_CONFIG_HOME"])
    context = contexts.named("alpha")
    found = kept.load(context)
    assert found is not None and abs(found.probed_at - time.time()) < 60
    assert kept.load(context, now=time.time() + 8 * 24 * 3600) is None, "older than a week"
    assert kept.load(Context(name="alpha", type="slurm", slurm_url="alice@other")) is None
    kept_file(laptop).write_text("{broken")
    assert kept.load(context) is None
    assert laptop("context", "remove", "alpha").code == 0
    assert not kept_file(laptop).exists()


@pytest.mark.parametrize(("cluster", "internet", "ssh"), [("alpha", True, True), ("beta", False, False)])
def test_deep_probe(laptop: Newcomer, lab: Lab, cluster: str, internet: bool, ssh: bool) -> None:
    block = lab.instance.load_state().block
    machine = ".".join(block.split(".")[:3]) + ".1"
    with socket.create_server((machine, 0)) as server:
        port = server.getsockname()[1]
        assert laptop.add(cluster).code == 0
        answer = laptop("context", "probe", cluster, "--deep", "--internet", f"{machine}:{port}", "--json")
    assert answer.code == 0, answer
    node = answer.json["data"]["node"]
    assert (node["internet"], node["ssh"]) == (internet, ssh)
    assert node["node"].startswith("n") and node["local_disk"].startswith("/scratch") and "python3" in node["tools"]
    again = laptop("context", "probe", cluster, "--json").json["data"]
    assert again["node"] == node, "a plain probe keeps the facts of the deep one"
    left = lab_ls(laptop, cluster)
    assert ".yurt-probe" not in left


def lab_ls(laptop: Newcomer, cluster: str) -> str:
    argv = [
        "ssh",
        "-F",
        str(laptop.lab.instance.client / "ssh_config"),
        cluster,
        "ls -A /lustre/scratch/alice; squeue -h",
    ]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def test_errors_of_a_deep_probe(laptop: Newcomer, lab: Lab) -> None:
    assert laptop.add("beta", "--storage-dir", "~").code == 0
    refused = laptop("context", "probe", "beta", "--deep")
    assert refused.code == 5 and "the probe job was rejected" in refused.err
    bad = laptop("context", "probe", "beta", "--deep", "--internet", "nowhere")
    assert bad.code == 2 and "HOST:PORT" in bad.err
    assert laptop.add("beta", "--storage-dir", "$NOWHERE/x", name="nowhere").code == 0
    unknown = laptop("context", "probe", "nowhere", "--deep")
    assert unknown.code == 2 and "uses $NOWHERE, which is not set on the site" in unknown.err


def test_probe_for_people(laptop: Newcomer) -> None:
    assert laptop.add("alpha").code == 0
    text = laptop("context", "probe", "alpha").out
    assert f"Slurm {versions.installed(laptop.lab.root)}" in text
    assert "main*" in text and "a100:2" in text and "requeue, 20 s" in text
    assert laptop("context", "probe", "nope").code == 3


def carol(laptop: Newcomer, *more: str) -> Called:
    return laptop("context", "add", "mfa", "--slurm-url", "carol@alpha", *laptop.ssh, *more)


def test_a_site_that_asks_for_a_code(laptop: Newcomer, lab: Lab) -> None:
    """Only `login` prompts; then every verb works; after the connection is closed, verbs say what to do."""
    refused = carol(laptop)
    assert refused.code == 4 and "asks for a password or a code" in refused.err and "yurt login mfa" in refused.err
    assert not laptop.contexts.exists()
    assert carol(laptop, "--no-probe").code == 0
    before = laptop("context", "probe", "mfa")
    assert before.code == 4 and "run `yurt login mfa`" in before.err
    code = (lab.instance.client / "carol.code").read_text().strip()
    child = laptop.spawn("login", "mfa")
    child.expect("assword:")
    child.sendline(code)
    child.expect("mfa: connected")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert laptop("context", "probe", "mfa").code == 0
    assert "already connected" in laptop("login", "mfa").out
    assert laptop("login", "mfa", "--close").code == 0
    assert laptop("context", "probe", "mfa").code == 4


def test_wrong_code(laptop: Newcomer) -> None:
    assert carol(laptop, "--no-probe").code == 0
    child = laptop.spawn("login", "mfa")
    for _attempt in range(3):
        child.expect("assword:")
        child.sendline("wrong")
    child.expect("could not log in")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5


def test_new_host_key_is_shown_with_its_fingerprint(laptop: Newcomer, lab: Lab, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    more = ["--ssh-option=-o", f"--ssh-option=UserKnownHostsFile={known}"]
    more += ["--ssh-option=-o", "--ssh-option=StrictHostKeyChecking=ask"]
    assert laptop.add("alpha", "--no-probe", *more).code == 0
    refused = laptop("context", "probe", "alpha")
    assert refused.code == 4 and "host key of alice@alpha is unknown" in refused.err
    key = (lab.instance.folder / "alpha" / "keys" / "login.pub").read_text()
    print_it = ["ssh-keygen", "-l", "-f", "-"]
    fingerprint = subprocess.run(print_it, input=key, capture_output=True, text=True, check=True).stdout.split()[1]
    child = laptop.spawn("login", "alpha")
    child.expect_exact(fingerprint)
    child.expect("yes/no")
    child.sendline("yes")
    child.expect("alpha: connected")
    child.expect(pexpect.EOF)
    assert laptop("context", "probe", "alpha").code == 0


def test_login_without_a_terminal_never_asks(laptop: Newcomer) -> None:
    assert carol(laptop, "--no-probe").code == 0
    assert laptop("login", "mfa").code == 4
    assert laptop.add("alpha", "--no-probe").code == 0
    done = laptop("login", "alpha", "--json")
    row = {"context": "alpha", "destination": "alice@alpha", "connected": True, "changed": True}
    assert done.code == 0 and done.json["data"] == [row]
    assert "alpha: closed" in laptop("login", "alpha", "--close").out
    assert "alpha: not connected" in laptop("login", "alpha", "--close").out
    assert laptop("login", "local").code == 2
    assert laptop("login", "nope").code == 3


def test_add_on_a_terminal_logs_in_and_asks_nothing_that_the_site_knows(laptop: Newcomer, lab: Lab) -> None:
    code = (lab.instance.client / "carol.code").read_text().strip()
    argv = ["context", "add", "mfa", "--slurm-url", "carol@alpha", *laptop.ssh]
    child = laptop.spawn(*argv)
    child.expect("assword:")
    child.sendline(code)
    child.expect("context 'mfa' added")
    child.expect(pexpect.EOF)
    assert "partition: main" in laptop.contexts.read_text()


FACTS = Facts(
    probed_at=0,
    user="u",
    host="h",
    partitions=[Partition(name="cpu"), Partition(name="gpu"), Partition(name="old", up=False)],
    accounts=[Account(name="a"), Account(name="b")],
)


def test_asks_only_for_what_the_site_does_not_tell() -> None:
    asked: list[tuple[str, list[str]]] = []

    def ask(question: str, names: Any) -> str:
        asked.append((question, list(names)))
        return str(names[-1])

    made = complete(Context(name="x", type="slurm", slurm_url="u@h"), FACTS, ask)
    assert (made.partition, made.account, made.storage_dir) == ("gpu", "b", "~")
    assert [names for _question, names in asked] == [["cpu", "gpu"], ["a", "b"]]
    with pytest.raises(UserError, match="the site has no default partition") as caught:
        complete(Context(name="x", type="slurm", slurm_url="u@h"), FACTS)
    assert caught.value.hint == "run the command again with one of `--partition cpu` or `--partition gpu`"


def test_contexts_written_by_the_lab_work(lab: Lab) -> None:
    for name in ("alpha", "beta"):
        answer = call("context", "probe", name, "--json")
        assert answer.code == 0 and json.loads(answer.out)["data"]["cluster"] == name
        assert call("login", name, "--close").code == 0


def test_a_probe_without_a_controller_keeps_the_old_facts(laptop: Newcomer, lab: Lab) -> None:
    assert laptop.add("beta").code == 0
    file = laptop.home / "config" / "facts" / "beta.json"
    before = file.read_bytes()
    with without_controller(lab, "beta"):
        answer = laptop("context", "probe", "beta")
    assert answer.code == 4 and "Slurm does not respond" in answer.err
    assert file.read_bytes() == before


def test_accounting_that_is_down(laptop: Newcomer, lab: Lab) -> None:
    assert laptop.add("alpha").code == 0
    lab.faults.stop_dbd("alpha")
    try:
        probed = laptop("context", "probe", "alpha", "--json").json["data"]
        assert probed["accounting_silent"] and probed["accounts"][0]["name"] == "lab", "the recorded accounts are kept"
        refused = laptop.add("alpha", name="two")
        assert refused.code == 4 and "Slurm accounting does not respond" in refused.err
        assert "two" not in laptop.contexts.read_text()
    finally:
        lab.faults.start_dbd("alpha")


def test_a_waiting_login_prompt_does_not_block_other_commands(
    laptop: Newcomer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert carol(laptop, "--no-probe").code == 0
    child = laptop.spawn("login", "mfa")
    child.expect("assword:")
    monkeypatch.setattr(master, "MARGIN", 1.0 - clocks().silent)
    other = laptop.quick("context", "probe", "mfa")
    assert child.isalive(), "the other command does not disturb the login"
    child.close(force=True)
    assert other.code == 4 and "another login is in progress" in other.err


def test_key_with_a_passphrase(laptop: Newcomer, lab: Lab, tmp_path: Path) -> None:
    key = tmp_path / "locked"
    shutil.copy(lab.instance.client / "alice", key)
    key.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-f", str(key), "-P", "", "-N", "open sesame"], check=True)
    more = ["--ssh-option=-o", f"--ssh-option=IdentityFile={key}", "--ssh-option=-o", "--ssh-option=IdentityAgent=none"]
    config = tmp_path / "config-without-key"
    text = (lab.instance.client / "ssh_config").read_text().splitlines()
    config.write_text("\n".join(line for line in text if "IdentityFile" not in line))
    laptop.ssh = ["--ssh-option=-F", f"--ssh-option={config}"]
    refused = laptop.add("alpha", *more)
    assert refused.code == 4 and "your ssh key has a passphrase and is not loaded" in refused.err
    argv = ["context", "add", "alpha", "--slurm-url", "alice@alpha", *laptop.ssh, *more]
    child = laptop.spawn(*argv)
    child.expect("passphrase")
    child.sendline("open sesame")
    child.expect("context 'alpha' added")
    child.expect(pexpect.EOF)


def test_login_uses_the_users_own_shared_connection(laptop: Newcomer, lab: Lab, tmp_path: Path) -> None:
    own = Path(f"/tmp/own-{os.getpid()}-l")
    config = tmp_path / "own-config"
    theirs = f"Host alpha\n  ControlMaster auto\n  ControlPath {own}\n  ControlPersist 60\n"
    config.write_text(theirs + (lab.instance.client / "ssh_config").read_text())
    laptop.ssh = ["--ssh-option=-F", f"--ssh-option={config}"]
    assert laptop.add("alpha", "--no-probe").code == 0
    try:
        for expected in ("alpha: connected", "alpha: already connected"):
            child = laptop.spawn("login", "alpha")
            child.expect(expected)
            child.expect(pexpect.EOF)
            assert own.is_socket()
        assert not any(each.is_socket() for each in laptop.runtime.iterdir())
    finally:
        subprocess.run(["ssh", "-S", str(own), "-O", "exit", "x"], capture_output=True, check=False)


def test_invalid_options_of_add(laptop: Newcomer) -> None:
    for words, message in (
        (["--ssh-command", "'unclosed"], "--ssh-command: No closing quotation"),
        (["--slurm-url", ""], "--slurm-url is empty"),
        (["--slurm-url", "a b"], "is not a valid address"),
    ):
        answer = laptop.add("alpha", *words)
        assert answer.code == 2 and message.lower() in answer.err.lower(), answer
    assert not laptop.contexts.exists()


def test_percent_signs_in_the_folder_for_connections(laptop: Newcomer) -> None:
    folder = laptop.runtime / "%h%%"
    laptop.environment["YURT_RUNTIME_DIR"] = str(folder)
    assert laptop.add("alpha").code == 0
    assert "already connected" in laptop("login", "alpha").out
    assert any(each.is_socket() for each in folder.iterdir())
    assert "alpha: closed" in laptop("login", "alpha", "--close").out
    assert not any(each.is_socket() for each in folder.iterdir())


def test_facts_that_cannot_be_saved(laptop: Newcomer) -> None:
    assert laptop.add("alpha").code == 0
    facts = kept_file(laptop).parent
    shutil.rmtree(facts)
    facts.write_text("a file where the folder should be")
    answer = laptop("context", "probe", "alpha")
    assert answer.code == 2 and "cannot write" in answer.err


def test_facts_of_a_node_expire_too(laptop: Newcomer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert laptop.add("beta").code == 0
    monkeypatch.setenv("YURT_CONFIG_HOME", laptop.environment["YURT_CONFIG_HOME"])
    context = contexts.named("beta")
    facts = kept.load(context)
    assert facts is not None
    for age, stays in ((3600.0, True), (8 * 24 * 3600.0, False)):
        node = NodeFacts(node="n1", probed_at=time.time() - age, internet=False, ssh=False)
        kept.save(context, msgspec.structs.replace(facts, node=node))
        assert (laptop("context", "probe", "beta", "--json").json["data"]["node"] is not None) == stays
