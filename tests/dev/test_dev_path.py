"""The seed's path from start to finish: a desk on one node, an automatic backup, the same desk on the next node."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pexpect
import pytest

from tests.laptop import Laptop
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

NAME = f"path-{os.urandom(3).hex()}"  # a lab that stays up has the workspaces of earlier runs
SSH = f"yurt-dev-{NAME}"


def up(laptop: Laptop, context: str, *words: str) -> dict[str, Any]:
    done = laptop.quick("dev", "up", NAME, "--context", context, "--json", *words)
    assert done.code == 0, done
    found: dict[str, Any] = done.json["data"]
    assert found["phase"] == "ready"
    return found


def versions(laptop: Laptop, context: str) -> list[dict[str, Any]]:
    """Return the versions, oldest first."""
    done = laptop.quick("dev", "backups", NAME, "--context", context, "--json")
    assert done.code == 0, done
    return sorted(done.json["data"]["versions"], key=lambda each: int(each["number"]))


def on_node(laptop: Laptop, command: str) -> str:
    done = laptop("dev", "ssh", NAME, "--", command)
    assert done.code == 0, done
    return done.out


FILES = "for i in $(seq 60); do echo line $i > src/$i.txt; done"
TREE = f"mkdir src && {FILES} && ln -s src/1.txt first && chmod 640 src/2.txt"
PRINT = "find . -exec stat -c '%n %a %F %Y' {} + | sort; find . -type f -exec sha256sum {} + | sort"


@pytest.mark.parametrize("context", ["alpha", pytest.param("beta", marks=pytest.mark.slow)])
def test_a_desk_moves_to_another_node(laptop: Laptop, second_laptop: Laptop, context: str) -> None:
    config = laptop.home / "config" / "ssh_config"
    try:
        first = up(laptop, context, "--node", "n1", "--interval", "2s", "--time", "30m")
        assert (first["node"], first["version"], first["ssh"]) == ("n1", 1, SSH)
        name = config.read_text()
        on_node(laptop, TREE)
        eventually(lambda: versions(laptop, context)[-1]["files"] == 61)
        assert versions(laptop, context)[-1]["reason"] == "interval"
        before = on_node(laptop, PRINT)
        assert laptop.quick("dev", "down", NAME).code == 0

        second = up(laptop, context, "--node", "n2", "--interval", "2s", "--time", "30m")
        assert (second["node"], second["ssh"]) == ("n2", SSH)
        assert second["version"] == versions(laptop, context)[-1]["number"]
        assert on_node(laptop, PRINT) == before and config.read_text() == name
        on_node(laptop, "echo changed > src/7.txt")
        eventually(lambda: versions(laptop, context)[-1]["number"] > second["version"])
        newest = versions(laptop, context)[-1]
        assert newest["host"] == "n2" and newest["parent"] == second["version"] and not newest["fork"]
        assert newest["new_files"] <= 3, "the first backup after the move is not incremental"
        if context == "alpha":
            argv = ["ssh", "-F", str(config), SSH, f"hostname; cat /scratch/alice/work-{NAME}/src/7.txt"]
            done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            assert (done.returncode, done.stdout) == (0, "n2\nchanged\n"), done
            # Other machines find it, whatever their current context is, and a session of one ends with it.
            second_laptop.environment["YURT_CONTEXT"] = "beta"
            third = {"YURT_DATA_HOME": str(second_laptop.home / "third")}
            seen = second_laptop.quick("dev", "status", "--json", **third).json["data"]
            assert [each["run"] for each in seen if each["name"] == NAME] == [second["run"]]
            away = second_laptop.spawn("dev", "ssh", NAME, "--", "hostname; exec sleep 600")
            away.expect("n2\r\n", timeout=120)
            assert laptop.quick("dev", "down", NAME).code == 0
            away.expect(f"yurt: dev node {NAME} on n2 ends; its workspace is backed up, and its sessions are ended")
            away.expect(pexpect.EOF, timeout=60)
    finally:
        laptop.quick("dev", "down", NAME, "--now", "--yes")


def test_a_desk_on_this_machine(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(laptop.home))
    try:
        first = up(laptop, "local")
        on_node(laptop, "echo kept > note.txt")
        assert laptop.quick("dev", "down", NAME).code == 0
        again = up(laptop, "local")
        assert again["workspace"] == first["workspace"] and on_node(laptop, "cat note.txt") == "kept\n"
        assert versions(laptop, "local")[-1]["reason"] == "down"
    finally:
        laptop.quick("dev", "down", NAME, "--now", "--yes")
