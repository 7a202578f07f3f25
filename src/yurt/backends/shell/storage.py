"""Asks a site how full its storage tiers are: the script, and what its output says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yurt.backends import scripts
from yurt.model.quotas import KB, read_df, read_lfs, read_quota
from yurt.model.site_words import whole
from yurt.model.storage import OwnUse, StorageReport, TierPlace, TierUse


def script() -> str:
    return scripts.text("tier_use.sh") + scripts.text("storage.sh")


def rows(places: Sequence[TierPlace]) -> bytes:
    """Return the input of the script."""
    return "".join(f"{each.name} {each.path}\n" for each in places if each.path).encode()


def read(mark: str, text: str, places: Sequence[TierPlace]) -> StorageReport:
    """Return the answer from the output of the script."""
    parts = sections(mark, text)
    code = (parts.get("reported") or ["0"])[0]
    report = "\n".join(parts.get("report", [])).strip("\n")
    own = parts.get("own", [])
    return StorageReport(
        tiers=uses(parts, places),
        report=report,
        failed="" if code == "0" else f"exit code {code}",
        own=sorted((_own(line) for line in own if line != "late"), key=lambda each: -each.bytes),
        own_partly="late" in own,
    )


def uses(parts: Mapping[str, list[str]], places: Sequence[TierPlace]) -> list[TierUse]:
    """Return how full these tiers are, from the sections of an output."""
    quotas = read_quota("\n".join(parts.get("quota", [])))
    tiers = []
    for place in places:
        said = parts.get(f"tier {place.name}", [])
        device, total, free = read_df(parts.get(f"df {place.name}", []))
        _device, files_total, files_free = read_df(parts.get(f"files {place.name}", []))
        of_lustre = read_lfs("\n".join(parts.get(f"lfs {place.name}", [])))
        quota = of_lustre or quotas.get(device)
        kind = parts.get(f"type {place.name}", [])
        tiers.append(
            TierUse(
                name=place.name,
                there="there" in said,
                writable="writable" in said,
                filesystem=kind[0] if kind else "",
                device=device,
                total=None if total is None else total * KB,
                free=None if free is None else free * KB,
                files_total=files_total or None,
                files_free=files_free if files_total else None,
                quota=quota,
                source="lfs quota" if of_lustre else "quota" if quota else "",
            )
        )
    return tiers


def _own(line: str) -> OwnUse:
    kind, size, files = line.split()
    return OwnUse(kind=kind, bytes=whole(size) * KB, files=whole(files))


def sections(mark: str, text: str) -> Mapping[str, list[str]]:
    """Return the lines of each section of an output."""
    found: dict[str, list[str]] = {}
    now: list[str] = []
    for line in text.split("\n"):
        if line.startswith(f"{mark} "):
            now = found[line[len(mark) + 1 :]] = []
        elif line.strip():
            now.append(line)
    return found
