"""Dev nodes in daily use: a queue, a second machine, older versions, and a disk that is full."""

from __future__ import annotations

from pathlib import Path

import pexpect
import pytest

from tests.dev.dev_calls import dev, inside, up
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
]


def test_interrupted_in_the_queue(laptop: Laptop, lab: Lab) -> None:
    ssh = Ssh(lab)
    jobs = [ssh.submit("alpha", "sleep 300", f"-w {node} --exclusive -t 5 -o /dev/null") for node in ("n1", "n2", "n3")]
    terminal = laptop.spawn("dev", "up", "queued", "--context", "alpha", "--time", "5m", columns=160)
    terminal.expect(r"expected to start at \d{4}-", timeout=240)  # the pauses between two queries grow
    terminal.sendintr()
    terminal.expect("yurt: interrupted; dev node 'queued' is queued and stays; follow it with `yurt dev up queued`")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
    (seen,) = dev(laptop, "status", "queued")
    assert seen["state"] == "queued" and ssh("alpha", f"squeue -h -j {seen['job']} -o %T") == "PENDING"
    assert dev(laptop, "down", "queued")["state"] == "cancelled"
    ssh("alpha", f"scancel {' '.join(jobs)}")


def test_a_second_machine_uses_the_same_dev_node(laptop: Laptop, second_laptop: Laptop) -> None:
    first = up(laptop, "both", "--time", "10m")
    done = second_laptop.quick("dev", "up", "both", "--context", "alpha", "--gpus", "1", "--json")
    assert done.code == 0 and done.json["data"]["run"] == first["run"], done
    assert any("--gpus ignored" in each for each in done.json["warnings"]), done
    inside(second_laptop, "both", "echo one > a")
    assert dev(second_laptop, "backup", "both")["version"]["number"] == 2
    assert dev(laptop, "status", "both")[0]["version"] == 2
    assert dev(second_laptop, "down", "both")["state"] == "completed"
    assert laptop.quick("dev", "status", "both").code == 3


def test_an_older_version_comes_back(laptop: Laptop, tmp_path: Path) -> None:
    up(laptop, "older", "--time", "10m", "--node", "n1")
    inside(laptop, "older", "mkdir d && echo one > d/a && echo one > b")
    dev(laptop, "backup", "older")
    inside(laptop, "older", "echo two > d/a && rm b")
    dev(laptop, "backup", "older")
    inside(laptop, "older", "echo three > d/a")
    some = dev(laptop, "restore", "--name", "older", "--at", "v2", "d/a", "b")
    assert inside(laptop, "older", f"cat {some['folder']}/d/a {some['folder']}/b d/a") == "one\none\nthree\n"
    missing = laptop.quick("dev", "restore", "--name", "older", "--at", "v2", "nope", "--to", str(tmp_path / "no"))
    assert missing.code == 3 and "v2 has no file or folder 'nope'" in missing.err and not list(tmp_path.glob("*no*"))
    missing = laptop.quick("dev", "restore", "--name", "older", "--at", "v2", "nope")
    assert missing.code == 3 and "a path is relative to the workspace" in missing.err
    work = dev(laptop, "status", "older")[0]["workspace"]
    some = dev(laptop, "restore", "--name", "older", "--at", "v2", f"{work}/d/a")
    assert inside(laptop, "older", f"cat {some['folder']}/d/a") == "one\n"
    assert laptop.quick("dev", "restore", "--name", "older", "--at", "", "d").code == 2
    dev(laptop, "restore", "--name", "older", "--at", "v2", "d", "--to", str(tmp_path / "part"))
    assert [path.name for path in tmp_path.glob("part/**/*")] == ["d", "a"]
    whole = dev(laptop, "restore", "--name", "older", "--at", "v2", "--yes")
    assert inside(laptop, "older", f"cat d/a b {whole['aside']}/d/a") == "one\none\nthree\n"
    inside(laptop, "older", "echo four > c")
    dev(laptop, "backup", "older")
    assert dev(laptop, "down", "older")["state"] == "completed"
    up(laptop, "older", "--time", "10m", "--node", "n2")
    assert inside(laptop, "older", "cat d/a b c") == "one\none\nfour\n"
    versions = dev(laptop, "backups", "older")["versions"]
    assert not any(each["fork"] for each in versions)
    inside(laptop, "older", "echo lost > c")
    down = dev(laptop, "down", "older", "--now", "--yes")
    assert (down["state"], down["version"]) == ("cancelled", 0)


def test_a_full_disk_releases_nothing(laptop: Laptop, lab: Lab) -> None:
    job = up(laptop, "full", "--time", "10m")["job"]
    inside(laptop, "full", "echo one > a")
    lab.faults.full("alpha:scratch")
    try:
        refused = laptop.quick("dev", "down", "full")
    finally:
        lab.faults.free("alpha:scratch")
    assert refused.code == 5, refused
    assert refused.err.startswith("yurt: nothing was released: alpha: cannot back up to "), refused
    assert "the disk is full" in refused.err and "yurt dev down full --now" in refused.err
    assert Ssh(lab)("alpha", f"squeue -h -j {job} -o %T") == "RUNNING"
    assert dev(laptop, "down", "full")["version"] == 2


def test_recovery_leads_to_the_node_with_the_files(laptop: Laptop, lab: Lab) -> None:
    """One node cannot have the workspace, another cannot restore it: both say where it is, and `dev up` goes there."""
    ssh = Ssh(lab)
    up(laptop, "found", "--time", "10m", "--node", "n1")
    inside(laptop, "found", "echo one > a")
    folder = dev(laptop, "backups", "found")["folder"]
    assert dev(laptop, "down", "found")["version"] == 2
    ssh("alpha", f"printf x | dd of=$(ls {folder}/p2-*) bs=1 seek=100 conv=notrunc status=none")
    words = ("dev", "up", "found", "--context", "alpha", "--cpus", "1", "--time", "10m")
    refused = laptop.quick(*words, "--node", "n2")
    assert refused.code == 5, refused
    assert "n1 may still have its files: `yurt dev up found --context alpha --node n1`" in refused.err
    again = laptop.quick(*words, "--json").json
    assert again["data"]["node"] == "n1" and inside(laptop, "found", "cat a") == "one\n"
    assert any(each.startswith("n2 is avoided: run ") and "v2 cannot" in each for each in again["warnings"]), again
    assert "v2 is damaged: n1, which made it, may still have its files, so it starts there" in again["warnings"], again
    assert "--restore" not in " ".join(again["warnings"]), "no advice of the failed run"
    assert dev(laptop, "down", "found")["version"] == 3
    up(laptop, "found", "--time", "10m", "--node", "n2")
    assert inside(laptop, "found", "cat a") == "one\n"
    assert dev(laptop, "down", "found")["state"] == "completed"
