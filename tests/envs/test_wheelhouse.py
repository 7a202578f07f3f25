"""Packages from the wheelhouse of a site: its versions are preferred, with the requirements of its own builds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.envs.conftest import make_wheel, write
from yurt.backends import scripts
from yurt.envs import wheelhouse
from yurt.envs.declared import Declared, named
from yurt.envs.lock import Lock
from yurt.envs.resolve import resolve
from yurt.envs.target import Target
from yurt.model.env import SiteWheel, SiteWheels

TARGET = Target("3.11.2", "x86_64", "glibc 2.36")
COMPILED = "cp311-cp311-linux_x86_64"


def listed(names: list[str], *folders: str) -> SiteWheels:
    """What the script of the site says."""
    text = scripts.text("environment.sh", "job") + scripts.text("env_wheels.sh")
    words = ["mark", sys.executable, "cp311", "\n".join(names), "\n".join(folders), ""]
    done = subprocess.run(["bash", "-c", text, "sh", *words], capture_output=True, text=True, check=True)
    return msgspec.json.decode(done.stdout.strip().removeprefix("mark "), type=SiteWheels)


def declare(project: Path, text: str) -> Declared:
    return named(write(project, {"requirements.txt": text}), "requirements.txt")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "house" / "avx2"
    folder.mkdir(parents=True)
    return folder


def test_only_wheels_of_the_packages_and_what_they_require(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(house, "one", "1.0+site", tag=COMPILED, needs="Two_Parts>=1")
    make_wheel(house, "one", "1.0+site", tag="cp39-cp39-linux_x86_64")
    make_wheel(house, "two_parts", needs="never; extra == 'more'")
    make_wheel(house, "never")
    (house / "one-2.0-py3-none-any.whl").write_text("broken")
    generic = house.parent / "generic"
    generic.mkdir()
    make_wheel(generic, "two_parts")
    make_wheel(generic, "two_parts", "2.0")
    monkeypatch.setenv("HOUSE", str(house.parent))
    found = listed(["one"], "$HOUSE/avx*", "$HOUSE/generic")
    assert [each.path.removeprefix(str(house.parent)) for each in found.wheels] == [
        f"/avx2/one-1.0+site-{COMPILED}.whl",
        "/avx2/two_parts-1.0-py3-none-any.whl",
        "/generic/two_parts-2.0-py3-none-any.whl",
    ]
    assert found.asked == ["one", "two-parts"] and found.missing == []
    assert found.wheels[0].metadata.endswith("Version: 1.0+site\nRequires-Dist: Two_Parts>=1\n")
    assert listed(["one"], "$HOUSE/none").missing == ["$HOUSE/none"]


def offered(house: Path, *names: str) -> list[wheelhouse.Offer]:
    return wheelhouse.offers(listed([*names], str(house)).wheels, TARGET)


def versions(declared: Declared, house: Path) -> dict[str, str]:
    return {each.name: each.version for each in resolve(declared, TARGET, offered=offered(house, "one")).packages}


def test_a_version_of_the_wheelhouse_is_preferred(project: Path, shelf: Path, house: Path) -> None:
    for version in ("1.0", "2.0", "3.0"):
        make_wheel(shelf, "one", version)
        make_wheel(shelf, "two", version)
    for version in ("1.0+site", "2.0+site"):
        make_wheel(house, "one", version, tag=COMPILED, needs="two<3")
    make_wheel(house, "one", "9.0", tag="cp311-cp311-linux_aarch64")
    assert versions(declare(project, "one\n"), house) == {"one": "2.0+site", "two": "2.0"}
    assert versions(declare(project, "one<2\n"), house) == {"one": "1.0+site", "two": "2.0"}
    assert versions(declare(project, "one==1.0\n"), house) == {"one": "1.0+site", "two": "2.0"}
    assert versions(declare(project, "one==3.0\n"), house) == {"one": "3.0"}
    assert versions(declare(project, "one==2.0\ntwo==3.0\n"), house) == {"one": "2.0", "two": "3.0"}


def test_a_package_that_only_the_wheelhouse_has(project: Path, shelf: Path, house: Path) -> None:
    make_wheel(house, "one", tag=COMPILED)
    assert versions(declare(project, "one\n"), house) == {"one": "1.0"}


def test_a_uv_lock_keeps_its_versions(project: Path, shelf: Path, house: Path) -> None:
    for version in ("1.0", "2.0"):
        make_wheel(shelf, "one", version, needs="two")
        make_wheel(shelf, "two", version)
    make_wheel(house, "one", "1.0+site", tag=COMPILED)
    make_wheel(house, "one", "2.0+site", tag=COMPILED)
    text = '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["one<2", "two<2"]\n'
    uv = [sys.executable, "-m", "uv", "lock", "-q", "--no-index", "--find-links", str(shelf)]
    subprocess.run(uv, cwd=write(project, {"pyproject.toml": text}), check=True, capture_output=True)
    declared = named(project, "uv.lock")
    assert wheelhouse.names(declared) >= {"one", "two"}
    plain, lock = resolve(declared, TARGET), resolve(declared, TARGET, offered=offered(house, "one"))
    assert {each.name: each.version for each in lock.packages} == {"one": "1.0+site", "two": "1.0"}
    assert lock.hashes()["two"] == plain.hashes()["two"]


def test_declared_hashes_are_kept(project: Path) -> None:
    text = f"one==1.0 --hash=sha256:{'0' * 64}\ntwo\n"
    assert wheelhouse.names(declare(project, text)) == {"two"}


def test_requirements_that_the_lock_does_not_satisfy() -> None:
    lock = Lock("one==1.0\ntwo==2.0\n")
    wheel = SiteWheel("/w/one-1.0-py3-none-any.whl", "Name: one\nVersion: 1.0\nRequires-Dist: two<{}\n")
    for most, fits in (("2", False), ("3", True)):
        metadata = wheel.metadata.format(most)
        chosen = wheelhouse.taken(lock, wheelhouse.offers([SiteWheel(wheel.path, metadata)], TARGET))
        assert (wheelhouse.unfit(chosen, lock, TARGET) == []) == fits


def test_the_lock_says_what_is_from_the_wheelhouse() -> None:
    lock = Lock(f"--extra-index-url https://a.example\none==1.0 \\\n    --hash=sha256:{'0' * 64}\ntwo==2.0\n")
    made = lock.from_wheelhouse({"one": ("/w/a b/one-1.0-py3-none-any.whl", "1" * 64)})
    assert [(each.name, each.version, each.wheelhouse) for each in made.packages] == [
        ("one", "1.0", "/w/a b/one-1.0-py3-none-any.whl"),
        ("two", "2.0", ""),
    ]
    assert made.hashes()["one"] == {"1" * 64}
    assert made.part(lambda name: name == "two").text == "--extra-index-url https://a.example\ntwo==2.0\n"
