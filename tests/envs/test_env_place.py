"""Where environments are kept on the clusters of the lab: in scratch, in the home folder, on the disks of nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.environments import ENVS
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.wheels import download
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("envs")]

HOME, SHIM = "/home/alice/.yurt", "/lustre/scratch/alice/shim"

SCRIPT = """\
import json, os, pathlib, subprocess, sys
import six

compiled, source = pathlib.Path(six.__cached__).read_bytes(), os.stat(six.__file__)
print(json.dumps({
    "node": os.uname().nodename,
    "prefix": sys.prefix,
    "pip": subprocess.run(["pip", "--version"], capture_output=True, text=True).stdout.split()[3],
    "mode": oct(os.stat(sys.prefix + "/..").st_mode)[-3:],
    "compiled": int.from_bytes(compiled[8:12], "little") == int(source.st_mtime),
}))
"""


@pytest.fixture
def ssh(no_environments: Ssh) -> Iterator[Ssh]:
    yield no_environments
    no_environments("alpha", f"rm -rf {SHIM}")


@pytest.fixture(autouse=True)
def index(lab: Lab, ssh: Ssh) -> None:
    lab.index.add(download("six==1.17.0", "3.11"))


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 rest=0 lease=12"
    (laptop.project / "requirements.txt").write_text("six==1.17.0\n")
    (laptop.project / "train.py").write_text(SCRIPT)
    return laptop


def said(laptop: Laptop, run: str) -> list[dict[str, Any]]:
    """Wait for a run that completes; return what its tasks printed."""
    ended = laptop.ended(run)
    assert ended["state"] == "completed", (ended, laptop("logs", run))
    return [json.loads(line) for line in laptop("logs", run).out.splitlines() if line.startswith("{")]


@pytest.mark.slow
def test_on_the_disks_of_nodes(laptop: Laptop, ssh: Ssh) -> None:
    first = laptop.run("alpha", "--wait", "train.py")["run"]
    folder = first["env"]["folder"]
    shared = ssh("alpha", f"ls -d {folder}/env-*").split()
    assert [each["prefix"] for each in said(laptop, first["id"])] == shared
    shim = f'#!/bin/sh\\nuname -n >> {SHIM}/unpacked\\nexec /usr/bin/tar "$@"\\n'
    ssh("alpha", f"mkdir -p {SHIM} && printf '{shim}' > {SHIM}/tar && chmod +x {SHIM}/tar")
    words = ["--env-place", "tmpdir", "--var", f"PATH={SHIM}:/usr/local/bin:/usr/bin:/bin"]
    several = laptop.run("alpha", *words, "--nodelist", "n1,n2", "--nodes", "2", "--ntasks-per-node", "2", "train.py")
    assert several["status"]["building"] and several["run"]["env"]["place"] == "tmpdir", several
    tasks = said(laptop, several["run"]["id"])
    assert sorted(each["node"] for each in tasks) == ["n1", "n1", "n2", "n2"]
    (prefix,) = {each["prefix"] for each in tasks}
    assert prefix.startswith("/scratch/job-"), "on the disk of the node"
    assert all(each["pip"].startswith(prefix) and each["mode"] == "700" and each["compiled"] for each in tasks), tasks
    assert sorted(ssh("alpha", f"cat {SHIM}/unpacked").split()) == ["n1", "n2"], "once per node"
    assert ssh("alpha", f"ls -d {folder}/env-*").split() == [*shared, f"{shared[0]}.tar"], "packed, not built again"
    (view,) = laptop("env", "list", "alpha", "--json").json["data"]
    assert view["packed"] > 1 << 20 and (view["condition"], view["place"]) == ("ready", "scratch")

    free = 'df -P -k "$SLURM_TMPDIR" | tail -n 1 | tr -s " " | cut -d " " -f 4'
    filled = f'fallocate -l $(($({free}) - 2000))K "$SLURM_TMPDIR/fill"'
    (laptop.project / "yurt.yaml").write_text(f"after_module_load_cmd: {json.dumps(filled)}\n")
    run = laptop.run("alpha", "--env-place", "tmpdir", "--nodelist", "n1", "train.py")
    assert not run["status"]["building"]
    assert [each["prefix"] for each in said(laptop, run["run"]["id"])] == shared
    warning = f"yurt: using the environment {folder[-16:]} from the shared disk: the disk of n1 is full"
    assert laptop("logs", "--err", run["run"]["id"]).err.splitlines() == [warning]

    (laptop.project / "yurt.yaml").unlink()
    (laptop.project / "wait.py").write_text("import sys, time\nprint(sys.prefix, flush=True)\ntime.sleep(600)\n")
    waiting = laptop.run("alpha", "--env-place", "tmpdir", "--nodelist", "n2", "wait.py")["run"]["id"]
    eventually(lambda: "/scratch/job-" in laptop("logs", waiting).out)
    prefix = laptop("logs", waiting).out.strip()
    assert laptop("shell", waiting, "python", "-c", "import sys; print(sys.prefix)").out.split() == [prefix]
    assert laptop("cancel", waiting).code == 0 and laptop.ended(waiting)["state"] == "cancelled"
    eventually(lambda: ssh.ask("alpha", f"srun -w n2 ls {prefix}").code != 0)


@pytest.mark.slow
def test_in_the_home_folder(laptop: Laptop, ssh: Ssh) -> None:
    (laptop.project / "yurt.yaml").write_text("env_place: home\n")
    run = laptop.run("beta", "train.py")["run"]
    assert run["env"]["folder"] == f"{HOME}/envs/{run['env']['address']}"
    (task,) = said(laptop, run["id"])
    assert task["prefix"].startswith(run["env"]["folder"])
    there = ssh("beta", f"echo $(stat -c %a {HOME}; ls {HOME}; ls {ENVS} 2> /dev/null | wc -l)").splitlines()[-1]
    assert there == "700 envs incoming wheels 0"
    again = laptop.run("beta", "train.py")
    assert not again["status"]["building"] and said(laptop, again["run"]["id"]) == [task]
    (view,) = laptop("env", "list", "beta", "--json").json["data"]
    assert (view["place"], view["condition"], view["folder"]) == ("home", "ready", run["env"]["folder"])
    ssh("beta", f"chmod -R u+w {task['prefix']}; rm {task['prefix']}/lib/python3*/site-packages/six.py")
    (view,) = laptop("env", "list", "beta", "--json").json["data"]
    assert view["condition"] == "purged"
    shown = laptop("--context", "beta", "env", "show", view["address"][:5], "--json").json["data"]
    assert shown["env"]["place"] == "home" and shown["packages"][0]["name"] == "six"
    assert laptop("--context", "beta", "env", "remove", view["address"][:5], "--yes").code == 0
    assert laptop("env", "list", "beta", "--json").json["data"] == []
    assert ssh("beta", f"echo $(ls {HOME}/envs/*)").split()[-1] == "lock", "for a later build"
    ssh("beta", f"chmod go+w {HOME}")
    refused = laptop("--context", "beta", "run", "train.py")
    assert refused.code == 5 and f"other users can write to {HOME}" in refused.err, refused
