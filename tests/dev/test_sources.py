"""What a new workspace is made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.dev.sources import located, parse
from yurt.errors import UserError
from yurt.model.facts import Facts, Tier

FACTS = Facts(probed_at=0, user="alice", host="login", tiers=[Tier(name="scratch", variable="S", path="/s/alice")])


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("", "", ""),
        (".", "project", ""),
        ("project", "project", ""),
        ("https://host/a.git", "git", "https://host/a.git"),
        ("git@host:a/b", "git", "git@host:a/b"),
        ("/data/set", "folder", "/data/set"),
        ("/data/old.tar.lz4", "archive", "/data/old.tar.lz4"),
        ("scratch:a/b", "folder", "/s/alice/a/b"),
        ("scratch:a.tar.zst", "archive", "/s/alice/a.tar.zst"),
        ("beta", "desk", "beta"),
        ("beta:paper@v3", "desk", "beta"),
    ],
)
def test_parse(text: str, kind: str, value: str) -> None:
    found = parse(text, FACTS, {"beta"}, here=False)
    assert (found.kind, found.value) == (kind, value)


def test_a_version_of_another_context() -> None:
    found = parse("beta:paper@v3", FACTS, {"beta"}, here=False)
    assert (found.desk, found.version) == ("paper", 3)


def test_an_archive_of_this_machine(tmp_path: Path) -> None:
    archive = tmp_path / "old.tar.gz"
    archive.touch()
    assert parse(str(archive), FACTS, (), here=False).upload == str(archive)
    assert parse(str(archive), None, (), here=True).value == str(archive)
    assert parse(str(tmp_path), None, (), here=True).kind == "folder"


@pytest.mark.parametrize("text", ["gamma", "beta:x@y", "home:x", "old.tar.gz"])
def test_nothing(text: str) -> None:
    with pytest.raises(UserError):
        parse(text, FACTS, {"beta"}, here=False)


def test_another_archive_of_the_same_name_is_uploaded_elsewhere(tmp_path: Path) -> None:
    archive = tmp_path / "old.tar.gz"
    archive.write_text("one")
    source = parse(str(archive), FACTS, (), here=False)
    first = located(source, "/s/yurt/workspaces/paper")
    archive.write_text("other")
    assert first.startswith("/s/yurt/workspaces/.from-paper-") and first.endswith("/old.tar.gz")
    assert located(source, "/s/yurt/workspaces/paper") != first
