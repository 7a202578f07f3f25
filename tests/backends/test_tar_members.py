"""Tests `tar_members` against `tarfile`: all formats, long names, other names of a file, archives cut anywhere."""

from __future__ import annotations

import io
import tarfile

import pytest

from yurt.backends.job import tar_members

FILES = {
    "/projects/p/runs/a/run.json": b'{"id":"a"}',
    "/projects/p/runs/a/empty": b"",
    f"/{'long' * 40}/out.log": b"x" * 512,
    f"/{'deep/' * 30}err.log": bytes(range(256)) * 5,
    "/é/metrics.jsonl": b"1\n",
}


def archive(kind: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as tar:
        for name, content in FILES.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1_700_000_000
            tar.addfile(info, io.BytesIO(content))
        folder = tarfile.TarInfo("/folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        link = tarfile.TarInfo("/another")
        link.type, link.linkname = tarfile.LNKTYPE, next(iter(FILES))
        tar.addfile(link)
    return made.getvalue()


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_the_same_files(kind: int) -> None:
    contents, times, complete = tar_members.read_with_times(archive(kind))
    assert (contents, complete) == ({**FILES, "/another": next(iter(FILES.values()))}, True)
    assert list(contents) == [*FILES, "/another"]
    assert times["/é/metrics.jsonl"] == 1_700_000_000


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_cut_anywhere(kind: int) -> None:
    """What is there is complete."""
    whole = archive(kind)
    end = len(whole.rstrip(b"\0"))
    for at in range(0, end, 100):
        contents, complete = tar_members.read(whole[:at])
        assert not complete
        assert all(FILES.get(name, content) == content for name, content in contents.items())


def test_something_else() -> None:
    for text in (b"", b"tar: not found\n", b"x" * 2000):
        assert tar_members.read(text) == ({}, False)


def test_a_negative_size_does_not_lead_back() -> None:
    header = bytearray(512)
    header[:1], header[124:136], header[156:157] = b"a", b"-0000001000\0", b"0"
    assert tar_members.read(bytes(header) + bytes(2048)) == ({}, False)
