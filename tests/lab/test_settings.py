"""`yurt lab set`: changes settings of Slurm on a running cluster."""

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
    """Restore the lab's own settings after a test."""
    yield
    for cluster, settings in lab.instance.load_state().settings.items():
        if settings:
            lab.configure(cluster, dict.fromkeys(settings, ""))


def values(ssh: Ssh, cluster: str) -> tuple[str, str]:
    """Return the running controller's KillWait and BatchStartTimeout."""
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
    assert call("lab", "set", "alpha", "batchstarttimeout=").out == "alpha: default settings\n"
    assert values(ssh, "alpha") == ("5 sec", "10 sec")
    assert ssh.state("alpha", job) == "RUNNING", "running jobs are not affected"


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize("bad", ["KillWait=abc", "NoSuchThing=3"])
def test_a_setting_that_slurm_rejects_is_undone(lab: Lab, ssh: Ssh, bad: str) -> None:
    job = ssh.submit("beta", "sleep 300", "-o /dev/null")
    eventually(lambda: ssh.state("beta", job) == "RUNNING")
    lab.configure("beta", {"KillWait": "33"})
    assert said(call("lab", "set", "beta", bad), 5).startswith("beta: Slurm rejected the setting: ")
    eventually(lambda: ssh.ask("beta", "sinfo").code == 0)
    assert values(ssh, "beta")[0] == "33 sec"
    assert lab.instance.load_state().settings["beta"] == {"KillWait": "33"}
    assert call("lab", "set", "beta", "KillWait=34").code == 0
    assert values(ssh, "beta")[0] == "34 sec"
    eventually(lambda: ssh.state("beta", job) == "RUNNING")


@pytest.mark.parametrize("bad", ["KillWait", "=3", "Kill Wait=3", "KillWait=3\nPrologFlags=Alloc"])
def test_an_invalid_setting_is_refused(lab: Lab, bad: str) -> None:
    said(call("lab", "set", "beta", bad), 2)
    assert not lab.instance.load_state().settings.get("beta")


@pytest.mark.slow
def test_settings_survive_a_restart_but_not_a_wipe(lab: Lab, tmp_path: Path) -> None:
    home = {"YURT_CONFIG_HOME": str(tmp_path / "config"), "YURT_DATA_HOME": str(tmp_path / "data")}

    def other(*words: str) -> Called:
        return call("lab", *words, environment=home)

    def kill_wait() -> str:
        shown = other("shell", "beta", "--", "scontrol", "show", "config").out
        return next(line for line in shown.splitlines() if line.startswith("KillWait")).partition("=")[2].strip()

    try:
        assert "is not running" in said(other("set", "beta", "KillWait=35"), 5)
        assert other("up", "beta").code == 0
        assert other("set", "beta", "KillWait=35").code == 0
        assert other("down").code == 0
        assert other("up", "beta").code == 0
        assert kill_wait() == "35 sec"
        instance = Instance("default", tmp_path / "data" / "lab" / "default")
        assert instance.load_state().settings == {"beta": {"KillWait": "35"}}
        assert other("down", "beta", "--wipe").code == 0
        assert instance.load_state().settings == {}
    finally:
        other("down", "--wipe")
