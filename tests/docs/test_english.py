"""Plain English: turns of phrase that CONTRIBUTING.md replaces do not come back, in strings, comments or docs."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted(file for file in (ROOT / "src").rglob("*") if file.suffix in (".py", ".sh"))
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
AVOIDED = re.compile(
    r"\b(?:shall|whoever|whereof|thereof|anew|meanwhile|once more|all the same|fell silent|far side|the wish|need be"
    r"|go(?:es)? out|went out|gone out|travels?|comes? home|brought home|says something of|can only be one|left alone"
    r"|mends?|mended|is told|was told|are told|were told|told yet|forgot|forgotten|moves? on"
    r"|how (?:it|they|runs) stands?|may not hold|did not arrive whole)\b|' is no (?!longer)",
    re.IGNORECASE,
)


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings and comments of a source file, or the lines of a page, with their line numbers."""
    text = file.read_text()
    if not AVOIDED.search(text):
        return  # reading tokens takes much longer
    if file.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                yield token.start[0], token.string
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if file.suffix == ".md" or "#" in line:
                yield number, line


def test_plain_english() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {hit[0]}"
        for file in (*SOURCES, *PAGES)
        for line, text in prose(file)
        for hit in AVOIDED.finditer(text)
    ]
    assert not found


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("'x' is no state", "' is no "),
        ("'x' is no longer there", ""),
        ("the run goes out with the next command", "goes out"),
        ("cancellation pending", ""),
    ],
)
def test_the_check_itself(text: str, hit: str) -> None:
    found = AVOIDED.search(text)
    assert (found[0] if found else "") == hit
