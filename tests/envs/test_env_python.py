"""Which Python an environment gets: of the site, of its modules, or one that uv downloads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from yurt.backends.shell.env_answers import read_tools
from yurt.backends.shell.envs import builder
from yurt.envs import uv_binary
from yurt.envs.declared import Declared
from yurt.envs.of_runs import python
from yurt.errors import RefusedError
from yurt.model.context import Context
from yurt.model.env import EnvTools, SitePython
from yurt.model.facts import Facts

AVAILABLE = """\
/opt/modulefiles:
python/3.8.10
python/3.11.5(default)
python/3.11.12
python/
python/3.12-anaconda
Python/3.11.3-GCCcore-12.3.0
python3/3.10
lang/python/3.9(stable:testing)
biopython/1.83
python-dateutil/2.8
ipython/8.1
wxPython/4.2
yurt: command 'module' not found on this node
"""
FACTS = Facts(probed_at=0, user="alice", host="login")
CONTEXT = Context(name="big", type="slurm")
OLD = SitePython("3.6.8", "/usr/bin/python3.6", venv=True)
TOOLS = EnvTools(asked_at=time.time(), machine="x86_64", libc="glibc 2.28", pythons=[OLD])


def declared(specifier: str) -> Declared:
    return Declared(kind="requirements", files={"requirements.txt": b"six\n"}, python=specifier)


def site(monkeypatch: pytest.MonkeyPatch, tools: EnvTools, **modules: str) -> list[str]:
    """A site with these tools; a module has this Python, and others do not load. Return the modules that are tried."""
    tried: list[str] = []

    def tools_of(context: Context, *_: object, **__: object) -> EnvTools:
        if not context.modules_to_load:
            return tools
        tried.append(context.modules_to_load[-1])
        if tried[-1] not in modules:
            raise RefusedError("it does not load", code="impossible")
        loaded = SitePython(modules[tried[-1]], "/opt/bin/python3", venv=True)
        return msgspec.structs.replace(tools, pythons=[loaded, *tools.pythons])

    monkeypatch.setattr(python, "tools_of", tools_of)
    return tried


def test_modules_that_have_a_python() -> None:
    tools = read_tools("mark", f"mark platform\nx86_64\nmark available\n{AVAILABLE}", now=0)
    expected = ["python/3.8.10", "python/3.11.5", "python/3.11.12", "python/3.12-anaconda"]
    expected += ["Python/3.11.3-GCCcore-12.3.0", "python3/3.10", "lang/python/3.9"]
    assert tools.python_modules == expected
    assert python.modules_for(tools, declared(">=3.10"), CONTEXT) == [
        *("python/3.12-anaconda", "python/3.11.12", "python/3.11.5", "Python/3.11.3-GCCcore-12.3.0", "python3/3.10"),
    ]
    only = msgspec.structs.replace(CONTEXT, env_python="3.10")
    assert python.modules_for(tools, declared("==3.10.*"), only) == ["python3/3.10"]
    assert python.modules_for(tools, declared(">=3.10.4,<3.11"), CONTEXT) == ["python3/3.10"], "loaded to find out"


def test_the_newest_module_that_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = msgspec.structs.replace(TOOLS, python_modules=["python/3.10", "python/3.11.5", "python/3.12.1"])
    tried = site(monkeypatch, tools, **{"python/3.11.5": "3.11.5"})
    found = python.choose(declared(">=3.9"), CONTEXT, FACTS)
    assert (found.python.version, found.modules) == ("3.11.5", ["python/3.11.5"])
    assert tried == ["python/3.12.1", "python/3.11.5"]
    assert python.choose(declared(""), CONTEXT, FACTS).modules == [], "the usual one is suitable"


def test_a_python_of_uv_only_with_internet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv_binary, "pythons", lambda: ["3.15.2", "3.12.9", "3.9.25"])
    site(monkeypatch, TOOLS)
    with pytest.raises(RefusedError, match=r"big has no Python >=3\.12 .*it has 3\.6\.8"):
        python.choose(declared(">=3.12"), CONTEXT, FACTS)
    site(monkeypatch, msgspec.structs.replace(TOOLS, index=True))
    found = python.choose(declared(">=3.12,<3.15"), CONTEXT, FACTS).python
    assert found == SitePython("3.12.9", "managed:3.12", venv=False)
    site(monkeypatch, msgspec.structs.replace(TOOLS, index=True, machine="ppc64le"))
    with pytest.raises(RefusedError):
        python.choose(declared(">=3.12"), CONTEXT, FACTS)


def test_uv_says_which_pythons_it_can_download() -> None:
    found = uv_binary.pythons()
    assert any(each.startswith("3.12.") for each in found) and all(each.replace(".", "").isdigit() for each in found)


UV = f"""\
#!/bin/sh
echo "$UV_PYTHON_DOWNLOADS ${{UV_PYTHON_INSTALL_DIR-}} $*" >> "$0.log"
for last; do :; done
[ "$1" != venv ] || {sys.executable} -m venv --without-pip "$last"
"""


def test_the_commands_of_a_build_with_a_python_of_uv(tmp_path: Path) -> None:
    """uv downloads Pythons from where no test gets; these are its arguments."""
    folder, uv, script = tmp_path / "envs" / "0123456789abcdef", tmp_path / "uv", tmp_path / "build.sh"
    folder.mkdir(parents=True)
    uv.write_text(UV)
    uv.chmod(0o700)
    script.write_text(builder())
    (folder / "lock").write_text("# torch-backend: cu126\ntorch==2.9.0+cu126\n")
    words = [str(folder), "nonce", "lock", "managed:3.12", str(uv), "", ""]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    done = subprocess.run(["bash", str(script), *words], env=environment, check=False, timeout=60)
    venv, install = (tmp_path / "uv.log").read_text().splitlines()
    assert done.returncode == 0 and (folder / "ready").read_text().startswith("env-nonce ")
    options = "venv --no-project --no-config --relocatable --python-preference only-managed --python 3.12 env-nonce"
    assert venv == f"automatic {tmp_path}/tools/python {options}"
    assert install.endswith("--torch-backend cu126 --require-hashes -r env-nonce.cache/hashed")
