"""An environment with PyTorch for the driver of a site. PyTorch's own index is not reachable in tests."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from yurt.contexts import connect
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock
from yurt.envs.of_runs import prepare, python, wheelhouse
from yurt.errors import UnreachableError
from yurt.model.context import Context
from yurt.model.env import EnvState, EnvTools, SitePython
from yurt.model.facts import Facts, NodeFacts

USUAL = Lock("nvidia-cuda-runtime==13.2.86\ntorch==2.15.0\n")
OLDER = Lock("# torch-backend: cu126\nnvidia-cuda-runtime-cu12==12.6.77\ntorch==2.9.0+cu126\n")
CONTEXT = Context(name="big", type="slurm", slurm_url="me@big", storage_dir="/s")
FACTS = Facts(probed_at=0, user="me", host="big")
TORCH = Declared(kind="requirements", files={"requirements.txt": b"torch\n"})


class Site:
    """A site with a driver. `reachable`: whether this machine reaches PyTorch's index."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver, self.reachable, self.resolved = "12.4", True, list[str]()
        monkeypatch.setattr(python, "tools_of", lambda *_, **__: self.tools())
        monkeypatch.setattr(wheelhouse, "resolve", self.resolve)
        look = SimpleNamespace(look=lambda folders: [EnvState(folder=folders[0], condition="none")])
        monkeypatch.setattr(connect, "backend", lambda _context: SimpleNamespace(envs=look))

    def tools(self) -> EnvTools:
        usual = SitePython("3.11.2", "/usr/bin/python3", venv=True)
        return EnvTools(
            asked_at=time.time(), machine="x86_64", libc="glibc 2.36", pythons=[usual], cuda=self.driver, index=True
        )

    def resolve(self, *_: object, torch: str = "", **__: object) -> Lock:
        self.resolved.append(torch)
        if torch and not self.reachable:
            raise UnreachableError("no route", code="connection-lost")
        return OLDER if torch else USUAL

    def prepare(self, declared: Declared = TORCH, node: str = "", **keys: str) -> prepare.Prepared:
        """`node`: the CUDA version of a compute node, if one was probed."""
        probed = NodeFacts(node="n1", probed_at=0, internet=False, ssh=False, cuda=node) if node else None
        facts = msgspec.structs.replace(FACTS, node=probed)
        return prepare.prepare(declared, msgspec.structs.replace(CONTEXT, **keys), facts, "study")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Site:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    return Site(monkeypatch)


def test_pytorch_for_an_old_driver(site: Site) -> None:
    found = site.prepare()
    assert (found.env.torch, found.notes, found.build.lock) == ("cu126", [], OLDER.text.encode())
    assert found.needs_uv and found.build.uv == "/s/yurt/tools/uv", "only uv knows PyTorch's index"
    assert site.prepare().env == found.env and site.resolved == ["", "cu126"], "chosen once"
    usual = site.prepare(env_cuda="none").env
    assert not usual.torch and usual.address != found.env.address
    assert site.prepare(env_cuda="13.0").env == usual
    assert site.prepare(env_cuda="cpu").env.address not in (usual.address, found.env.address)
    assert site.resolved[-1] == "cpu"
    assert site.prepare(node="13.1").env == usual, "the driver of a compute node counts"
    site.driver = ""
    assert (
        site.prepare().env == usual
        and site.prepare(node="12.2").env == found.env
        and site.prepare(env_cuda="12.2").env == found.env
    )


def test_the_usual_pytorch_with_a_warning(site: Site) -> None:
    site.reachable = False
    found = site.prepare()
    assert found.build.lock == USUAL.text.encode() and not found.env.torch and not found.build.uv
    assert found.notes[0].startswith("PyTorch of requirements.txt is built for CUDA 13.2, but the driver of big")
    locked = Declared(kind="uv", files={"uv.lock": b"", "pyproject.toml": b""})
    assert "uv.lock" in site.prepare(locked).notes[0], "its versions are fixed"
