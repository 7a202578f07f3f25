"""The end of a dev node: its time limit, more time, a follow-up, preemption. The workspace is saved every time."""

from __future__ import annotations

import re

import pytest

from tests.dev.dev_calls import dev, inside, up
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
]


def reasons(laptop: Laptop, name: str) -> list[str]:
    return [each["reason"] for each in reversed(dev(laptop, "backups", name)["versions"])]


def runs(laptop: Laptop, name: str) -> bool:
    seen = laptop.quick("dev", "status", "--json").json["data"]  # it finds those of other tests, too
    return any(each["state"] == "running" for each in seen if each["name"] == name)


def test_a_backup_before_the_time_limit(laptop: Laptop) -> None:
    run = up(laptop, "limit", "--partition", "short", "--time", "2m")["run"]
    inside(laptop, "limit", "echo unsaved > a")
    eventually(lambda: reasons(laptop, "limit") == ["first", "limit"])
    assert laptop.row(run)["state"] == "running"
    inside(laptop, "limit", "echo last > a")
    assert laptop.ended(run)["state"] == "timeout"
    assert reasons(laptop, "limit") == ["first", "limit", "end"]


def test_a_terminal_is_warned(laptop: Laptop) -> None:
    up(laptop, "warned", "--time", "11m")
    terminal = laptop.spawn("dev", "ssh", "warned")
    if terminal.expect([r"\[Y/n\]", r"\$ $"]) == 0:
        terminal.sendline("n")
        terminal.expect(r"\$ $")
    terminal.expect("yurt: 10 minutes left on n", timeout=120)
    terminal.close()
    dev(laptop, "down", "warned", "--now", "--yes")


def test_a_killed_node(laptop: Laptop, lab: Lab) -> None:
    """Before and after Slurm notices it, everything says what is lost and what is not."""
    up(laptop, "dead", "--time", "10m", "--node", "n1")
    inside(laptop, "dead", "echo saved > a")
    back = f"`yurt dev up dead` brings version {dev(laptop, 'backup', 'dead')['version']['number']} of "
    lab.faults.kill_node("alpha:n1")
    try:
        ssh = laptop("dev", "ssh", "dead", "--", "true")
        assert ssh.code == 255, ssh
        assert "dev node 'dead': the connection to n1 of alpha failed; it was last heard of at " in ssh.err
        assert back in ssh.err
        eventually(lambda: not runs(laptop, "dead"))
        done = laptop("dev", "connect", "dead")
        assert done.code == 3 and back in done.err, done
        assert "; work since then is on n1 until it returns" in done.err
        down = laptop("dev", "down", "dead", "--json")
        assert down.json["data"]["state"] == "node_failed", down
        assert "dev node 'dead' is not running: n1 failed at " in down.json["warnings"][0]
        assert "dev node 'dead' is not running: n1 failed at " in laptop("dev", "status").err
    finally:
        lab.faults.start_node("alpha:n1")


def test_only_an_operator_extends(laptop: Laptop) -> None:
    job = up(laptop, "mine", "--time", "10m")["job"]
    refused = laptop.quick("dev", "extend", "mine", "1h")
    assert refused.code == 5 and f"`scontrol update jobid={job} TimeLimit=+60`" in refused.err
    assert "yurt dev extend mine --follow-up" in refused.err
    dev(laptop, "down", "mine", "--now", "--yes")
    file = laptop.home / "config" / "contexts.yaml"
    text = file.read_text()
    (alpha,) = re.findall(r"^  alpha:\n(?:    .*\n)+", text, re.M)
    file.write_text(text + alpha.replace("  alpha:", "  operator:").replace("alice", "oper"))
    made = dev(laptop, "up", "theirs", "--context", "operator", "--cpus", "1", "--time", "10m")
    assert dev(laptop, "extend", "theirs", "1h")["minutes"] == 60
    (seen,) = dev(laptop, "status", "theirs")
    assert 3590 < seen["ends"] - made["ends"] < 3610
    assert seen["next_backup"] > made["ends"]
    dev(laptop, "down", "theirs")


def test_a_follow_up_takes_over(laptop: Laptop, lab: Lab) -> None:
    first = up(laptop, "next", "--time", "10m")
    inside(laptop, "next", "echo one > a")
    dev(laptop, "backup", "next")
    dev(laptop, "down", "next")
    first = up(laptop, "next", "--time", "10m", "--restore", "v1")
    inside(laptop, "next", "echo two > b")
    later = dev(laptop, "extend", "next", "--follow-up")["follow_up"]
    assert dev(laptop, "extend", "next", "--follow-up")["follow_up"] == later
    Ssh(lab)("alpha", f"scancel {first['job']}")
    eventually(lambda: dev(laptop, "status", "next")[0]["run"] == later)
    second = dev(laptop, "up", "next")
    assert (second["run"], second["phase"], second["ssh"]) == (later, "ready", first["ssh"])
    assert inside(laptop, "next", "ls; cat b") == "b\ntwo\n"
    assert not dev(laptop, "backup", "next")["changed"]
    dev(laptop, "down", "next")


@pytest.mark.parametrize("partition", ["spot", "scavenge"])
def test_preempted(laptop: Laptop, lab: Lab, partition: str) -> None:
    """The workspace is saved, and the job does not come back by itself."""
    ssh = Ssh(lab)
    first = up(laptop, partition, "--partition", partition, "--node", "n1", "--time", "10m")
    inside(laptop, partition, "echo unsaved > a")
    winner = ssh.submit("alpha", "sleep 300", "-p main -w n1 --exclusive -t 5 -o /dev/null")
    ended = laptop.ended(first["run"])
    assert ended["state"] == "cancelled" and re.fullmatch(r"preempted at \d\d:\d\d; version \d+ saved", ended["reason"])
    eventually(lambda: ssh("alpha", f"squeue -h -j {winner} -o %T") == "RUNNING")
    ssh("alpha", f"scancel {winner}")
    eventually(lambda: ssh("alpha", "squeue -h") == "")
    assert reasons(laptop, partition) == ["first", "end"]
    assert laptop.quick("dev", "status", partition).code == 3
    (again,) = re.findall("help: .*`yurt (dev up .*)`", laptop.quick("why", first["run"]).out)
    assert laptop(*again.split(), "--node", "n2", "--time", "10m").code == 0
    assert inside(laptop, partition, "cat a") == "unsaved\n"
    dev(laptop, "down", partition)
