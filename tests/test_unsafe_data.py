"""What another user could have written into yurt's data folder is not executed, and the folder is refused."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.calls import YURT
from yurt.config import parse_cache, paths, trust
from yurt.contexts.project import code_folder
from yurt.envs import inert_python, uv_lock
from yurt.errors import UserError
from yurt.testing.waiting import eventually
from yurt.transport import queue_prefetch, session_ahead

OTHER = os.geteuid() + 4711

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")


def chmod(mode: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(mode)


def give_away(path: Path) -> None:
    os.chown(path, OTHER, OTHER)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


OTHERS = [
    pytest.param("folder", chmod(0o770), id="group-folder"),
    pytest.param("folder", chmod(0o702), id="open-folder"),
    pytest.param("folder", give_away, id="their-folder", marks=as_root),
    pytest.param("file", chmod(0o660), id="group-file"),
    pytest.param("file", chmod(0o602), id="open-file"),
    pytest.param("file", give_away, id="their-file", marks=as_root),
    pytest.param("file", link, id="link"),
    pytest.param("file", pipe, id="pipe"),
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("YURT_DATA_HOME", str(folder))
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    return folder


def save_command(folder: Path, words: list[str]) -> Path:
    """Save an early query that starts a program, as `yurt ps` would after a refresh."""
    request: queue_prefetch.Request = (b"", [])
    queue_prefetch.save(b"key", ("ps", b"basis"), (b"a", b"b"), str(folder), request=request, argv=words, query=b"")
    (file,) = folder.glob("ahead-*")
    return file


@pytest.mark.parametrize(("what", "spoil"), OTHERS)
def test_saved_queries_are_the_users_own(what: str, spoil: Callable[[Path], None], data: Path) -> None:
    file = save_command(data, ["true"])
    spoil(data if what == "folder" else file)
    queue_prefetch.begin(["ps"])
    assert not queue_prefetch.is_sent()


def test_saved_queries_start(data: Path, tmp_path: Path) -> None:
    """Without this, the tests above would prove nothing."""
    mark = tmp_path / "mark"
    save_command(data, ["touch", str(mark)])
    queue_prefetch.begin(["ps"])
    assert queue_prefetch.is_sent()
    queue_prefetch._pending.pop().end(kill=False)
    assert mark.exists()


def test_nothing_is_saved_where_others_write(data: Path) -> None:
    data.chmod(0o777)
    with pytest.raises(ValueError, match="not enough values"):
        save_command(data, ["true"])
    session_ahead._wanted.append(["run"])
    session_ahead.save("socket", "name", "missing", request=b"", variables=[], opener=b"")
    session_ahead._wanted.clear()
    assert not list(data.iterdir())


@pytest.mark.parametrize(("what", "spoil"), OTHERS)
def test_parsed_files_are_the_users_own(what: str, spoil: Callable[[Path], None], data: Path) -> None:
    """A cached value counts for the text of a file that was checked: it may name programs."""
    assert parse_cache.cached("names", "text", str, lambda: "planted") == "planted"
    assert parse_cache.cached("names", "text", str, lambda: "parsed") == "planted"
    spoil(data / "cache" if what == "folder" else data / "cache" / "names.json")
    assert parse_cache.cached("names", "text", str, lambda: "parsed") == "parsed"


@pytest.mark.parametrize("kind", ["data", "config"])
@pytest.mark.parametrize(
    ("spoil", "hint"),
    [
        pytest.param(chmod(0o777), "chmod -R go-w", id="open"),
        pytest.param(give_away, "chown -R", id="theirs", marks=as_root),
    ],
)
def test_an_unsafe_folder_is_refused(
    kind: str, spoil: Callable[[Path], None], hint: str, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    spoil(tmp_path / kind)
    with pytest.raises(UserError) as refused:
        paths.data_home() if kind == "data" else paths.config_home()
    assert refused.value.code == "config-unsafe" and hint in refused.value.hint
    (tmp_path / kind).chmod(0o755)
    if spoil is not give_away:
        assert paths.data_home() == data


@pytest.mark.parametrize("kind", ["data", "config"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_above_that_others_can_write_to_is_refused(
    kind: str, linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They can replace yurt's folder, although they cannot change it."""
    above = tmp_path / "shared"
    folder = above / "alice" / "yurt"
    folder.mkdir(parents=True)
    above.chmod(0o777)
    named = folder
    if linked:
        named = tmp_path / "own" / "yurt"
        named.parent.mkdir()
        named.symlink_to(folder)
    monkeypatch.setenv(f"YURT_{kind.upper()}_HOME", str(named))
    home = paths.data_home if kind == "data" else paths.config_home
    with pytest.raises(UserError, match=f"other users can write to {re.escape(str(above))}, so they") as refused:
        home()
    assert refused.value.code == "config-unsafe" and refused.value.hint == f"run `chmod go-w {above}`"
    above.chmod(0o1777)  # nobody replaces what belongs to others, as in /tmp
    assert home() == named


@as_root
def test_a_folder_above_of_another_user_is_changed_by_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = tmp_path / "lab"
    (above / "yurt").mkdir(parents=True)
    above.chmod(0o775)
    give_away(above)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(paths, "own_place", lambda _file: "")
    monkeypatch.setenv("YURT_DATA_HOME", str(above / "yurt"))
    with pytest.raises(UserError, match=f"other users can write to {re.escape(str(above))}") as refused:
        paths.data_home()
    assert "ask its owner to type `chmod go-w ~/lab`, or set `YURT_CONFIG_HOME`" in refused.value.hint


def test_a_lock_is_parsed_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the next process; a lock that others could have written is parsed again."""
    text = '[[package]]\nname = "six"\nsource = { url = "https://example.invalid/six.whl" }\n'
    uv_lock.read.cache_clear()
    first = uv_lock.read(text)
    (file,) = (data / "cache").glob("uv-lock-*.json")
    assert first.addresses == ["https://example.invalid/six.whl"] and file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(uv_lock, "_parsed", lambda _text: uv_lock.UvLock("", [], [], ["parsed again"]))
    uv_lock.read.cache_clear()
    assert uv_lock.read(text) == first
    file.chmod(0o666)
    uv_lock.read.cache_clear()
    assert uv_lock.read(text).addresses == ["parsed again"]
    uv_lock.read.cache_clear()


def test_an_unsafe_index_is_refused(data: Path) -> None:
    index = data / "yurt.db"
    index.touch()
    index.chmod(0o666)
    with pytest.raises(UserError) as refused:
        paths.data_folder()
    assert f"chmod go-w {index}" in refused.value.hint


@as_root
@pytest.mark.parametrize("name", ["yurt.db-wal", "code", "outbox", "uv", "code/p-1.git", "trusted/1.json"])
def test_what_others_left_in_the_folder_is_refused(name: str, data: Path) -> None:
    """The folder was open to others once, and `chmod -R` has changed what is the user's."""
    left = data / name
    left.mkdir(parents=True)
    give_away(left)
    with pytest.raises(UserError) as refused:
        trust.of(code_folder("p-1").stem)
    assert f"cannot use {left}: it belongs to another user" in refused.value.message
    assert f"chown -R {os.geteuid()} {left}" in refused.value.hint


@as_root
def test_a_python_that_others_left_is_not_started(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv starts it on this machine, and its name can be guessed."""
    monkeypatch.setattr(inert_python, "_make", lambda *given: given[1].mkdir())
    made = Path(inert_python.path(sys.executable, {})).parent
    give_away(made)
    paths._checked.discard(str(made))
    with pytest.raises(UserError, match=re.escape(f"cannot use {made}: it belongs to another user")):
        inert_python.path(sys.executable, {})


@as_root
def test_the_folder_of_another_user_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`chown` or `chmod` would take their home, or /tmp, from others."""
    theirs = tmp_path / "theirs"
    (theirs / ".config" / "yurt").mkdir(parents=True)
    for each in (theirs, theirs / ".config", theirs / ".config" / "yurt"):
        give_away(each)
    for variable in ("YURT_CONFIG_HOME", "YURT_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(theirs))
    with pytest.raises(UserError) as refused:
        paths.config_home()
    assert refused.value.hint == f"use your own home: `export HOME={pwd.getpwuid(os.geteuid()).pw_dir}`"
    monkeypatch.setenv("YURT_CONFIG_HOME", str(theirs / ".config" / "yurt"))
    with pytest.raises(UserError) as refused:
        paths.config_home()
    assert refused.value.hint == "use a folder of your own: `unset YURT_CONFIG_HOME`"
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "shared"))
    with pytest.raises(UserError) as refused:
        paths.data_home()
    assert refused.value.hint == "use a folder of your own: `unset YURT_DATA_HOME`"


@pytest.mark.parametrize("verb", [["run", "true"], ["ps"]])
def test_a_folder_that_cannot_be_made_is_named(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an internal error."""
    (tmp_path / "file").touch()
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "file" / "data"))
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    yurt = [sys.executable, YURT, *verb]
    done = subprocess.run(yurt, cwd=tmp_path / "project", capture_output=True, text=True, check=False)
    assert "internal error" not in done.stderr and done.stderr.count("\n") == 2
    assert f"{tmp_path}/file" in done.stderr and "`export YURT_DATA_HOME=FOLDER`" in done.stderr


def test_ps_executes_nothing_of_others(data: Path, tmp_path: Path) -> None:
    """The whole command: it ran the saved program before it looked at anything."""
    mark = tmp_path / "mark"
    save_command(data, ["touch", str(mark)])
    yurt = [sys.executable, YURT, "ps"]
    done = subprocess.run(yurt, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    eventually(mark.exists)
    mark.unlink()
    data.chmod(0o777)
    refused = subprocess.run(yurt, capture_output=True, text=True, check=False)
    assert (refused.returncode, mark.exists()) == (2, False)
    assert f"cannot use {data}: other users can write to it" in refused.stderr
    assert f"chmod -R go-w {data}" in refused.stderr
