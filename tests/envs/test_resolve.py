"""Real uv resolves for targets of several platforms; errors are one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.conftest import TARGETS, make_wheel, write
from yurt.envs import uv_program
from yurt.envs.declared import declarations, named
from yurt.envs.lock import Lock, Package, PackageChange, changes
from yurt.envs.resolve import resolve
from yurt.envs.target import Target
from yurt.errors import DownloadError, UserError, YurtError
from yurt.model.progress import Event

TARGET = Target("3.11.2", "x86_64", "glibc 2.36")
PYPROJECT = """\
[project]
name = "demo"
version = "1"
requires-python = ">=3.8"
dependencies = ["one", "lib", "old; python_version < '3.10'", "arm; platform_machine == 'aarch64'"]
[project.optional-dependencies]
fast = ["two"]
[dependency-groups]
test = ["three"]
dev = ["four"]
[tool.uv.sources]
lib = { path = "lib" }
[[tool.uv.index]]
url = "https://more.example/simple"
explicit = true
name = "more"
"""


@pytest.fixture
def packages(shelf: Path) -> Path:
    for name in ("one", "two", "three", "four", "old", "arm"):
        make_wheel(shelf, name)
    return shelf


def names(lock: Lock) -> list[str]:
    return [each.name for each in lock.packages]


def failure(project: Path, text: str, target: Target = TARGET) -> YurtError:
    with pytest.raises(YurtError) as caught:
        resolve(named(write(project, {"requirements.txt": text}), "requirements.txt"), target)
    assert "\n" not in caught.value.message and len(caught.value.message) < 500
    assert caught.value.hint
    return caught.value


def test_markers_are_those_of_the_target(project: Path, packages: Path) -> None:
    write(project, {"pyproject.toml": PYPROJECT})
    events: list[Event] = []
    (declared,) = declarations(project)
    found = [names(resolve(declared, target, watch=events.append)) for target in TARGETS]
    assert found == [["old", "one"], ["one"], ["arm", "one"], ["one"]]
    assert events[0].text == "resolving the packages of pyproject.toml"
    assert declared.left_out == ["lib"]


def test_a_dependency_by_its_path_is_left_out(project: Path, packages: Path) -> None:
    write(
        project,
        {"pyproject.toml": '[project]\nname = "x"\nversion = "1"\ndependencies = ["one", "y @ file:///srv/y"]\n'},
    )
    (declared,) = declarations(project)
    assert (names(resolve(declared, TARGET)), declared.left_out) == (["one"], ["y @ file:///srv/y"])


def test_extras_and_groups(project: Path, packages: Path) -> None:
    write(project, {"pyproject.toml": PYPROJECT})
    lock = resolve(named(project, "pyproject.toml", extras=["fast"], groups=["test"]), TARGET)
    assert names(lock) == ["one", "three", "two"]
    assert lock.text.startswith("--extra-index-url https://more.example/simple\n")


def test_a_uv_lock_is_evaluated_without_an_index(
    project: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"pyproject.toml": PYPROJECT, "lib/pyproject.toml": '[project]\nname = "lib"\nversion = "1"\n'})
    options = {"UV_FIND_LINKS": str(packages), "UV_NO_INDEX": "1"}
    done = uv_program.run(["lock"], folder=project, variables=options)
    assert done.code == 0, done.err
    for file in packages.iterdir():
        file.unlink()
    declared = declarations(project)[0]
    assert (declared.kind, declared.left_out) == ("uv", ["lib"])
    assert [names(resolve(declared, target)) for target in TARGETS] == [
        ["old", "one"],
        ["one"],
        ["arm", "one"],
        ["one"],
    ]
    chosen = resolve(named(project, "uv.lock", extras=["fast"], groups=["test"]), TARGET)
    assert names(chosen) == ["one", "three", "two"]


def test_the_project_itself_and_its_extras(project: Path, packages: Path) -> None:
    write(project, {"pyproject.toml": PYPROJECT, "requirements.txt": "-e .[fast]\nthree\n"})
    assert names(resolve(named(project, "requirements.txt"), TARGET)) == ["one", "three", "two"]


def test_includes_constraints_and_prereleases(project: Path, shelf: Path) -> None:
    for version in ("1.0", "1.5", "2.0", "3.0b1"):
        make_wheel(shelf, "one", version, needs="two")
        make_wheel(shelf, "two", version)
    files = {
        "requirements.txt": "-r reqs/base.txt\n",
        "reqs/base.txt": "one\n-c pins.txt\n",
        "reqs/pins.txt": "one<2\n",
    }
    write(project, files)
    lock = resolve(named(project, "requirements.txt"), TARGET)
    assert lock.packages == [Package("one", "1.5"), Package("two", "2.0")]
    write(project, {"requirements.txt": "--pre\n--prefer-binary\none\n"})
    newer = resolve(named(project, "requirements.txt"), TARGET)
    assert changes(lock, newer) == [PackageChange("one", "1.5", "3.0b1"), PackageChange("two", "2.0", "3.0b1")]
    assert lock.digest != newer.digest == resolve(named(project, "requirements.txt"), TARGET).digest


def test_packages_of_the_public_index(project: Path) -> None:
    write(project, {"requirements.txt": "numpy==1.26.4\nsix\n"})
    declared = named(project, "requirements.txt")
    for target in TARGETS[:3]:
        assert names(resolve(declared, target)) == ["numpy", "six"]


def test_no_such_version(project: Path, packages: Path) -> None:
    error = failure(project, "one==9\n")
    assert isinstance(error, UserError)
    assert "the packages of requirements.txt cannot be resolved for Python 3.11 on x86_64: " in error.message
    assert "no package index has one==9" in error.message
    assert "no package index has nine" in failure(project, "nine\n").message
    assert "contradict" in failure(project, "one==1.0\none!=1.0\n").message


def test_another_python(project: Path, shelf: Path) -> None:
    make_wheel(shelf, "young", python=">=3.12")
    make_wheel(shelf, "other", tag="cp38-cp38-manylinux2014_x86_64")
    assert "young==1.0 requires Python >=3.12, but the site has Python 3.11" in failure(project, "young==1.0\n").message
    assert "other==1.0 has no wheel for Python 3.11 on x86_64" in failure(project, "other==1.0\n").message
    write(project, {".python-version": "3.12"})
    assert "requires Python ==3.12.*, but the site has Python 3.11.2" in failure(project, "young\n").message


def test_no_internet(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    error = failure(project, "one\n")
    assert isinstance(error, DownloadError)
    assert "there is no internet" in error.message


def test_conda_is_resolved_on_the_site(project: Path) -> None:
    write(project, {"environment.yml": "dependencies: [python]\n"})
    with pytest.raises(UserError, match="resolved by conda on the site"):
        resolve(declarations(project)[0], TARGET)


def test_a_broken_declaration(project: Path) -> None:
    write(project, {"requirements.txt": "a=1\n"})
    with pytest.raises(UserError, match="line 1"):
        resolve(declarations(project)[0], TARGET)


def test_uv_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import uv

    def absent() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(uv, "find_uv_bin", absent)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="uv is not installed"):
        uv_program.find()


def test_a_project_that_needs_nothing_on_this_site(project: Path) -> None:
    (project / "requirements.txt").write_text("six==1.17.0; sys_platform == 'win32'\n")
    lock = resolve(named(project, "requirements.txt"), TARGETS[1])
    assert lock.packages == [] and lock.text, "an empty file would be a damaged one"
