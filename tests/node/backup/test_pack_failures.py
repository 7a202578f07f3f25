"""Why a pack could not be written: one sentence, whichever program of the pipe failed."""

from __future__ import annotations

import io

import pytest

from yurt.node.backup.pack_write import _failure

FULL = b"zstd: error 70 : Write error : cannot write block : No space left on device\n"


@pytest.mark.parametrize(
    ("packed", "archived", "said", "shown"),
    [
        (70, -13, FULL, "No space left on device"),
        (-9, -13, b"", "zstd failed: it was killed by signal 9"),
        (0, -9, b"", "tar failed: it was killed by signal 9"),
        (0, 2, b"tar: a: bad\n", "tar failed: tar: a: bad"),
        (1, 0, b"", "zstd failed: it gave no reason"),
    ],
)
def test_the_reason_of_a_failure(packed: int, archived: int, said: bytes, shown: str) -> None:
    found = _failure("p1-x.tar.zst", "zstd", packed, archived, io.BytesIO(said))
    assert shown in str(found)
    assert isinstance(found, OSError) == (said == FULL)
