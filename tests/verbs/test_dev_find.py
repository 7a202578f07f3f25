"""Commands about a dev node that has ended say how, and what `dev up` brings back. No lab."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from tests.user import User
from yurt.store import Store
from yurt.verbs import dev_find


@pytest.fixture
def node(user: User) -> Iterator[User]:
    """A user with a dev node on this machine."""
    user.environment["HOME"] = str(user.home)
    done = user.quick("dev", "up", "k", "--context", "local")
    assert done.code == 0, done
    yield user
    user.quick("dev", "down", "k", "--now", "--yes")


def test_a_dev_node_that_failed(node: User) -> None:
    (mine,) = node.quick("dev", "status", "--json").json["data"]
    assert node.quick("cancel", mine["run"]).code == 0
    node.quick("wait", mine["run"])
    now = dev_find.clock(node.quick("show", mine["run"], "--json").json["data"]["status"]["ended"])
    for words in (["status", "k"], ["ssh", "k"], ["down", "k"], ["connect", "k"]):
        done = node.quick("dev", *words)
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
