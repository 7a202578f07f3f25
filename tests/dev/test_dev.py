"""Dev nodes on real clusters: one workspace on two nodes, its backups, and a copy on another cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dev.dev_calls import dev
from tests.laptop import Laptop


def inside(laptop: Laptop, run: str, command: str) -> str:
    done = laptop("shell", run, "--", "sh", "-c", f"cd /scratch/alice/work-seat && {command}")
    assert done.code == 0, done
    return done.out


@pytest.mark.slow
def test_a_workspace_moves(laptop: Laptop, tmp_path: Path) -> None:
    first = dev(laptop, "up", "seat", "--context", "alpha", "--node", "n1", "--time", "10m")
    assert (first["state"], first["phase"], first["node"], first["version"]) == ("running", "ready", "n1", 1)
    again = laptop.quick("dev", "up", "seat", "--cpus", "2", "--json").json
    assert again["data"]["run"] == first["run"] and "--cpus ignored" in again["warnings"][0]
    inside(laptop, first["run"], "mkdir src && echo one > src/a")
    assert dev(laptop, "backup", "seat")["version"]["number"] == 2
    inside(laptop, first["run"], "echo two > src/a")
    refused = laptop.quick("dev", "extend", "seat", "1h", "--json")
    assert refused.code == 5 and "TimeLimit=+60" in refused.json["error"]["hint"]
    down = dev(laptop, "down", "seat")
    assert (down["state"], down["version"]) == ("completed", 3)
    second = dev(laptop, "up", "seat", "--context", "alpha", "--node", "n2", "--time", "10m")
    assert (second["node"], second["ssh"], second["version"]) == ("n2", first["ssh"], 3)
    assert inside(laptop, second["run"], "cat src/a") == "two\n"
    later = dev(laptop, "extend", "seat", "--follow-up")["follow_up"]
    assert dev(laptop, "status", "seat")[0]["follow_up"] == later
    assert dev(laptop, "down", "seat")["follow_up"] == later
    listed = dev(laptop, "backups", "seat")
    assert [each["number"] for each in listed["versions"]] == [3, 2, 1]
    dev(laptop, "restore", "--name", "seat", "--at", "v2", "--to", str(tmp_path / "back"))
    assert (tmp_path / "back" / "src" / "a").read_text() == "one\n"
    assert laptop.quick("dev", "down", "seat").code == 3
    assert "seat" not in {each["name"] for each in laptop.quick("dev", "status", "--json").json["data"]}


def test_a_dev_node_is_not_retried(laptop: Laptop) -> None:
    made = dev(laptop, "up", "other", "--context", "beta", "--no-wait", "--time", "5m")
    elsewhere = laptop.quick("dev", "down", "other", "--now", "--yes", "--context", "alpha")
    assert elsewhere.code == 5 and "is on beta, not on alpha" in elsewhere.err, elsewhere
    assert dev(laptop, "down", "other", "--now", "--yes")["run"] == made["run"]
    refused = laptop.quick("retry", made["run"])
    assert refused.code == 2 and "yurt dev up other" in refused.err
