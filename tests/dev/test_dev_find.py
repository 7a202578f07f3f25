"""Commands about a dev node that has ended say how, and what `dev up` brings back. No lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from tests.user import User
from yurt.contexts import folders
from yurt.dev import backup as dev_backup
from yurt.dev import connect as dev_connect
from yurt.dev import find as dev_find
from yurt.dev import restore as dev_restore
from yurt.errors import UnreachableError
from yurt.store import Store


@pytest.fixture
def node(user: User) -> Iterator[User]:
    """A user with a dev node on this machine."""
    user.environment["HOME"] = str(user.home)
    done = user.quick("dev", "up", "k", "--context", "local")
    assert done.code == 0, done
    yield user
    user.quick("dev", "down", "k", "--now", "--yes")


def test_without_a_dev_node_it_says_where_it_looked(user: User) -> None:
    found = user.quick("dev", "status", "--context", "local")
    assert (
        found.out == "no dev nodes on local; start one with `yurt dev up`, or name another context with `--context`\n"
    )


FAR = """\
contexts:
  far:
    type: slurm
    slurm_url: alice@far.example
    storage_dir: /storage
    ssh_command: [no-such-program]
"""


def test_a_name_that_this_machine_does_not_know_is_looked_for_everywhere(user: User) -> None:
    """What cannot be queried is named: the dev node may be there."""
    user.environment["HOME"] = str(user.home)
    (user.home / "config").mkdir(exist_ok=True)
    (user.home / "config" / "contexts.yaml").write_text(FAR)
    done = user.quick("dev", "ssh", "nosuch")
    assert done.code == 4, done
    assert "there is no dev node 'nosuch' on local; cannot query far: " in done.err
    assert user.quick("dev", "ssh", "nosuch", "--context", "local").code == 3
    seen = user.quick("dev", "status")
    assert seen.code == 0 and "no dev nodes; start one with `yurt dev up`" in seen.out, seen
    assert "cannot look for dev nodes of other machines on far: " in seen.err


def test_a_dev_node_that_failed(node: User) -> None:
    (mine,) = node.quick("dev", "status", "--json").json["data"]
    assert node.quick("cancel", mine["run"]).code == 0
    node.quick("wait", mine["run"])
    now = dev_find.clock(node.quick("show", mine["run"], "--json").json["data"]["status"]["ended"])
    for words in (["status", "k"], ["ssh", "k"], ["down", "k"], ["connect", "k"]):
        done = (node if "connect" in words else node.quick)("dev", *words)  # connect becomes another program
        assert done.code == 3, done
        assert f"dev node 'k' is not running: run {mine['run']} is cancelled (version 1 saved) since {now}" in done.err
        assert "hint: `yurt dev up k` brings version 1 of " in done.err
    with Store(str(node.home / "data" / "yurt.db")) as store:
        store.change(
            [mine["run"]], lambda _run, now: msgspec.structs.replace(now, state="node_failed", node="n2"), lambda *_: ""
        )
    done = node.quick("dev", "ssh", "k")
    assert f"dev node 'k' is not running: n2 failed at {now}" in done.err, done
    assert "; work since then is on n2 until it returns" in done.err
    done = node.quick("dev", "status")
    assert done.code == 0 and f"dev node 'k' is not running: n2 failed at {now}" in done.err, done
    folder = Path(node.quick("dev", "backups", "k", "--json").json["data"]["folder"])
    next(folder.glob("i1-*")).unlink()
    done = node.quick("dev", "ssh", "k")
    assert "brings version" not in done.err and "hint: version 1 of " in done.err, done
    assert (
        " is damaged: " in done.err and " may still have its files: `yurt dev up k --context local --node " in done.err
    )


@pytest.mark.parametrize(("said", "shown"), [("srun: error: Application launch failed", "node"), ("other", "job 7")])
def test_a_request_to_a_node_that_failed(monkeypatch: pytest.MonkeyPatch, said: str, shown: str) -> None:
    def ask(*_words: object) -> None:
        raise UnreachableError(f"alpha: cannot run a command in job 7: {said}", code="connection-lost")

    desk = SimpleNamespace(entry=SimpleNamespace(run=SimpleNamespace(context="alpha")))
    node = SimpleNamespace(node="n2", context="alpha", seen=None)
    monkeypatch.setattr(dev_backup, "ask", ask)
    monkeypatch.setattr(dev_find, "running", lambda *_words: desk)
    monkeypatch.setattr(dev_restore, "find", lambda *_words, **_more: (None, SimpleNamespace(number=3)))
    monkeypatch.setattr(folders, "store", lambda: None)
    monkeypatch.setattr(dev_connect, "running", lambda *_words: desk)
    monkeypatch.setattr(dev_connect, "brought_back", lambda *_words: "`yurt dev up k` brings version 3 of 12:00 back")
    monkeypatch.setattr(dev_connect, "views", SimpleNamespace(of=lambda *_words: node, read_status=lambda _desk: None))
    monkeypatch.setattr(dev_connect, "shortcut", SimpleNamespace(forget=lambda _name: None))
    for call in (lambda: dev_backup.backup("k"), lambda: dev_restore.on_node("k", "", ["a"])):
        with pytest.raises(UnreachableError) as caught:
            call()
        if shown == "node":
            assert caught.value.message == "dev node 'k': the connection to n2 of alpha failed"
            assert "`yurt dev up k` brings version 3 of " in str(caught.value.hint)
        else:
            assert shown in caught.value.message
