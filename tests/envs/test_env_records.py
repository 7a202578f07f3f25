"""The packages of an environment are recorded with every run, and every later build of its address has the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.wheels import tiny
from yurt.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("envs")]


@pytest.fixture
def ssh(no_environments: Ssh) -> Ssh:
    return no_environments


@pytest.mark.slow
def test_a_rebuild_has_the_recorded_packages(
    laptop: Laptop, second_laptop: Laptop, lab: Lab, ssh: Ssh, tmp_path: Path
) -> None:
    wheels = [tiny(tmp_path / "all", "recorded", each, code=f"x = {each}\n") for each in ("1.0", "2.0")]
    lab.index.add(wheels)
    (tmp_path / "first").mkdir()
    shutil.copy(wheels[0], tmp_path / "first")
    for each in (laptop, second_laptop):
        (each.project / "requirements.txt").write_text("recorded\n")
        (each.project / "train.py").write_text("import recorded\nprint(recorded.x)\n")
    laptop.environment["PIP_FIND_LINKS"] = str(tmp_path / "first")
    second_laptop.environment["PIP_FIND_LINKS"] = str(tmp_path / "all")

    first = laptop.run("alpha", "--wait", "train.py")["run"]
    shown = laptop("show", first["id"])
    assert f"{first['env']['address']} from requirements.txt (1 package, Python 3." in shown.out
    assert laptop("show", first["id"], "--json").json["data"]["packages"] == {"recorded": "1.0"}

    other = second_laptop.run("alpha", "--wait", "train.py")
    assert not other["status"]["building"], "the environment of the other laptop, though there is a newer version now"
    assert second_laptop("show", other["run"]["id"], "--json").json["data"]["packages"] == {"recorded": "1.0"}

    assert laptop("--context", "alpha", "env", "remove", first["env"]["address"], "--yes").code == 0
    (laptop.home / "data" / "envs" / f"{first['env']['address']}.lock").unlink()
    laptop.environment["PIP_FIND_LINKS"] = str(tmp_path / "all")
    again = laptop("--json", "retry", first["id"]).json["data"][0]
    assert again["status"]["building"] and laptop.ended(again["run"]["id"])["state"] == "completed"
    assert laptop("logs", again["run"]["id"]).out.split() == ["1.0"]
    new = laptop.run("alpha", "train.py")
    assert new["run"]["env"]["lock"] == first["env"]["lock"], "the lock is beside the environment"

    shutil.rmtree(second_laptop.home / "data" / "envs")
    assert second_laptop("import", "alpha").code == 0
    rows = second_laptop("diff", "--all", "--cached", "--json", first["id"], again["run"]["id"]).json["data"]["rows"]
    found = [(row["key"], row["left"], row["right"]) for row in rows if row["part"] == "packages"]
    assert found == [("recorded", "1.0", "1.0")]
