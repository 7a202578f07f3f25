"""What a project declares: the kinds and their order, includes, local packages, and broken files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.conftest import write
from yurt.envs.declared import declarations, named
from yurt.envs.resolve import installable
from yurt.errors import UserError

PYPROJECT = """\
[project]
name = "demo"
requires-python = ">=3.9"
dependencies = ["six"]
[project.optional-dependencies]
fast = ["numpy"]
[dependency-groups]
dev = ["iniconfig"]
"""
LOCK = """\
version = 1
requires-python = ">=3.10"
[[package]]
name = "demo"
source = { editable = "." }
[[package]]
name = "lib"
source = { directory = "lib" }
"""


def refusal(folder: Path, file: str, **options: object) -> UserError:
    with pytest.raises(UserError) as caught:
        named(folder, file, **options)  # type: ignore[arg-type]
    assert caught.value.hint
    return caught.value


def test_nothing_is_declared(project: Path) -> None:
    assert declarations(project) == []
    write(project, {"pyproject.toml": "[tool.ruff]\n", "requirements.txt": "# none\n", "environment.yml": "a: 1\n"})
    assert declarations(project) == []


def test_the_most_precise_is_first(project: Path) -> None:
    write(project, {"pyproject.toml": PYPROJECT, "uv.lock": LOCK, "requirements.txt": "six\n"})
    write(project, {"environment.yml": "dependencies: [python=3.11]\n"})
    found = declarations(project)
    assert [each.kind for each in found] == ["uv", "pyproject", "requirements", "conda"]
    assert [each.title for each in found] == ["uv.lock", "pyproject.toml", "requirements.txt", "environment.yml"]
    assert [each.python for each in found] == [">=3.10", ">=3.9", ">=3.9", ""]
    assert list(found[0].files) == ["uv.lock", "pyproject.toml"]
    assert found[0].left_out == [".", "lib"]


@pytest.mark.parametrize(
    ("text", "python"), [("3.11\n", "==3.11.*"), ("3.12.4\n3.11\n", "==3.12.*"), ("pypy@3.10", ""), ("", "")]
)
def test_the_python_of_a_pin(project: Path, text: str, python: str) -> None:
    write(project, {"requirements.txt": "six\n", ".python-version": text})
    assert declarations(project)[0].python == python


def test_requires_python_is_stronger_than_the_pin(project: Path) -> None:
    write(project, {"pyproject.toml": PYPROJECT, ".python-version": "3.12\n"})
    assert declarations(project)[0].python == ">=3.9"


def test_included_files(project: Path) -> None:
    files = {
        "requirements.txt": "-r reqs/base.txt\n--constraint=reqs/pins.txt\nsix\n",
        "reqs/base.txt": "-rmore.txt\nidna\n",
        "reqs/more.txt": "-r base.txt\npackaging\n",
        "reqs/pins.txt": "six<2\n",
    }
    write(project, files)
    (found,) = declarations(project)
    assert found.files == {name: text.encode() for name, text in files.items()}


def test_local_packages_are_left_out(project: Path) -> None:
    lines = [
        *("-e .", "./lib", "lib/x-1.0-py3-none-any.whl", "file:///srv/x", "y @ file:///srv/y", "--find-links wheels"),
        *("six==1.0 ; python_version<'3'", "z @ https://host.example/z.zip", "-e git+https://host.example/a/b#egg=b"),
    ]
    write(project, {"requirements.txt": "\n".join(lines)})
    (found,) = declarations(project)
    assert found.left_out == lines[:6]
    kept = installable(found)["requirements.txt"].decode().splitlines()
    assert kept == [*lines[6:8], "b @ git+https://host.example/a/b"]


def test_the_project_itself_brings_its_dependencies(project: Path) -> None:
    write(project, {"requirements.txt": "-e .[fast]\n", "pyproject.toml": PYPROJECT})
    found = named(project, "requirements.txt")
    assert (list(found.files), found.extras) == (["requirements.txt", "pyproject.toml"], ["fast"])
    assert found.left_out == ["-e .[fast]"]


def test_a_project_that_can_be_installed_is_left_out(project: Path) -> None:
    write(project, {"pyproject.toml": PYPROJECT + '[build-system]\nrequires = ["hatchling"]\n'})
    assert declarations(project)[0].left_out == ["."]


def test_a_conda_environment_with_lines_for_pip(project: Path) -> None:
    environment = "dependencies:\n  - python=3.11\n  - pip:\n    - -r more.txt\n    - -e .\n    - six\n"
    write(project, {"environment.yml": environment, "more.txt": "idna\n"})
    (found,) = declarations(project)
    assert list(found.files) == ["environment.yml", "more.txt"]
    assert found.left_out == ["-e ."]
    assert b"-e ." not in installable(found)["environment.yml"]
    assert b"six" in installable(found)["environment.yml"]


def test_a_broken_file_is_an_error_only_when_it_is_chosen(project: Path) -> None:
    write(project, {"pyproject.toml": "[project\n", "requirements.txt": "six\n", "environment.yml": "a: [\n"})
    first, second, third = declarations(project)
    second.check()
    for broken, words in ((first, "'pyproject.toml' is invalid: .*line 1"), (third, "'environment.yml' .*line 2")):
        with pytest.raises(UserError, match=words):
            broken.check()


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("requirements.txt", "six\nnumpy=1\n", "'requirements.txt' is invalid: line 2: 'numpy=1' is not a requirement"),
        ("requirements.txt", "six\n--fast\n", "line 2: unknown option --fast"),
        ("requirements.txt", "six \\\n  >=1\n-r\n", "line 3: -r needs a value"),
        ("requirements.txt", "-r absent.txt\n", "line 1 includes 'absent.txt', which does not exist"),
        ("requirements.txt", "-r ../x.txt\n", "line 1 includes '../x.txt', which is outside the project"),
        ("requirements.txt", "# nothing\n", "'requirements.txt' declares no packages"),
        ("pyproject.toml", "[project]\nx = \n", "'pyproject.toml' is invalid: Invalid value (at line 2"),
        ("pyproject.toml", "[project]\ndependencies = 'six'\n", "'dependencies' is not a list of strings"),
        ("pyproject.toml", "[project]\ndependencies = ['a=1']\n", "'a=1' is not a requirement"),
        ("pyproject.toml", "[tool.poetry.dependencies]\nsix = '*'\n", "declares its packages for poetry"),
        ("pyproject.toml", PYPROJECT.replace(">=3.9", "new"), "requires-python: 'new' is not a version specifier"),
        ("requirements.txt", "-e .\n", "'requirements.txt' declares no packages"),
        ("uv.lock", "version = \n", "'uv.lock' is invalid: Invalid value (at line 1"),
        ("uv.lock", "version = 1\n", "'uv.lock' has no pyproject.toml beside it"),
        ("environment.yml", "dependencies: {\n", "'environment.yml' is invalid: line 2"),
        ("notes.md", "six\n", "'notes.md' does not declare packages"),
    ],
)
def test_a_named_file_that_cannot_be_used(project: Path, file: str, text: str, words: str) -> None:
    write(project, {file: text})
    assert words in refusal(project, file).message


def test_an_empty_file_with_a_python_that_the_user_chose(project: Path) -> None:
    """The environment then consists of that Python."""
    write(project, {"requirements.txt": "# nothing\n"})
    assert named(project, "requirements.txt", python="3.11").python == "==3.11.*"
    assert declarations(project) == []


def test_a_named_file_that_is_absent_or_outside(project: Path) -> None:
    write(project, {"requirements.txt": "six\n"})
    write(project.parent, {"outside.txt": "six\n"})
    assert "`requirements.txt`" in refusal(project, "reqs.txt").hint
    assert "outside the project" in refusal(project, "../outside.txt").message
    (project / "link.txt").symlink_to("../outside.txt")
    assert "outside the project" in refusal(project, "link.txt").message


@pytest.mark.parametrize(("encoding", "line"), [("utf-16", 1), ("latin-1", 2)])
def test_a_file_that_is_not_in_utf_8(project: Path, encoding: str, line: int) -> None:
    (project / "requirements.txt").write_bytes("six\n# größer\n".encode(encoding))
    error = refusal(project, "requirements.txt")
    assert f"line {line} is not in UTF-8" in error.message
    assert "iconv" in error.hint


def test_extras_and_groups(project: Path) -> None:
    write(project, {"pyproject.toml": PYPROJECT, "requirements.txt": "six\n"})
    found = named(project, "pyproject.toml", python="3.11", extras=["Fast"], groups=["dev"])
    assert (found.python, found.extras, found.groups) == ("==3.11.*", ["Fast"], ["dev"])
    assert "has no extra 'slow'" in refusal(project, "pyproject.toml", extras=["slow"]).message
    assert "`dev`" in refusal(project, "pyproject.toml", groups=["test"]).hint
    assert "has no extras or groups" in refusal(project, "requirements.txt", extras=["fast"]).message
    assert "'three' is not a Python version" in refusal(project, "requirements.txt", python="three").message


def test_a_file_from_windows(project: Path) -> None:
    (project / "requirements.txt").write_bytes(b"\xef\xbb\xbfsix==1.0\r\nidna\r\n")
    assert installable(named(project, "requirements.txt")) == {"requirements.txt": b"six==1.0\nidna\n"}
