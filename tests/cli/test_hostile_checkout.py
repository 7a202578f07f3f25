"""A checkout uploads no file of its user, and takes packages from nowhere, that the user has not agreed to."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.calls import YURT
from tests.envs.conftest import write
from tests.envs.package_index import serving
from tests.user import User
from yurt.contexts.project import Project
from yurt.envs import addresses
from yurt.envs.addresses import foreign, plain
from yurt.envs.declared import named
from yurt.envs.of_runs.choose import chosen
from yurt.errors import UnconfirmedError
from yurt.model.context import Context
from yurt.snapshot import git

SITE = Context(name="far", type="slurm", slurm_url="far.invalid")


@pytest.fixture
def credentials(user: User, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = user.home / "me"
    write(home, {".aws/credentials": "[default]\n", "words.txt": "a\n"})
    user.environment["HOME"] = str(home)
    return home / ".aws" / "credentials"


def uploaded(user: User, *words: str) -> str:
    done = user.quick("run", "--wait", *words, "sh", "-c", "cat credentials words.txt 2>/dev/null; true")
    assert done.code == 0, done.err
    return user.quick("logs", "-").out


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("yurt.yaml", "paths_to_copy: [~/.aws/credentials]\n"),
        ("yurt.yaml", "paths_to_copy: [../me/.aws/credentials]\n"),
        ("yurt.yaml", "paths_to_copy: [link]\n"),
        ("pyproject.toml", '[tool.yurt]\npaths_to_copy = ["~/.aws/credentials"]\n'),
    ],
)
def test_a_project_names_a_secret(user: User, credentials: Path, file: str, text: str) -> None:
    (user.project / "link").symlink_to(credentials)
    (user.project / file).write_text(text)
    refused = user.quick("run", "--dry-run", "train.py", "--json")
    error = json.loads(refused.out or refused.err)["error"]
    assert error["code"] == "not-confirmed"
    assert error["message"] == (
        "paths_to_copy of the project names ~/.aws/credentials (which looks like a secret), outside the project proj"
    )
    assert f"`yurt trust {credentials}`" in error["hint"]
    assert user.quick("trust", str(credentials)).out == f"{credentials}\n"
    said = user.quick("run", "--dry-run", "train.py")
    assert (said.code, "uploads what looks like a secret: ~/.aws/credentials" in said.err) == (0, True)
    (record,) = (user.home / "data" / "trusted").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert user.quick("trust", "--forget").out == "nothing\n"
    assert user.quick("run", "--dry-run", "train.py").code != 0


def test_the_user_names_a_secret(user: User, credentials: Path) -> None:
    """No question, but it is said."""
    done = user.quick("run", "--dry-run", "train.py", YURT_PATHS_TO_COPY="~/.aws/credentials")
    assert done.code == 0
    assert "uploads what looks like a secret: ~/.aws/credentials" in done.err


def test_a_folder_with_secrets(user: User, credentials: Path) -> None:
    (user.project / "yurt.yaml").write_text("paths_to_copy: [~/.aws, ~/words.txt]\n")
    refused = user.quick("run", "--dry-run", "train.py")
    assert "names ~/.aws (which looks like a secret) and ~/words.txt, outside" in refused.err
    user.quick("trust", "~/.aws", "~/words.txt")
    assert uploaded(user) == "a\n"
    said = user.quick("run", "--dry-run", "train.py")
    assert "left out of the snapshot, because they look like secrets: .aws/credentials" in said.err


def test_a_project_names_a_secret_in_the_checkout(user: User) -> None:
    write(user.project, {".env": "TOKEN=hunter2\n", "yurt.yaml": "paths_to_copy: [.env]\n", "kept/words.txt": "a\n"})
    said = user.quick("run", "--dry-run", "train.py")
    assert "left out of the snapshot, because they look like secrets: .env" in said.err


@pytest.mark.parametrize("place", ["../me/words.txt", "{home}/words.txt", "link.txt"])
def test_values_from_a_file_outside_the_project(user: User, credentials: Path, place: str) -> None:
    home = credentials.parent.parent
    (user.project / "link.txt").symlink_to(home / "words.txt")
    (user.project / "grid.yaml").write_text(f'grid: {{word: "@{place.format(home=home)}"}}\n')
    words = ["run", "--config", "grid.yaml", "--dry-run", "train.py"]
    refused = user.quick(*words)
    assert "grid.yaml names ~/words.txt, outside the project proj" in refused.err
    user.quick("trust", "~/words.txt")
    assert user.quick(*words).code == 0


def test_a_link_to_values_outside_the_project(user: User, credentials: Path) -> None:
    """The user names a file of the checkout, which is a link."""
    (user.project / "link.txt").symlink_to(credentials.parent.parent / "words.txt")
    for words in (["--grid", "word=@link.txt"], ["--config", "link.txt"]):
        refused = user.quick("run", *words, "--dry-run", "train.py")
        assert "link.txt names ~/words.txt, outside the project proj" in refused.err
    user.quick("trust", "~/words.txt")
    assert user.quick("run", "--grid", "word=@link.txt", "--dry-run", "train.py").code == 0
    user.quick("trust", "--forget")
    assert user.quick("run", "--grid", "word=@~/words.txt", "--dry-run", "train.py").code == 0


@pytest.mark.parametrize("paths", ["A" * 200_000, ", ".join(f"a{number}" for number in range(10_000))])
def test_too_many_paths_or_a_huge_one(user: User, paths: str) -> None:
    """Each was an argument of a git of its own."""
    (user.project / "yurt.yaml").write_text(f"paths_to_copy: [{paths}]\n")
    refused = user.quick("run", "--dry-run", "train.py")
    assert refused.code == 2 and "paths_to_copy has more than 200 paths, or one of more than 4096 bytes" in refused.err


def test_a_path_with_a_line_of_its_own(user: User) -> None:
    (user.project / "yurt.yaml").write_text('paths_to_copy: ["../a\\nyurt: all is well"]\n')
    refused = user.quick("run", "--dry-run", "train.py")
    assert refused.err.startswith("yurt: paths_to_copy") and len(refused.err.splitlines()) == 2


def test_a_question_on_a_terminal(user: User, credentials: Path) -> None:
    (user.project / "yurt.yaml").write_text("paths_to_copy: [~/words.txt]\n")
    for answer, code in (("n", 2), ("y", 0)):
        child = user.spawn("run", "--dry-run", "train.py", cwd=user.project, columns=200)
        child.expect(r"names ~/words.txt, outside the project proj")
        child.expect(r"let this project upload it\? \[y/N\]")
        child.sendline(answer)
        child.expect("not-confirmed|yurt trust|train.py" if code else "snapshot|train.py")
        child.wait()
        child.close()
        assert child.exitstatus == code
    assert user.quick("run", "--dry-run", "train.py").code == 0


def test_an_index_of_the_project_is_confirmed_before_it_is_contacted(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "shelf").mkdir()
    with serving(tmp_path / "shelf") as index:
        write(user.project, {"requirements.txt": f"six\n--extra-index-url {index.address}\n"})
        with pytest.raises(UnconfirmedError, match="takes packages from http://127") as caught:
            chosen(SITE, ["python"], Project(), own_setup=False)
        assert caught.value.names == [index.open]  # without the password
        assert user.quick("trust", index.open + "/").code == 0
        assert chosen(SITE, ["python"], Project(), own_setup=False)[0] is not None
        assert not index.requests
        elsewhere = write(tmp_path / "other", {"requirements.txt": f"six\n--index-url {index.open}\n"})
        monkeypatch.chdir(elsewhere)
        with pytest.raises(UnconfirmedError):
            chosen(SITE, ["python"], Project(), own_setup=False)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("requirements.txt", "six\n--extra-index-url file://{private}\n"),
        ("requirements.txt", "six\n-i FILE:{home}/%70rivate?x#y\n"),
        ("requirements.txt", "six\n--index-url {private}\n"),
        ("requirements.txt", "six\n--index-url file://{here}/link\n"),
        ("requirements.txt", "six\n--index-url file://{here}/a/../../me/%70rivate\n"),
        ("requirements.txt", "six\n-r more.txt\n"),
        ("pyproject.toml", '{head}[tool.uv]\nfind-links = ["{private}"]\n'),
        ("pyproject.toml", '{head}[[tool.uv.index]]\nurl = " file:\\\\\\\\localhost{private}"\n'),
        ("pyproject.toml", '{head}[tool.uv.pip]\nextra-index-url = ["file:{private}"]\n'),
        ("uv.toml", 'index-url = "{private}"\n'),
    ],
)
def test_packages_from_a_folder_outside_the_project(
    user: User, credentials: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    home = credentials.parent.parent
    (home / "private").mkdir()
    head = '[project]\nname = "x"\nversion = "1"\ndependencies = ["six"]\n'
    (user.project / "link").symlink_to(home / "private")
    (user.project / "a").symlink_to("b/c/d")
    (user.project / "b/c/d").mkdir(parents=True)
    write(user.project, {"more.txt": f"--extra-index-url {home}/private\n", "pyproject.toml": head})
    given = text.format(private=home / "private", home=home, here=user.project, head=head)
    write(user.project, {file: given})
    monkeypatch.chdir(user.project)
    source = msgspec.structs.replace(SITE, env="pyproject.toml" if file.endswith(".toml") else file)
    with pytest.raises(UnconfirmedError, match="names ~/private, outside the project proj") as caught:
        chosen(source, ["python"], Project(), own_setup=False)
    assert (caught.value.kind, caught.value.names) == ("file", [str(home / "private")])
    assert user.quick("trust", str(home / "private")).code == 0
    assert chosen(source, ["python"], Project(), own_setup=False)[0] is not None


def test_settings_by_a_link(user: User, credentials: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    write(credentials.parent.parent, {"mine.toml": "[pip]\n"})
    write(user.project, {"requirements.txt": "six\n"})
    (user.project / "uv.toml").symlink_to(credentials.parent.parent / "mine.toml")
    monkeypatch.chdir(user.project)
    with pytest.raises(UnconfirmedError, match=r"names ~/mine\.toml, outside the project proj"):
        chosen(SITE, ["python"], Project(), own_setup=False)


@pytest.mark.parametrize("link", ["results", "out", "out/deep"])
def test_results_through_a_link_of_the_project(user: User, credentials: Path, link: str) -> None:
    elsewhere = credentials.parent.parent / "private"
    elsewhere.mkdir()
    assert user.quick("run", "--wait", "sh", "-c", "echo 1 > made.txt").code == 0
    (user.project / link).parent.mkdir(exist_ok=True)
    (user.project / link).symlink_to(elsewhere)
    words = ["fetch", "-"] if link == "results" else ["fetch", "-", "--to", "out/deep/er"]
    refused = user.quick(*words, "--json")
    error = json.loads(refused.out or refused.err)["error"]
    assert error["code"] == "not-confirmed"
    assert error["message"] == f"'{link}' is a link to ~/private, outside the project proj"
    assert f"`yurt trust --write {elsewhere}`" in error["hint"]
    assert not list(elsewhere.iterdir())
    assert user.quick("trust", "--write", "~/private").out == f"--write {elsewhere}\n"
    assert user.quick(*words).code == 0
    assert list(elsewhere.rglob("made.txt"))


def test_results_elsewhere_that_the_user_names(user: User, credentials: Path) -> None:
    """No question: also if it is a link, and for a link within the project."""
    home = credentials.parent.parent
    (home / "private").mkdir()
    (home / "mine").symlink_to(home / "private")
    (user.project / "inner").symlink_to("real")
    (user.project / "real").mkdir()
    assert user.quick("run", "--wait", "sh", "-c", "echo 1 > made.txt").code == 0
    for folder in (home / "mine", Path("inner"), Path("../elsewhere")):
        assert user.quick("fetch", "-", "--to", str(folder)).code == 0


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("requirements.txt", "one\n-i http://evil.example/simple/\n", ["http://evil.example/simple"]),
        ("requirements.txt", "one\n-f http:/evil.example\\w\n", ["http://evil.example/w"]),
        (
            "requirements.txt",
            "one @ https://user:pass@evil.example/w/one-1.tar.gz#sha256=0\n",
            ["https://evil.example/w"],
        ),
        ("requirements.txt", "one @ git+https://evil.example/a/b.git@v1\n", ["https://evil.example/a/b.git"]),
        ("requirements.txt", "git+ssh://git@evil.example/a/b.git\n", ["ssh://evil.example/a/b.git"]),
        ("requirements.txt", "one @ git+file:///home/me/private\n", ["file:///home/me/private"]),
        ("pyproject.toml", '[tool.uv.sources]\none = {git = "file:///home/me/private"}\n', ["file:///home/me/private"]),
        ("requirements.txt", "one @ HTTP://evil.example/one-1.tar.gz\n", ["http://evil.example"]),
        ("requirements.txt", "one@http://evil.example/one-1.tar.gz\n", ["http://evil.example"]),
        ("requirements.txt", "one\n-f HTTP://evil.example/w\n", ["http://evil.example/w"]),
        (
            "environment.yml",
            "dependencies: ['one[url=https://evil.example/a.conda]']\n",
            ["https://evil.example/a.conda"],
        ),
        ("requirements.txt", "one\n-i https://mine.example/simple\n", []),
        ("requirements.txt", "one\n-i https://mine.example@evil.example/x\n", ["https://evil.example/x"]),
        ("requirements.txt", "one\n-i https://mine.example;@evil.example/x\n", ["https://evil.example/x"]),
        ("requirements.txt", "one\n-i https://download.pytorch.org/whl/cpu\n", []),
        ("requirements.txt", "one\n-i https://evil.example\\.pytorch.org/x\n", ["https://evil.example/.pytorch.org/x"]),
        ("pyproject.toml", '[[tool.uv.index]]\nurl = "ht\\ttp://evil.example"\n', ["http://evil.example"]),
        ("pyproject.toml", '[tool.uv.sources]\none = {git = "git@evil.example:a/b"}\n', ["git@evil.example:a/b"]),
        (
            "environment.yml",
            "channels: [conda-forge, 'https://evil.example/c']\ndependencies: [one]\n",
            ["https://evil.example/c"],
        ),
        ("environment.yml", "dependencies: [one, pip: ['-i http://evil.example']]\n", ["http://evil.example"]),
    ],
)
def test_addresses_that_are_not_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, found: list[str]
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("UV_INDEX", "own=https://ada:pw@mine.example/simple")
    head = '[project]\nname = "x"\nversion = "1"\ndependencies = ["one"]\n' if file.endswith(".toml") else ""
    assert foreign(named(write(tmp_path / "p", {file: head + text}), file)) == found


GIT = 'git = "file:///home/me/private?rev=x#SHA"'
REPOSITORY, ARCHIVE = ["file:///home/me/private"], ["http://evil.example"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"[[package]]\nname = 'one'\nsource = {{ {GIT} }}\n", REPOSITORY),
        (f"[[package]]\nname = 'one'\nsource={{{GIT}}}\n", REPOSITORY),
        (f"[[package]]\nname = 'one'\n[package.source]\n{GIT}\n", REPOSITORY),
        (f"[[package]]\nname = 'one'\nsource.{GIT}\n", REPOSITORY),
        (f'[["pack\\u0061ge"]]\nname = "one"\n"s\\u006furce" = {{ {GIT} }}\n', REPOSITORY),
        (f"package = [{{ name = 'one', source = {{ {GIT} }} }}]\n", REPOSITORY),
        (f"[[distribution]]\nname = 'one'\nsource = {{ {GIT} }}\n", REPOSITORY),
        ("[[package]]\nname = 'one'\nsource = {url='HTTP://evil.example/one-1.tar.gz'}\n", ARCHIVE),
        ("[[package]]\nname = 'one'\nsource = { subdirectory = 'a', url = 'http://evil.example/one.zip' }\n", ARCHIVE),
        ("[[package]]\nname = 'one'\nsource = { registry = 'USUAL' }\n", []),
    ],
)
def test_addresses_of_a_uv_lock_in_any_notation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: list[str]
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    head = '[project]\nname = "x"\nversion = "1"\n'
    text = text.replace("USUAL", addresses._usual()[0])
    folder = write(tmp_path / "p", {"pyproject.toml": head, "uv.lock": f"version = 1\n{text}"})
    assert foreign(named(folder, "uv.lock")) == found


PACKAGES = '[project]\nname = "x"\nversion = "1"\ndependencies = '
DEEP = "[" * 30_000
BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))])


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        pytest.param(file, text, said, id=name)
        for name, file, text, said in [
            ("brackets", "environment.yml", DEEP, "nested more than 200 levels deep"),
            ("comment", "environment.yml", f"# {']' * 30_000}\n{DEEP}", "nested more than 200 levels deep"),
            ("bomb", "environment.yml", f"{BOMB}\ndependencies: [one]\n", "values, with aliases"),
            ("endless", "environment.yml", "dependencies: &a [one, *a]\n", "values, with aliases"),
            ("tag", "environment.yml", "dependencies: [!!bool maybe]\n", "not of the type that its tag names"),
            ("marker", "requirements.txt", f"one; {'(' * 30_000}\n", "is nested too deeply"),
            ("include", "requirements.txt", f"-r {'x' * 3_000_000}\n", "which does not exist"),
            ("loop", "requirements.txt", "-r loop.txt\n", "which does not exist"),
            ("null", "requirements.txt", "-r x\0\n", "line 1 includes"),
            ("spaces", "requirements.txt", f"one{' ' * 1_000_000}!\n", "is not a requirement"),
            ("date", "environment.yml", "dependencies: [2024-99-99]\n", "is invalid"),
            ("lock", "uv.lock", f"x={'[' * 3000}", "nested too deeply"),
            ("dots", "uv.lock", f"{'a.' * 300}b = 1\n", "nested more than 200 levels deep"),
            ("more dots", "uv.lock", f"x = {{{'a.' * 1_000_000}b = 1}}\n", "a key has more than 500 dots (at line 1)"),
            ("all dots", "uv.lock", f"x.{'a.' * 400}b = 1\n" * 1000, "its keys have more than 50,000 dots"),
            ("lists", "uv.lock", f"x = [{'[],' * 600_000}]\n", "it has more than 500,000 values"),
            ("many", "requirements.txt", "one\n" * 100_000, "more than 20,000 lines"),
            ("chain", "requirements.txt", "-r 0.txt\n", "it includes more than 200 other files"),
            (
                "packages",
                "pyproject.toml",
                PACKAGES + "['one'," + "'one'," * 99_999 + "]\n",
                "it names 100,000 packages",
            ),
            ("settings", "uv.toml", f"x={'[' * 3000}", "nested too deeply"),
            ("syntax", "uv.toml", "x = $", "is invalid"),
            ("project", "pyproject.toml", f"x={'[' * 3000}", "nested too deeply"),
            ("line", "requirements.txt", f"one {'x' * 3_000_000}\n", "is not a requirement"),
            ("option", "requirements.txt", f"-{'x' * 3_000_000}\n", "unknown option"),
        ]
    ],
)
def test_a_file_that_no_one_wrote_by_hand(tmp_path: Path, file: str, text: str, said: str) -> None:
    """In a process of its own, because the parser in C crashed."""
    if file.startswith("uv."):
        write(tmp_path, {"pyproject.toml": '[project]\nname = "x"\nversion = "1"\ndependencies = ["one"]\n'})
    write(tmp_path, {file: text})
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / ".python-version").symlink_to("/dev/zero")
    write(tmp_path, {f"{number}.txt": f"one\n-r {number + 1}.txt\n" for number in range(300)})
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from yurt.envs.declared import named\nfrom yurt.errors import UserError\n"
        "try: named(Path(), sys.argv[1]).check()\n"
        "except UserError as error: print(error.message)"
    )
    words = [sys.executable, "-c", code, "pyproject.toml" if file == "uv.toml" else file]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout and len(done.stdout) < 1000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"# {']' * 30_000}\n{DEEP}", id="comment"),
        pytest.param("x: " + '["]", ' * 30_000, id="quoted"),
        pytest.param("x:\n " + "-  " * 30_000, id="dashes"),
    ],
)
def test_a_configuration_that_hides_its_depth(user: User, text: str) -> None:
    """The parser in C crashed."""
    write(user.project, {"yurt.yaml": text})
    done = user.quick("run", "--dry-run", "train.py")
    assert "nested more than 200 levels deep" in done.err


def test_a_configuration_that_is_a_bomb(user: User) -> None:
    for words in (["train.py"], ["--config", "yurt.yaml", "train.py"]):
        write(user.project, {"yurt.yaml": f"{BOMB}\ntags: *a39\n"})
        done = user.quick("run", "--dry-run", *words)
        assert "has more than 150,000 values, with aliases" in done.err


def test_a_pipe_of_the_repository(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """git waits for it also when it is asked for the commit."""
    monkeypatch.setattr(git, "PATIENCE", 0.5)
    subprocess.run(["git", "init", "-q"], cwd=user.project, check=True)
    os.mkfifo(user.project / ".git" / "packed-refs")
    done = user.quick("run", "--dry-run", "train.py")
    assert "'.git/packed-refs' is a pipe, not a file" in done.err


def test_a_folder_whose_name_poses_as_a_message(user: User) -> None:
    user.project = user.project / "a\nyurt: all is well\n"
    write(user.project, {"yurt.yaml": "key: 1\n", "train.py": ""})
    done = user.quick("run", "--dry-run", "train.py")
    assert done.code == 2 and [each[:2] for each in done.err.splitlines()] == ["yu", "  ", "  ", "  ", "  ", "  "]


def test_a_grid_of_many_keys(user: User) -> None:
    rows = "".join(f"  key{number}: 0..9\n" for number in range(4400))
    write(user.project, {"grid.yaml": f"grid:\n{rows}", "pyproject.toml": f"[tool.yurt]\n{'a . ' * 300_000}b = 1\n"})
    assert "a key has more than 500 dots (at line 2)" in user.quick("run", "--dry-run", "train.py").err
    (user.project / "pyproject.toml").unlink()
    done = user.quick("run", "--config", "grid.yaml", "--dry-run", "train.py")
    assert "the sweep has more than 10^4399 combinations (key0 10 x key1 10 x" in done.err and len(done.err) < 1000


def test_a_message_is_cut(user: User) -> None:
    write(user.project, {"yurt.yaml": "\n".join(f"key{number}: 1" for number in range(20_000))})
    done = user.quick("run", "--dry-run", "train.py")
    assert "yurt.yaml has 20000 errors:" in done.err and "  and 19950 more" in done.err
    (user.project / "yurt.yaml").unlink()
    write(user.project, {"pyproject.toml": f"[tool.yurt]\n{'x' * 1_000_000} = 1\n"})
    done = user.quick("run", "--dry-run", "train.py", "--json")
    assert "characters are left out" in done.out and len(done.out) < 20_000


@pytest.mark.parametrize("flag", ["--grid", "--config"])
def test_values_from_a_pipe(user: User, flag: str) -> None:
    os.mkfifo(user.project / "pipe")
    write(user.project, {"grid.yaml": 'grid: {word: "@pipe"}\n'})
    given = "word=@pipe" if flag == "--grid" else "grid.yaml"
    assert "pipe: it is not a regular file" in user.quick("run", flag, given, "--dry-run", "train.py").err


def test_values_of_a_grid_that_are_nested_too_deeply(user: User) -> None:
    write(user.project, {"s.json": DEEP + "]" * len(DEEP)})
    done = user.quick("run", "--grid", "a=@s.json", "--dry-run", "train.py")
    assert done.code != 70 and "internal" not in done.err


def test_a_plain_address_has_no_login() -> None:
    assert plain("HTTPS://me:secret@Host.example/simple/") == "https://host.example/simple"


def test_a_host_with_letters_of_another_alphabet() -> None:
    assert plain("https://own.ex\u0430mple/simple") == "https://own.xn--exmple-4nf/simple"
    assert plain(plain("https://stra\u00dfe.example:81/a")) == "https://xn--strae-oqa.example:81/a"


@pytest.mark.parametrize("path", ["bin:{usual}", "{usual}::bin/"])
def test_programs_of_the_checkout_on_a_relative_path(user: User, path: str) -> None:
    """They come first, or stand in for a program that is not installed."""
    usual = os.environ["PATH"]
    write(user.project, {f"{folder}{name}": '#!/bin/sh\ntouch "$0.ran"\n' for folder in ("", "bin/") for name in RUN})
    for each in (*user.project.iterdir(), *(user.project / "bin").iterdir()):
        each.chmod(0o755)
    given = path.format(usual=usual)
    done = user("run", "--wait", "--", "sh", "-c", "echo $PATH; yurt-nowhere || true", PATH=given)
    assert done.code == 0, done.err
    assert user("logs", "-", PATH=given).out.splitlines()[0].endswith(usual)
    home_sync = subprocess.run(
        [str(Path(YURT).with_name("home_sync")), "-help"],
        env={**os.environ, **user.environment, "PATH": given},
        cwd=user.project,
        capture_output=True,
        check=False,
    )
    assert b"unison" in home_sync.stdout + home_sync.stderr
    assert not list(user.project.rglob("*.ran"))


RUN = ("git", "ssh", "rsync", "tar", "unison", "tmux", "code", "nice", "yurt-nowhere")


def test_a_path_of_relative_folders_only(user: User) -> None:
    write(user.project, {"git": "#!/bin/sh\ntouch ran\n"})
    (user.project / "git").chmod(0o755)
    assert user("run", "--dry-run", "train.py", PATH="").code == 0
    assert not (user.project / "ran").exists()
