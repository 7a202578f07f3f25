"""Some of the hostile answers of `make campaign`: a word in each field of each answer, and the telling ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign import hostile
from tests.campaign.hostile_answers import ANSWERS, Site, user
from yurt.model.site_words import NodeName, Reading, SitePath, UserName


@pytest.mark.timeout(120)
def test_no_answer_of_a_site_does_harm() -> None:
    chosen = hostile.sample(1000, 7)
    assert len(chosen) >= 1000 and {case.recorded.name for case in chosen} == {each.name for each in ANSWERS}
    assert not hostile.campaign(chosen, print)


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
