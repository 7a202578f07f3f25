"""Reads the files in a tar file in memory; several times faster than `tarfile` for thousands of small files. Pure."""

from __future__ import annotations

BLOCK = 512


def read(archive: bytes) -> tuple[dict[str, bytes], bool]:
    """Return the contents of regular files by name, in order, and whether the archive is complete.

    An incomplete file at the end is left out.
    """
    contents, _times, complete = read_with_times(archive)
    return contents, complete


def read_with_times(archive: bytes) -> tuple[dict[str, bytes], dict[str, float], bool]:
    """Return the same, with the times of the last change by name."""
    contents: dict[str, bytes] = {}
    times: dict[str, float] = {}
    at, long_name = 0, ""
    while True:
        header = archive[at : at + BLOCK]
        if len(header) < BLOCK:
            return contents, times, False
        if not header[0]:
            return contents, times, True
        try:
            size, changed = _number(header[124:136]), float(_number(header[136:148]))
        except ValueError:  # not a tar file
            return contents, times, False
        start = at + BLOCK
        body = archive[start : start + size]
        if len(body) < size:
            return contents, times, False
        at = start + (size + BLOCK - 1) // BLOCK * BLOCK
        kind = header[156:157]
        if kind == b"L":  # GNU: the name of the next file
            long_name = _text(body)
        elif kind == b"x":  # POSIX: settings of the next file
            long_name = _pax_path(body) or long_name
        elif kind in (b"0", b"\0"):
            name = long_name or _name(header)
            contents[name], times[name], long_name = body, changed, ""
        elif kind == b"1" and (first := _text(header[157:257])) in contents:  # another name of a file before it
            name = long_name or _name(header)
            contents[name], times[name], long_name = contents[first], changed, ""
        else:
            long_name = ""


def _name(header: bytes) -> str:
    name, prefix = _text(header[:100]), ""
    if header[257:263] == b"ustar\0":  # GNU's own format uses these bytes for other values
        prefix = _text(header[345:500])
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="surrogateescape")


def _number(field: bytes) -> int:
    if field[0] & 0x80:  # GNU: binary, of a large file
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    number = int(field.strip(b" \0") or b"0", 8)
    if number < 0:  # the reader would go back
        raise ValueError(number)
    return number


def _pax_path(body: bytes) -> str:
    """Return the path in extended settings, which are records "LENGTH KEY=VALUE\\n"."""
    at = 0
    while at < len(body):
        space = body.find(b" ", at)
        end = at + int(body[at:space] or b"0") if space > 0 else at
        if end <= at:
            return ""
        key, _, value = body[space + 1 : end - 1].partition(b"=")
        if key == b"path":
            return value.decode(errors="surrogateescape")
        at = end
    return ""
