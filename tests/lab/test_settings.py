"""`yurt lab set`: settings of Slurm on a cluster that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls import Called, call
from tests.lab.conftest import Ssh
from tests.user import said
from yurt.lab import Lab
from yurt.lab.instance import Instance
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture
def own_settings(lab: Lab) -> Iterator[None]:
    """The lab's own settings are in force again for the next test."""
    yield
    for cluster, settings in lab.instance.load_state().settings.items():
        if settings:
            lab.configure(cluster, dict.fromkeys(settings, ""))


def values(ssh: Ssh, cluster: str) -> tuple[str, str]:
    """KillWait and BatchStartTimeout as the running controller has them."""
    rows = (line.partition("=")[::2] for line in ssh(cluster, "scontrol show config").splitlines())
    found = {key.strip(): text.strip() for key, text in rows}
    return found["KillWait"], found["BatchStartTimeout"]


@pytest.mark.usefixtures("own_settings")
def test_takes_effect_and_is_restored(ssh: Ssh) -> None:
    job = ssh.submit("alpha", "sleep 300", "-o /dev/null")
    eventually(lambda: ssh.state("alpha", job) == "RUNNING")
    assert values(ssh, "alpha") == ("5 sec", "10 sec")
    changed = call("lab", "set", "alpha", "KillWait=31", "BatchStartTimeout=17")
    assert (changed.code, changed.out) == (0, "alpha: KillWait=31, BatchStartTimeout=17\n")
    assert values(ssh, "alpha") == ("31 sec", "17 sec") and values(ssh, "beta") == ("5 sec", "10 sec")
    restored = call("lab", "set", "alpha", "KillWait=", "--json")
    assert restored.json["data"] == {"cluster": "alpha", "settings": {"BatchStartTimeout": "17"}}
    assert values(ssh, "alpha") == ("5 sec", "17 sec")
    assert call("lab", "set", "alpha", "batchstarttimeout=").out == "alpha: the lab's own settings\n"
    assert values(ssh, "alpha") == ("5 sec", "10 sec")
    assert ssh.state("alpha", job) == "RUNNING", "jobs go on meanwhile"


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize("bad", ["KillWait=abc", "NoSuchThing=3"])
def test_what_slurm_does_not_take_is_refused(lab: Lab, ssh: Ssh, bad: str) -> None:
    job = ssh.submit("beta", "sleep 300", "-o /dev/null")
    eventually(lambda: ssh.state("beta", job) == "RUNNING")
    lab.configure("beta", {"KillWait": "33"})
    assert said(call("lab", "set", "beta", bad), 5).startswith("beta: Slurm refused it: ")
    eventually(lambda: ssh.ask("beta", "sinfo").code == 0)
    assert values(ssh, "beta")[0] == "33 sec"
    assert lab.instance.load_state().settings["beta"] == {"KillWait": "33"}
    assert call("lab", "set", "beta", "KillWait=34").code == 0
    assert values(ssh, "beta")[0] == "34 sec"
    eventually(lambda: ssh.state("beta", job) == "RUNNING")


@pytest.mark.parametrize("bad", ["KillWait", "=3", "Kill Wait=3", "KillWait=3\nPrologFlags=Alloc"])
def test_what_is_no_setting_is_refused(lab: Lab, bad: str) -> None:
    said(call("lab", "set", "beta", bad), 2)
    assert not lab.instance.load_state().settings.get("beta")


def test_they_outlive_a_restart_but_not_a_wipe(lab: Lab, tmp_path: Path) -> None:
    home = {"YURT_CONFIG_HOME": str(tmp_path / "config"), "YURT_DATA_HOME": str(tmp_path / "data")}

    def other(*words: str) -> Called:
        return call("lab", *words, environment=home)

    def kill_wait() -> str:
        shown = other("shell", "beta", "--", "scontrol", "show", "config").out
        return next(line for line in shown.splitlines() if line.startswith("KillWait")).partition("=")[2].strip()

    try:
        assert "is not up" in said(other("set", "beta", "KillWait=35"), 5)
        assert other("up", "beta").code == 0
        assert other("set", "beta", "KillWait=35").code == 0
        assert other("down").code == 0
        assert other("up", "beta").code == 0
        assert kill_wait() == "35 sec"
        memory = Instance("default", tmp_path / "data" / "lab" / "default")
        assert memory.load_state().settings == {"beta": {"KillWait": "35"}}
        assert other("down", "beta", "--wipe").code == 0
        assert memory.load_state().settings == {}
    finally:
        other("down", "--wipe")
