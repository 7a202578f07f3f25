"""Files of pods that grow: the same rules as on a disk that a site shares, without its scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from yurt.model import layout
from yurt.model.growth import EVENTS, MLRUNS, OVERLAP, Growing, Kind, Reader


def grow(disks: Sequence[Path | None], growing: Sequence[Growing], kinds: Sequence[Kind], reader: Reader) -> None:
    """Pass the new bytes of files on the disks of pods to `reader`."""
    for at, (disk, each) in enumerate(zip(disks, growing, strict=True)):
        known = {one.path: one for one in each.known}
        for file in _files(disk, kinds) if disk is not None else ():
            path, about = str(file.relative_to(disk or file)), file.stat()
            seen, copy = f"{about.st_size}:{about.st_mtime_ns}", known.get(path)
            if copy is not None and copy.seen == seen:
                continue
            start = max(0, copy.size - OVERLAP) if copy is not None and about.st_size >= copy.size else 0
            reader.begin(at, path, seen, start)
            reader.more(file.read_bytes()[start:])
            reader.end()


def _files(disk: Path, kinds: Sequence[Kind]) -> Iterator[Path]:
    if "metrics" in kinds:
        yield from sorted(disk.glob("metrics*.jsonl"))
    for file in sorted(each for each in disk.rglob("*") if each.is_file()):
        mlflow = file.is_relative_to(disk / layout.OUTPUTS / MLRUNS) and "artifacts" not in file.parts
        if ("events" in kinds and EVENTS in file.name) or ("mlflow" in kinds and mlflow):
            yield file
    if (disk / layout.EXIT).exists():
        yield disk / layout.EXIT
