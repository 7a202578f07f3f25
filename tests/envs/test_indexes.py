"""The indexes of pip's configuration reach uv, unless the user configured uv; passwords stay out of arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.envs.conftest import make_wheel, write
from tests.envs.package_index import PASSWORD, serving
from yurt.envs import indexes, uv_program
from yurt.envs.declared import named
from yurt.envs.resolve import resolve
from yurt.envs.target import Target
from yurt.errors import UnreachableError
from yurt.lab.index import Index

INDEXES = (("index-url", "usual"), ("extra-index-url", "extra"))
TARGET = Target("3.11.2", "x86_64", "glibc 2.36")


@pytest.fixture
def pip_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "pip.conf"
    monkeypatch.setattr(indexes, "config_files", lambda: [file])
    for name in ("SSL_CERT_FILE", "ALL_PROXY", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    return file


def test_settings_of_a_file(pip_conf: Path) -> None:
    pip_conf.write_text(
        "[global]\nindex-url = https://one.example/simple\nextra-index-url =\n  https://two.example/simple\n"
        "  https://three.example/simple\ntrusted-host = one.example\ncert = /ca.pem\n"
        "[install]\nindex-url = https://four.example/simple\nfind-links = /srv/wheels\n"
    )
    assert indexes.for_uv().variables == {
        "UV_DEFAULT_INDEX": "https://four.example/simple",
        "UV_INDEX": "https://two.example/simple https://three.example/simple",
        "UV_FIND_LINKS": "/srv/wheels",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/ca.pem",
        "UV_INSECURE_HOST": "one.example",
    }


def test_variables_of_pip_are_stronger_than_its_file(pip_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_conf.write_text("[global]\nindex-url = https://one.example/simple\n")
    monkeypatch.setenv("PIP_INDEX_URL", "https://two.example/simple")
    assert indexes.for_uv().variables == {"UV_DEFAULT_INDEX": "https://two.example/simple"}


@pytest.mark.parametrize("named", [True, False])
def test_pip_reads_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    config = Path(os.environ["XDG_CONFIG_HOME"])
    write(tmp_path / "home", {".pip/pip.conf": "[global]\nindex-url = https://one.example\ntimeout = 7\n"})
    write(config, {"pip/pip.conf": "[global]\nindex-url = https://two.example\n"})
    write(tmp_path, {"named.conf": "[global]\ntrusted-host = three.example\n"})
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "named.conf") if named else "")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://four.example")
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = indexes.of_pip()
    assert (f"global.index-url='{found.index}'" in listed) == bool(found.index)
    assert (found.trusted == ["three.example"]) == ("three.example" in listed) == named
    assert found.extra == ["https://four.example"]


def test_no_settings() -> None:
    assert not indexes.for_uv().variables.keys() & {*indexes.OWN}


@pytest.mark.parametrize("where", ["variable", "file", "project"])
def test_settings_of_uv_are_stronger(
    pip_conf: Path, project: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    pip_conf.write_text("[global]\nindex-url = https://one.example/simple\n")
    settings = '[[index]]\nurl = "https://two.example/simple"\n'
    write(project, {"requirements.txt": "six\n"})
    if where == "variable":
        monkeypatch.setenv("UV_INDEX", "https://two.example/simple")
    elif where == "file":
        write(Path(os.environ["XDG_CONFIG_HOME"]), {"uv/uv.toml": settings})
    else:
        write(project, {"uv.toml": settings})
    assert indexes.for_uv(named(project, "requirements.txt")).variables == {}


def test_an_index_with_a_password(
    pip_conf: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper around uv records the arguments, which other users could read."""
    shelf, wrapper, said = tmp_path / "shelf", tmp_path / "uv", tmp_path / "said"
    shelf.mkdir()
    make_wheel(shelf, "tiny")
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {said}\nexec {uv_program.find()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(uv_program, "find", lambda: str(wrapper))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    write(project, {"requirements.txt": "tiny\n"})
    declared = named(project, "requirements.txt")
    with serving(shelf) as index:
        pip_conf.write_text(f"[global]\nindex-url = {index.address}\n")
        lock = resolve(declared, TARGET)
        pip_conf.write_text(f"[global]\nindex-url = {index.address.replace(PASSWORD, 'wrong')}\n")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "other cache"))
        with pytest.raises(UnreachableError, match="rejects the login") as caught:
            resolve(declared, TARGET)
    assert [each.name for each in lock.packages] == ["tiny"]
    assert PASSWORD not in said.read_text() + lock.text
    assert "wrong" not in caught.value.message


def test_a_requirements_file_gets_the_best_version_of_all_its_indexes(project: Path, tmp_path: Path) -> None:
    """As with pip; uv itself would only look at the first index that has the package."""
    Index(tmp_path / "usual").add([make_wheel(tmp_path, "one", "2.0")])
    Index(tmp_path / "extra").add([make_wheel(tmp_path, "one", "1.0"), make_wheel(tmp_path, "two", "1.0")])
    options = [f"--{name} {(tmp_path / folder / 'simple').as_uri()}\n" for name, folder in INDEXES]
    declared = named(write(project, {"requirements.txt": "".join([*options, "one==2.0\ntwo\n"])}), "requirements.txt")
    lock = resolve(declared, TARGET)
    assert [(each.name, each.version) for each in lock.packages] == [("one", "2.0"), ("two", "1.0")]
    assert lock.text.startswith("".join(options))
