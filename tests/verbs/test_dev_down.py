"""`yurt dev down` on this machine: Ctrl-C, and two calls at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.user import User
from yurt.verbs import dev_down


def test_ctrl_c_says_what_is_known(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.environment["HOME"] = str(user.home)
    assert user.quick("dev", "up", "--context", "local").code == 0

    def interrupted(*_words: Any) -> None:
        raise KeyboardInterrupt

    try:
        monkeypatch.setattr(dev_down, "ask", interrupted)
        done = user.quick("dev", "down")
        assert done.code == 130
        assert done.err == (
            "yurt: interrupted; dev node 'default' may still end by itself after its backup; see `yurt dev status`\n"
        )
    finally:
        user.quick("dev", "down", "--now", "--yes")
