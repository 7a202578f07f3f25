"""Nothing that a project brings runs on this machine, gets its variables or reads its settings."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.envs.conftest import make_sdist, make_wheel, write
from tests.envs.package_index import PASSWORD, USER, serving
from yurt.envs import indexes, repository, uv_config
from yurt.envs.declared import named
from yurt.envs.download import Downloader
from yurt.envs.resolve import resolve
from yurt.envs.sdist import build_requirements
from yurt.envs.target import Target
from yurt.envs.wheels import fetch
from yurt.errors import UnconfirmedError, UnreachableError, UserError

TARGET = Target("3.11.2", "x86_64", "glibc 2.36")
OLD = "Metadata-Version: 1.2\nName: evil\nVersion: 1.0\n"
"""Metadata that says nothing about requirements, so only the code of the package knows them."""

BACKEND = """\
import os
open({ran!r}, "a").write("ran")
def prepare_metadata_for_build_wheel(folder, settings=None):
    os.makedirs(folder + "/evil-1.0.dist-info")
    with open(folder + "/evil-1.0.dist-info/METADATA", "w") as file:
        file.write("Metadata-Version: 2.1\\nName: evil\\nVersion: 1.0\\nRequires-Dist: one\\n")
    return "evil-1.0.dist-info"
def build_wheel(*_):
    raise SystemExit("not built")
"""
IN_TREE = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def ran(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the build code of the package `evil` on the shelf creates."""
    file = tmp_path / "ran"
    make_wheel(shelf, "one")
    files = {"PKG-INFO": OLD, "backend__py": BACKEND.format(ran=str(file)), "pyproject__toml": IN_TREE}
    make_sdist(shelf, "evil", **files)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    return file


@pytest.mark.parametrize(
    "text", ["evil\n", "evil\n--no-binary evil\n", "evil\n--no-binary :all:\n", "evil @ {shelf}/evil-1.0.tar.gz\n"]
)
def test_the_code_of_a_package_does_not_run(project: Path, shelf: Path, ran: Path, text: str) -> None:
    with serving(shelf) as index:
        text = text.format(shelf=index.address.replace("simple", "files"))
        declared = named(write(project, {"requirements.txt": text}), "requirements.txt")
        with pytest.raises(UnconfirmedError, match=r"'evil' of requirements\.txt has source code only") as caught:
            resolve(declared, TARGET)
        assert not ran.exists()
        assert (caught.value.kind, caught.value.names) == ("build", ["evil"])
        assert "`yurt trust --build evil`" in caught.value.hint
        lock = resolve(declared, TARGET, builds={"evil"}) if "all" not in text else None
    if lock is not None:
        assert [each.name for each in lock.packages] == ["evil", "one"]
        assert ran.exists()


def test_the_user_agrees_to_one_package_only(project: Path, shelf: Path, ran: Path) -> None:
    with pytest.raises(UnconfirmedError):
        resolve(named(write(project, {"requirements.txt": "evil\n"}), "requirements.txt"), TARGET, builds={"other"})
    assert not ran.exists()


def test_static_metadata_of_a_source_archive_is_used(project: Path, shelf: Path, ran: Path) -> None:
    about = "Metadata-Version: 2.2\nName: evil\nVersion: 2.0\nRequires-Dist: one\n"
    make_sdist(
        shelf, "evil", "2.0", **{"PKG-INFO": about, "setup__py": f"open({str(ran)!r}, 'a')", "pyproject__toml": IN_TREE}
    )
    lock = resolve(named(write(project, {"requirements.txt": "evil\n"}), "requirements.txt"), TARGET)
    assert [(each.name, each.version) for each in lock.packages] == [("evil", "2.0"), ("one", "1.0")]
    assert not ran.exists()


@pytest.mark.parametrize("file", ["uv.toml", "pyproject.toml"])
def test_settings_of_the_project_do_not_reach_uv(
    project: Path, ran: Path, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f'no-build-isolation = true\nno-binary = true\ncache-dir = "{tmp_path / "theirs"}"\n'
    files = {"pyproject.toml": '[project]\nname = "x"\nversion = "1"\ndependencies = ["one"]\n'}
    files[file] = files.get(file, "") + ("[tool.uv]\n" if file == "pyproject.toml" else "") + table
    monkeypatch.delenv("UV_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lock = resolve(named(write(project, files), "pyproject.toml"), TARGET)
    assert [each.name for each in lock.packages] == ["one"]
    assert not (tmp_path / "theirs").exists()


def test_a_project_with_dynamic_packages(project: Path, ran: Path, shelf: Path) -> None:
    dynamic = '[project]\nname = "x"\nversion = "1"\ndependencies = ["one"]\ndynamic = ["optional-dependencies"]\n'
    write(project, {"pyproject.toml": dynamic + IN_TREE, "backend.py": BACKEND.format(ran=str(ran))})
    with pytest.raises(UserError, match="leaves its packages to the build code of the project"):
        resolve(named(project, "pyproject.toml"), TARGET)
    assert not ran.exists()


def test_a_package_gets_no_variable_of_the_user(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv expands variables in the addresses that the metadata of a package names."""
    monkeypatch.setenv("CLOUD_SECRET_KEY", "s3cret")
    monkeypatch.setenv("UV_INDEX_OWN_PASSWORD", "s3cret")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    shelf = tmp_path / "theirs"
    shelf.mkdir()
    with serving(shelf) as index:
        base = index.address.replace("/simple", "")
        place = base + "/${{{}}}/x-1.0-py3-none-any.whl"
        for number, name in enumerate(["CLOUD_SECRET_KEY", "UV_INDEX_OWN_PASSWORD"]):
            make_wheel(shelf, f"leak{number}", needs="x @ " + place.format(name))
            text = f"leak{number} @ {base}/files/leak{number}-1.0-py3-none-any.whl\n"
            with pytest.raises(Exception, match="cannot be resolved"):
                resolve(named(write(project, {"requirements.txt": text}), "requirements.txt"), TARGET)
        assert index.requests
        assert not any("s3cret" in each for each in index.requests)


def test_no_address_with_a_variable_reaches_the_site(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    shelf = tmp_path / "theirs"
    shelf.mkdir()
    make_wheel(shelf, "one")
    with serving(shelf) as index:
        files = index.address.replace("/simple", "/files")
        make_wheel(shelf, "leak", needs=f"one @ {files}/${{CLOUD_SECRET_KEY}}/one-1.0-py3-none-any.whl")
        text = f"leak @ {files}/leak-1.0-py3-none-any.whl\n"
        with pytest.raises(UserError, match=r"address with the variable \$\{CLOUD_SECRET_KEY\}"):
            resolve(named(write(project, {"requirements.txt": text}), "requirements.txt"), TARGET)


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of the user, which no project may take."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    return make_wheel(tmp_path / "mine", "private")


@pytest.mark.parametrize("place", ["extra", "group", "override", "constraint"])
def test_a_package_of_this_machine_is_not_read(project: Path, shelf: Path, private: Path, place: str) -> None:
    make_wheel(shelf, "one")
    local = f'["private @ file://{private}"]'
    tables = {
        "extra": f"[project.optional-dependencies]\ntrain = {local}\n",
        "group": f"[dependency-groups]\ntrain = {local}\n",
        "override": f"[tool.uv]\noverride-dependencies = {local}\n",
        "constraint": f"[tool.uv]\nconstraint-dependencies = {local}\n",
    }
    own = '[project]\nname = "x"\nversion = "1"\ndependencies = ["one"]\n'
    write(project, {"pyproject.toml": own + tables[place]})
    parts = ["train"] if place in ("extra", "group") else []
    lock = resolve(named(project, "pyproject.toml", parts=parts), TARGET)
    assert [each.name for each in lock.packages] == ["one"] and "private" not in lock.text


def test_members_of_a_workspace_are_not_looked_for(project: Path, shelf: Path, tmp_path: Path) -> None:
    make_wheel(shelf, "one")
    write(tmp_path / "mine", {"near/pyproject.toml": "x = $"})
    text = '[project]\nname = "x"\nversion = "1"\ndependencies = ["one", "near"]\n[tool.uv.workspace]\n'
    text += f'members = ["{tmp_path}/mine/*"]\n[tool.uv.sources]\nnear = {{ workspace = true }}\n'
    lock = resolve(named(write(project, {"pyproject.toml": text}), "pyproject.toml"), TARGET)
    assert [each.name for each in lock.packages] == ["one"]


def test_a_package_of_this_machine_that_another_one_requires(project: Path, tmp_path: Path, private: Path) -> None:
    """It would be uploaded."""
    shelf = tmp_path / "theirs"
    shelf.mkdir()
    with serving(shelf) as index:
        files = index.address.replace("/simple", "/files")
        make_wheel(shelf, "leak", needs=f"private @ file://{private}")
        text = f"leak @ {files}/leak-1.0-py3-none-any.whl\n"
        with pytest.raises(UserError, match=r"private-1\.0-py3-none-any\.whl, which is on this machine"):
            resolve(named(write(project, {"requirements.txt": text}), "requirements.txt"), TARGET)


@pytest.mark.parametrize("line", ["-r /etc/passwd", "one\\n-f /srv", "../mine", "private @ file:///srv/private.whl"])
def test_build_requirements_are_packages(shelf: Path, line: str) -> None:
    make_sdist(shelf, "evil", pyproject__toml=f'[build-system]\nrequires = ["{line}"]\n')
    with pytest.raises(ValueError, match="which is not a package"):
        build_requirements(shelf / "evil-1.0.tar.gz")


LINE = "--extra-index-url http://index.invalid/${CLOUD_SECRET_KEY}/simple"
TOML = '[project]\nname = "x"\nversion = "1"\ndependencies = ["one"]\n'


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("requirements.txt", f"one\n{LINE}\n"),
        ("requirements.txt", "one @ http://index.invalid/${CLOUD_SECRET_KEY}/one-1.0-py3-none-any.whl\n"),
        ("pyproject.toml", TOML + '[[tool.uv.index]]\nurl = "http://index.invalid/\\u0024{CLOUD_SECRET_KEY}"\n'),
        ("pyproject.toml", TOML.replace('"one"', '"one @ http://index.invalid/${CLOUD_SECRET_KEY}/one-1.tar.gz"')),
        ("environment.yml", "channels:\n- http://index.invalid/$CLOUD_SECRET_KEY\ndependencies:\n- one\n"),
        ("environment.yml", f'dependencies:\n- one\n- pip:\n  - "{LINE}"\n'),
    ],
)
def test_no_variable_is_expanded(project: Path, file: str, text: str) -> None:
    declared = named(write(project, {file: text}), file)
    with pytest.raises(UserError, match=r"contains the variable \$\{?CLOUD_SECRET_KEY") as caught:
        declared.check()
    assert "UV_INDEX" in caught.value.hint


def test_a_variable_that_nothing_expands(project: Path) -> None:
    text = TOML + '[tool.other]\nplace = "${HOME}"\n'
    named(write(project, {"pyproject.toml": text}), "pyproject.toml").check()
    named(write(project, {"requirements.txt": "one  # ${HOME}\n"}), "requirements.txt").check()


@pytest.mark.parametrize("known", ["address", "pip", "netrc"])
def test_a_password_goes_only_to_the_index_that_it_was_made_for(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    """The user's index and that of the project have the same host and different ports."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("own", "theirs"):
        (tmp_path / name).mkdir()
    wheel = make_wheel(tmp_path / "own", "one")
    (tmp_path / "theirs" / wheel.name).write_bytes(wheel.read_bytes())
    with serving(tmp_path / "own") as own, serving(tmp_path / "theirs") as theirs:
        if known == "address":
            monkeypatch.setenv("UV_DEFAULT_INDEX", own.address)
        elif known == "pip":
            monkeypatch.setenv("PIP_INDEX_URL", own.address)
        else:
            monkeypatch.setenv("UV_DEFAULT_INDEX", own.open)
            monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
            (tmp_path / "netrc").write_text(
                f"machine other.example login {USER} password {PASSWORD}\ndefault login {USER} password {PASSWORD}\n"
            )
        declared = named(
            write(project, {"requirements.txt": f"one\n--extra-index-url {theirs.open}\n"}), "requirements.txt"
        )
        with suppress(UserError, UnreachableError):
            lock = resolve(declared, TARGET)
            fetch(lock, TARGET, tmp_path / "wheels")
        files = [(f"{theirs.open.removesuffix('/simple')}/files/{wheel.name}", "0" * 64, wheel.name)]
        downloader = Downloader(tmp_path / "wheels", indexes.of_pip(), indexes.passwords([own.address]))
        with suppress(UnreachableError):
            list(downloader.all(files))
    assert theirs.requests and not any("Basic" in each for each in theirs.requests)
    assert known == "netrc" or any("Basic" in each for each in own.requests)


@pytest.mark.parametrize("own", ["variable", "file"])
def test_a_password_by_name_stays_at_the_origin_of_the_users_index(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: str
) -> None:
    """A project can give its own index the name of the user's."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("UV_INDEX_OWN_USERNAME", USER)
    monkeypatch.setenv("UV_INDEX_OWN_PASSWORD", PASSWORD)
    if own == "variable":
        monkeypatch.setenv("UV_INDEX", "own=https://own.invalid/simple")
    else:
        write(tmp_path, {"config/uv/uv.toml": '[[index]]\nname = "own"\nurl = "https://own.invalid/simple"\n'})

    def settings(address: str) -> str:
        text = f'{TOML}[[tool.uv.index]]\nname = "own"\nurl = "{address}"\n[tool.uv.sources]\none.index = "own"\n'
        return uv_config.text(named(write(project, {"pyproject.toml": text}), "pyproject.toml"), os.environ)

    others = ("http://own.invalid/simple", "https://own.invalid:8443/simple", "https://own.invalid:99999/", "http://[x")
    for theirs in ("https://theirs.invalid/simple", *others):
        said = settings(theirs)
        assert f'"{theirs}"' in said
        assert f'"https://{USER}:{PASSWORD}@own.invalid/simple"' in said
    assert f'"https://{USER}:{PASSWORD}@own.invalid/other"' in settings("https://own.invalid/other")


@pytest.mark.parametrize("subfolder", ["link/own", "../../../mine/own", "{mine}/own"])
def test_a_folder_outside_a_repository_is_not_packed(tmp_path: Path, subfolder: str) -> None:
    """The archive is uploaded."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    write(mine / "own", {"pyproject.toml": '[project]\nname = "one"\nversion = "1"\n', "key": "s3cret"})
    theirs.mkdir()
    (theirs / "link").symlink_to(mine)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=theirs, check=True)
    asked = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(asked, cwd=theirs, check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "cache").mkdir()
    revision = repository.Revision(str(theirs), commit, subfolder.format(mine=mine))
    with pytest.raises(ValueError, match="is outside its repository"):
        repository.pack(revision, tmp_path / "cache", "one")
