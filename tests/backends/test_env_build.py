"""The builder of environments with real pip and uv: uploaded files, hashes, and an index that lacks packages."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wheels import make_repository, tiny
from yurt.backends.shell.envs import builder
from yurt.envs import uv_program
from yurt.lab.index import Index


@pytest.fixture(params=["pip", "uv"])
def uv(request: pytest.FixtureRequest) -> str:
    """The program that installs; empty for pip."""
    return uv_program.find() if request.param == "uv" else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an environment."""
    made = tmp_path / "base" / "envs" / "abc"
    made.mkdir(parents=True)
    return made


def line(wheel: Path) -> str:
    name, version = wheel.name.split("-")[:2]
    return f"{name}=={version} \\\n    --hash=sha256:{digest(wheel)}\n"


def digest(wheel: Path) -> str:
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def build(folder: Path, uv: str, shelf: Path | None, *, index: str = "") -> str:
    """Run the builder with a folder of packages in place of an index, in pip's settings; return its output."""
    script = folder / "build.sh"
    script.write_text(builder())
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    settings = folder / "pip.conf"
    settings.write_text(f"[global]\nno-index = true\nfind-links =\n    {shelf}\n" if shelf else "")
    if index:
        settings.write_text(f"[global]\nindex-url = {index}\n")
    argv = ["setsid", "-w", "bash", str(script), str(folder), "1234abcd", "lock", sys.executable, uv, "", ""]
    subprocess.run(argv, env=plain | {"PIP_CONFIG_FILE": str(settings)}, check=False, timeout=120)
    return (folder / "build.log").read_text()


def installed(folder: Path) -> set[str]:
    assert (folder / "ready").exists(), (folder / "build.log").read_text()
    found = (folder / "env-1234abcd").glob("lib/python*/site-packages/*.dist-info")
    return {each.name.removesuffix(".dist-info") for each in found if not each.name.startswith(("pip", "setuptools"))}


def addressed(folder: Path) -> str:
    """Return lines for a package in a repository, which has no hash, and for one at an address, which has one."""
    url = make_repository(folder / "thing", "thing", "4.5").replace("///", "//localhost/")  # pip 23 needs a host
    head = ["git", "-C", str(folder / "thing"), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    direct = tiny(folder, "direct")
    return f"thing @ git+{url}@{commit}\ndirect @ {direct.as_uri()} \\\n    --hash=sha256:{digest(direct)}\n"


@pytest.mark.slow("pip")
def test_what_the_index_lacks_is_listed_and_then_taken_from_uploads(folder: Path, uv: str, tmp_path: Path) -> None:
    shelf, aside = tmp_path / "shelf", tmp_path / "aside"
    there, behind, unknown = tiny(shelf, "there"), tiny(aside, "behind", "2.0"), tiny(aside, "unknown")
    tiny(shelf, "behind", "1.0")
    house = tiny(tmp_path / "house", "fast", "1.0+site")
    lines = [line(there), addressed(tmp_path / "addressed"), *map(line, (behind, unknown, house))]
    (folder / "lock").write_text("".join([f"# wheelhouse fast {house}\n", *lines]))
    (folder / "wheels").write_text(f"{house}\n")
    (folder / "wait.7").touch()
    log = build(folder, uv, shelf)
    assert set((folder / "lacking").read_text().split()) == {"behind", "unknown"}, log
    assert not (folder / "failed").exists() and (folder / "wait.7").exists(), "its job stays held"
    for wheel in (behind, unknown):
        target = folder.parent.parent / "wheels" / digest(wheel) / wheel.name
        target.parent.mkdir(parents=True)
        wheel.rename(target)
    uploads = [f"{each.parent.name}/{each.name}\n" for each in folder.parent.parent.glob("wheels/*/*")]
    if uv:  # pip is slower
        (folder / "wheels").write_text("".join([*uploads[:1], f"{house}\n"]))
        build(folder, uv, shelf)
        assert (folder / "failed").exists() and not (folder / "lacking").exists(), "it is not repeated for ever"
    (folder / "wheels").write_text("".join([*uploads, f"{house}\n"]))
    build(folder, uv, shelf)
    assert installed(folder) == {"there-1.0", "behind-2.0", "unknown-1.0", "fast-1.0+site", "thing-4.5", "direct-1.0"}
    assert not (folder / "failed").exists() and not (folder / "wait.7").exists()


def test_any_index_may_have_the_locked_file(folder: Path, tmp_path: Path) -> None:
    """uv would only look at the first index that has the package; pip looks at all."""
    locked = tiny(tmp_path, "one", "2.0")
    Index(tmp_path / "usual").add([locked])
    Index(tmp_path / "extra").add([tiny(tmp_path, "one", "1.0")])
    names = (("index-url", "usual"), ("extra-index-url", "extra"))
    options = [f"--{option} {(tmp_path / name / 'simple').as_uri()}\n" for option, name in names]
    (folder / "lock").write_text("".join([*options, line(locked)]))
    build(folder, uv_program.find(), None)
    assert installed(folder) == {"one-2.0"}


def test_an_index_that_only_the_users_machine_reaches(folder: Path, tmp_path: Path) -> None:
    wheels = [tiny(tmp_path / "shelf", name) for name in ("one", "two")]
    (folder / "lock").write_text("".join(map(line, wheels)))
    log = build(folder, uv_program.find(), None, index="http://127.0.0.1:9/simple")
    assert (folder / "lacking").read_text().split() == ["one", "two"] and not (folder / "failed").exists(), log
