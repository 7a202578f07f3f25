"""Some of the hostile answers of `make campaign`: a word in each field of each answer, and the telling ones."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import yurt
from tests.campaign import hostile
from tests.campaign.hostile import EVERY
from tests.campaign.hostile_answers import Site, user
from yurt.model import site_words
from yurt.model.site_words import NodeName, Reading, SitePath, SiteWord, UserName

SOURCES = Path(yurt.__file__).parent
KINDS = {kind.__name__: kind for kind in SiteWord.__subclasses__()}
OWN = {"model/site_words.py", "testing/contract.py"}
"""Where the types are, and a test."""


def places() -> set[tuple[str, str]]:
    """Return the files of yurt that check a word of a site, each with the type that they make of it."""
    found = set()
    for file in SOURCES.rglob("*.py"):
        name = file.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(file.read_bytes())) if name not in OWN else ():
            used = node.func if isinstance(node, ast.Call) else None
            kind = used.value if isinstance(used, ast.Attribute) and used.attr in ("read", "fits") else used
            if isinstance(kind, ast.Name) and kind.id in KINDS:
                found.add((name, kind.id))
    return found


def checked(kind: type[SiteWord], seen: set[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Record which files check a word."""
    original = kind.fits

    def fits(_kind: type[SiteWord], text: str) -> bool:
        frame = sys._getframe(1)
        while frame.f_code.co_filename == site_words.__file__ and frame.f_back is not None:
            frame = frame.f_back
        seen.add((frame.f_code.co_filename.removeprefix(f"{SOURCES}/"), kind.__name__))
        return original(text)

    monkeypatch.setattr(kind, "fits", classmethod(fits))


@pytest.mark.timeout(120)
def test_no_answer_of_a_site_does_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new place where a word of a site is checked needs a recorded answer that reaches it."""
    seen: set[tuple[str, str]] = set()
    for kind in KINDS.values():
        checked(kind, seen, monkeypatch)
    chosen = hostile.sample(1000, 7)
    assert len(chosen) >= 1000 and {case.recorded.name for case in chosen} == {each.name for each in EVERY}
    assert not hostile.campaign(chosen, print)
    assert len(places()) > 8 and not places() - seen


@pytest.mark.parametrize("kind", [NodeName, UserName, SitePath])
def test_an_unchecked_word_is_found(kind: type[NodeName], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "fits", classmethod(lambda _kind, _text: True))
    closest = [case for case in hostile.cases() if case.recorded.name == "dev node" and case.word in hostile.TELLING]
    assert hostile.campaign(closest, print)


def test_an_error_of_a_parser_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reading, "__exit__", lambda *_error: None)
    assert hostile.campaign([case for case in hostile.cases() if case.recorded.name == "holders"][:100], print)


def test_programs_and_files_elsewhere_are_found(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "own").mkdir()
    for harm in (
        lambda: subprocess.run(["true"], check=True),
        lambda: (tmp_path / "other").write_text("x"),
        (tmp_path / "own" / ".." / "other").mkdir,
        lambda: (tmp_path / "own").rename(tmp_path / "moved"),
    ):
        with pytest.raises(hostile.Violation), hostile.WATCH.only(tmp_path / "own"):
            harm()
    with hostile.WATCH.only(tmp_path / "own"):
        (tmp_path / "own" / "file").write_text("x")
    with user(tmp_path):
        assert Site(tmp_path, b"x").run("").out == b"x"
