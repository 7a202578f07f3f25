"""Packages that a user installs on a dev node: in its workspace, not in the environment of all runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.dev.dev_calls import dev, inside, up
from tests.environments import ENVS
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.wheels import download, tiny
from yurt.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("envs")]

IMPORT = "python -c 'import six, yurt_added; print(six.__version__, yurt_added.x)'"

TRAIN = """\
import importlib.util, subprocess, sys
assert not importlib.util.find_spec("yurt_added")
sys.exit(subprocess.call(["pip", "install", "yurt-added"]))
"""


def test_they_move_with_the_workspace(laptop: Laptop, lab: Lab, no_environments: Ssh, tmp_path: Path) -> None:
    added = tiny(tmp_path, "yurt-added", "2.5", requires=["yurt-needed"])
    lab.index.add([*download("six==1.17.0", "3.11"), added, tiny(tmp_path, "yurt-needed")])
    (laptop.project / "requirements.txt").write_text("six==1.17.0\n")
    (laptop.project / "train.py").write_text(TRAIN)
    name = f"desk-{os.urandom(3).hex()}"  # a lab that stays up may have a workspace of an earlier test
    try:
        first = up(laptop, name, "--node", "n1")
        inside(laptop, name, "pip install yurt-added")
        assert inside(laptop, name, IMPORT) == "1.17.0 1\n"
        (view,) = laptop("env", "list", "alpha", "--json").json["data"]
        assert (view["condition"], view["packages"]) == ("ready", 1)
        find = f"find {ENVS}/*/env-* -name '*.dist-info' -printf '%f '; find {ENVS}/*/env-* -perm /222 ! -type l"
        record = no_environments("alpha", f"echo @; {find}").partition("@")[2]  # after the banner of the login node
        assert "six-1.17.0.dist-info" in record and "yurt_added" not in record and "/" not in record, record
        done = laptop("dev", "down", name)
        assert done.out.splitlines()[1:] == [
            "packages added on the dev node, which runs do not have: yurt-added 2.5, with 1 package that they require",
            "declare them in your project with `printf '%s\\n' yurt-added==2.5 >> requirements.txt`",
            "they stay in the workspace; end a later dev node with "
            f"`yurt dev down {name} --drop-packages` to remove them",
        ], done
        second = up(laptop, name, "--node", "n2")
        assert (first["version"], second["version"]) == (1, 2)
        assert inside(laptop, name, IMPORT) == "1.17.0 1\n"
        down = dev(laptop, "down", name, "--drop-packages")
        assert down["dropped"] and [each["name"] for each in down["added"]] == ["yurt-added", "yurt-needed"]
    finally:
        laptop.quick("dev", "down", name, "--now", "--yes")
    no_environments(
        "alpha", f"cd {ENVS}/*/env-*/lib/python*/site-packages && chmod u+w . && mkdir tqdm-4.67.1.dist-info"
    )
    shown = laptop("--context", "alpha", "env", "show").out
    assert "changed: tqdm-4.67.1 was added; the next run builds it again" in shown, shown
    edit = "rm -r tqdm-4.67.1.dist-info; chmod u+w six.py; echo '# edited' >> six.py"
    no_environments("alpha", f"cd {ENVS}/*/env-*/lib/python*/site-packages && {edit}")
    shown = laptop("--context", "alpha", "env", "show").out
    assert "changed: six.py was edited; the next run builds it again" in shown, shown
    again = laptop.run("alpha", "train.py")
    run = again["run"]["id"]
    note = "its environment was not as it had been built (six.py was edited), so it is built again"
    assert f"run {run}: {note}" in again["warnings"]
    assert laptop.ended(run)["state"] == "failed"
    assert laptop("why", run, "--json").json["data"]["cause"]["name"] == "environment-read-only"
