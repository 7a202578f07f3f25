"""alpha's package index: pip and uv install from it, and beta cannot reach it."""

from __future__ import annotations

import hashlib
import secrets
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.calls import call
from tests.lab.conftest import Ssh
from tests.wheels import download, tiny
from yurt.errors import NotFoundError, UserError
from yurt.lab import Lab
from yurt.lab.index import Index


def page(index: Index, package: str) -> str:
    return (index.folder / "simple" / package / "index.html").read_text()


def test_the_tree(tmp_path: Path) -> None:
    index = Index(tmp_path / "index")
    index.create()
    assert index.packages() == []
    wheel = tiny(tmp_path, "My.Tiny_tool", requires_python=">=3.9")
    (added,) = index.add([wheel])
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert (added.package, added.file, added.sha256) == ("my-tiny-tool", wheel.name, digest)
    assert f'<a href="{wheel.name}#sha256={digest}" data-requires-python="&gt;=3.9">' in page(index, "my-tiny-tool")
    assert '<a href="my-tiny-tool/">' in (index.folder / "simple" / "index.html").read_text()
    assert (index.folder / "simple" / "my-tiny-tool" / wheel.name).stat().st_mode & 0o777 == 0o644
    index.create()
    assert index.packages() == ["my-tiny-tool"]


def test_other_versions_and_source_distributions(tmp_path: Path) -> None:
    index = Index(tmp_path / "index")
    index.add([tiny(tmp_path, version="1.0")])
    source = tmp_path / "tiny-0.9.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        archive.add(__file__, "tiny-0.9/setup.py")
    index.add([source, tiny(tmp_path, version="2.0")])
    assert [f"tiny-{version}" in page(index, "tiny") for version in ("0.9.tar.gz", "1.0", "2.0")] == [True] * 3


def test_a_file_is_replaced(tmp_path: Path) -> None:
    index = Index(tmp_path / "index")
    index.add([tiny(tmp_path)])
    (added,) = index.add([tiny(tmp_path, code="x = 2\n")])
    assert page(index, "tiny").count("sha256=") == 1 and added.sha256 in page(index, "tiny")


def test_concurrent_additions_are_all_listed(tmp_path: Path) -> None:
    index = Index(tmp_path / "index")
    wheels = [tiny(tmp_path, version=f"1.{number}") for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda wheel: index.add([wheel]), wheels))
    assert page(index, "tiny").count("sha256=") == 20


@pytest.mark.parametrize("name", ["notes.txt", "tiny.whl", "tiny-1.0-py3-none-any.whl", "tiny-1.0.tar.gz"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    index = Index(tmp_path / "index")
    (tmp_path / name).write_text("neither a zip nor a tar file\n")
    with pytest.raises(UserError, match="is not a wheel"):
        index.add([tiny(tmp_path, "other"), tmp_path / name])
    with pytest.raises(NotFoundError, match="not found"):
        index.add([tmp_path / "absent-1.0-py3-none-any.whl"])
    assert index.packages() == []


@pytest.fixture
def room(ssh: Ssh) -> str:
    """A command that enters a new folder of alice on the cluster, on a shared disk."""
    return 'd=$(mktemp -d -p /lustre/scratch/alice) && trap "rm -rf $d" EXIT && cd $d && '


@pytest.mark.lab
@pytest.mark.slow
def test_pip_and_uv_install_from_it(lab: Lab, ssh: Ssh, room: str, tmp_path: Path) -> None:
    python = ssh("alpha", "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")
    name = f"tiny{secrets.token_hex(4)}"  # the lab may have files of an earlier session
    show = f"bin/python -c 'import {name}; print({name}.x)'"
    lab.index.add([tiny(tmp_path, name), *download("numpy", python), *download("uv", python)])
    use = f"python3 -m venv v && v/bin/pip install -q {name} numpy && v/bin/python -c 'import numpy' && v/{show}"
    assert ssh("alpha", f"{room}{use}", timeout=300) == "1"
    lab.index.add([tiny(tmp_path, name, code="x = 2\n")])
    use = f"python3 -m venv v && v/bin/pip install -q {name} && v/{show}"
    assert ssh("alpha", f"{room}{use}", timeout=300) == "2", "an outdated file was installed"
    lab.index.add([tiny(tmp_path, name, "1.1", code="x = 3\n")])
    use = f"python3 -m venv v && v/bin/pip install -q uv && v/bin/uv venv -q w && v/bin/uv pip install -q -p w {name}"
    assert ssh("alpha", f"{room}srun -w n1 sh -c '{use}' && srun -w n2 w/{show}", timeout=300) == "3"


@pytest.mark.lab
@pytest.mark.slow
def test_beta_has_none(lab: Lab, ssh: Ssh, room: str, tmp_path: Path) -> None:
    lab.index.add([tiny(tmp_path)])
    url = lab.cluster("alpha").spec.index_url
    for node in ("", "srun -w n1 "):
        install = f"{node}python3 -m venv v && {node}v/bin/pip --retries 0 install tiny"
        answer = ssh.ask("beta", f"{room}{install}")
        assert answer.code != 0 and "No matching distribution found for tiny" in answer.err
        answer = ssh.ask(
            "beta", f"{room}{node}v/bin/pip --retries 0 install -i {url} tiny || {node}ip route get 10.77.1.2"
        )
        assert answer.code != 0 and "Network is unreachable" in answer.err


@pytest.mark.lab
def test_a_changed_page_is_noticed_within_the_second(lab: Lab, ssh: Ssh, tmp_path: Path) -> None:
    name = f"changing{secrets.token_hex(4)}"
    lab.index.add([tiny(tmp_path, name)])
    url = f"{lab.cluster('alpha').spec.index_url}{name}/"
    ask = (
        "import sys, urllib.request as u, urllib.error as e\n"
        "try: a = u.urlopen(u.Request(sys.argv[1], headers={'If-None-Match': sys.argv[2]})); print(a.headers['ETag'])\n"
        "except e.HTTPError as error: print(error.code)"
    )
    tag = ssh("alpha", f"python3 -c \"{ask}\" {url} ''")
    assert ssh("alpha", f"python3 -c \"{ask}\" {url} '{tag}'") == "304"
    lab.index.add([tiny(tmp_path, name, "2.0")])
    assert ssh("alpha", f"python3 -c \"{ask}\" {url} '{tag}'") not in ("304", tag)


@pytest.mark.lab
def test_the_command(lab: Lab, tmp_path: Path) -> None:
    wheel = tiny(tmp_path, "by-hand")
    done = call("lab", "index", str(wheel))
    assert (done.code, done.out) == (0, f"added {wheel.name}\n")
    found = call("lab", "index", str(wheel), "--json").json["data"]
    assert found["url"] == lab.cluster("alpha").spec.index_url and found["added"][0]["package"] == "by-hand"
    refused = call("lab", "index", __file__)
    assert refused.code == 2 and "is not a wheel" in refused.err
    status = call("lab", "status").out
    assert f"package index of alpha: {found['url']} (" in status and "package-index" in status
    assert "not running" not in status
