"""How a project declares the packages that were added on a dev node."""

from __future__ import annotations

import pytest

from yurt.dev.down import AddedPackage, declaring, read, requested

TQDM = AddedPackage(name="tqdm", version="4.67.1")
OWN = AddedPackage(name="study", version="1", source="file:///scratch/alice/work")
FORK = AddedPackage(name="thing", version="1", source="git+https://host.example/thing@abc")
HELPER = AddedPackage(name="helper", version="1", requested=False)


@pytest.mark.parametrize(
    ("title", "added", "expected"),
    [
        ("uv.lock", [HELPER, TQDM], "with `uv add tqdm==4.67.1`"),
        (
            "pyproject.toml[train]",
            [TQDM, FORK],
            "with `uv add tqdm==4.67.1 'thing @ git+https://host.example/thing@abc'`",
        ),
        ("requirements.txt", [TQDM, OWN], "with `printf '%s\\n' tqdm==4.67.1 >> requirements.txt`"),
        (
            "environment.yml",
            [TQDM, FORK],
            "in the list `pip:` of environment.yml: tqdm==4.67.1, thing @ " + FORK.source,
        ),
        ("requirements.txt", [OWN], ""),
    ],
)
def test_what_to_type(title: str, added: list[AddedPackage], expected: str) -> None:
    assert declaring(title, added) == expected


def test_an_installer_that_records_no_request() -> None:
    assert requested([HELPER]) == [HELPER]


@pytest.mark.parametrize("answer", [None, "x", [1], [{"name": 5}], {"a": []}, [{"name": "--index", "version": "1"}]])
def test_an_answer_that_is_none(answer: object) -> None:
    assert read(answer) == []
