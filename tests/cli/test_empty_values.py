"""Empty values and unknown contexts: one sentence, and nothing happens."""

from __future__ import annotations

import pytest

from tests.user import User


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ps", "--context", ""], "--context must not be empty"),
        (["--context", "", "ps"], "--context must not be empty"),
        (["run", "--context=", "true"], "--context must not be empty"),
        (["run", "--time", "", "true"], "--time must not be empty"),
        (["run", "--name", "", "true"], "--name must not be empty"),
        (["run", "--partition", "", "true"], "--partition must not be empty"),
        (["run", "-p", "", "true"], "--partition must not be empty"),
        (["run", "--tag", "", "true"], "--tag must not be empty"),
        (["run", "--tag", "a", "--tag=", "true"], "--tag must not be empty"),
        (["ps", ""], "unexpected argument ''"),
    ],
)
def test_an_empty_value_means_nothing(user: User, words: list[str], sentence: str) -> None:
    done = user.quick(*words)
    assert done.code == 2
    assert done.err.startswith(f"yurt: {sentence}\n  hint: ")
    assert user.quick("ps", "--json").json["data"] == []


def test_an_unknown_context_is_not_an_empty_list(user: User) -> None:
    done = user.quick("ps", "--context", "nope")
    assert done.code == 3
    assert "context 'nope' not found" in done.err and "yurt context list" in done.err
    assert user.quick("ps", "--context", "local").code == 0


def test_a_wrong_variable_is_named(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_PLAIN", "garbage")
    done = user.quick("ps")
    assert done.code == 2
    assert "YURT_PLAIN must be 1 or 0, but is 'garbage'" in done.err and "unset YURT_PLAIN" in done.err
