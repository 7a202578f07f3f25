"""Sites that lack what an environment is built with: a Python on PATH, the module venv, uv, a suitable version."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.environments import BASE
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.wheels import download
from yurt.lab import Lab
from yurt.lab.cluster import inside

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("envs")]

HIDE = """\
[ -e /opt/python/saved ] || {
  cp -a /opt/python/3.11/bin /opt/python/saved
  rm /opt/python/3.11/bin/*
  cp -L /usr/bin/python3 /opt/python/3.11/bin/python3
  ln -s python3 /opt/python/3.11/bin/python
  for each in /usr/bin/python3 /usr/bin/python3.[0-9]*; do mv "$each" "$each-hidden"; done
  /opt/python/3.11/bin/python3 -c 'import ensurepip; print(ensurepip.__path__[0])' > /opt/python/ensurepip
  mv "$(cat /opt/python/ensurepip)" /opt/python/hidden
}"""
SHOW = """\
for each in /usr/bin/python3*-hidden; do mv "$each" "${each%-hidden}"; done
mv /opt/python/hidden "$(cat /opt/python/ensurepip)"
rm -r /opt/python/3.11/bin && mv /opt/python/saved /opt/python/3.11/bin"""


@pytest.fixture
def ssh(no_environments: Ssh) -> Ssh:
    return no_environments


def as_root(lab: Lab, cluster: str, script: str) -> None:
    """Run a script on all hosts of a cluster that users reach."""
    found = lab.cluster(cluster)
    for host in found.spec.hosts:
        if host.role != "ctl":
            subprocess.run(inside(found.pid(host.name), ["sh", "-ec", script]), check=True, timeout=60)


@pytest.fixture
def no_python(lab: Lab) -> Iterator[None]:
    """beta without a Python on PATH; its module python/3.11 has one, without the module ensurepip."""
    as_root(lab, "beta", HIDE)
    yield
    as_root(lab, "beta", SHOW)


def tools(ssh: Ssh) -> list[str]:
    """Return mode and inode of uv, and the names of all tools."""
    return ssh("beta", f"cd {BASE}/tools && echo $(stat -c '%a %i' uv; ls -A)").splitlines()[-1].split()


@pytest.mark.slow
def test_a_python_of_a_module_and_uv_from_this_machine(laptop: Laptop, ssh: Ssh, no_python: None) -> None:
    (laptop.project / "requirements.txt").write_text("six==1.17.0\n")
    (laptop.project / "train.py").write_text("import six, sys\nprint(six.__version__, sys.base_exec_prefix)\n")
    first = laptop("--context", "beta", "run", "--wait", "train.py")
    assert first.code == 0 and "there, once, with module python/3.11: 1 package" in first.out, first
    assert laptop("logs", "-").out.split()[0] == "1.17.0"
    given = tools(ssh)
    assert given[0] == "700" and given[2:] == ["uv"]
    (laptop.project / "requirements.txt").write_text("six==1.16.0\n")
    download("six==1.16.0", "3.11")
    built = laptop("--context", "beta", "env", "build", "--json").json["data"]
    assert (built["condition"], built["modules"]) == ("ready", ["python/3.11"])
    assert tools(ssh) == given, "it is not uploaded again"
    ssh("beta", f"chmod o+w {BASE}/tools; chmod 711 {BASE}")
    refused = laptop("--context", "beta", "env", "build")
    ssh("beta", f"chmod 700 {BASE} {BASE}/tools")
    assert refused.code and f"other users can write to {BASE}/tools" in refused.err, refused


@pytest.fixture
def quick_failure(ssh: Ssh) -> Iterator[None]:
    """uv on alpha fails at once; without a name service it would try for a minute."""
    ssh("alpha", "cp .profile kept && echo 'export UV_PYTHON_INSTALL_MIRROR=http://127.0.0.1:9' >> .profile")
    yield
    ssh("alpha", "mv kept .profile")


@pytest.mark.slow
def test_a_python_that_cannot_be_downloaded(laptop: Laptop, lab: Lab, quick_failure: None) -> None:
    lab.index.add(download("six==1.17.0", "3.11"))
    (laptop.project / "requirements.txt").write_text("six==1.17.0\n")
    built = laptop("--context", "alpha", "env", "build", "--env-python", "3.12")
    assert built.code == 5 and "has no Python 3.12, and uv cannot download one" in built.err, built
    refused = laptop("--context", "beta", "run", "--env-python", "3.12", "train.py")
    assert refused.code and "beta has no Python 3.12" in refused.err, refused
