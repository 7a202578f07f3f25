"""What the holder of a dev node reports, in words."""

from __future__ import annotations

import pytest

from yurt.dev.holder import HolderStatus, Progress, phase_text, read


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (HolderStatus(phase="restoring", progress=Progress("read", 4, 10)), "restoring 40 %"),
        (HolderStatus(phase="restoring", note="restoring v3"), "restoring"),
        (HolderStatus(note="waiting for n1"), "starting: waiting for n1"),
        (HolderStatus(phase="ready", note="old", progress=Progress("read", 4, 10)), "ready"),
    ],
)
def test_phase_text(status: HolderStatus, text: str) -> None:
    assert phase_text(status) == text


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"phase": 3}'])
def test_not_readable(content: bytes | None) -> None:
    assert read(content) is None
