"""Asks a site how full its storage tiers are: the script, and what its output says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yurt.backends import scripts
from yurt.model.quotas import KB, read_df, read_lfs, read_quota
from yurt.model.storage import StorageReport, TierPlace, TierUse


def script() -> str:
    return scripts.text("storage.sh", "shell")


def rows(places: Sequence[TierPlace]) -> bytes:
    """Return the input of the script."""
    return "".join(f"{each.name} {each.path}\n" for each in places if each.path).encode()


def read(mark: str, text: str, places: Sequence[TierPlace]) -> StorageReport:
    """Return the answer from the output of the script."""
    parts = _sections(mark, text)
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
    code = (parts.get("reported") or ["0"])[0]
    report = "\n".join(parts.get("report", [])).strip("\n")
    return StorageReport(tiers=tiers, report=report, failed="" if code == "0" else f"exit code {code}")


def _sections(mark: str, text: str) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    now: list[str] = []
    for line in text.split("\n"):
        if line.startswith(f"{mark} "):
            now = found[line[len(mark) + 1 :]] = []
        elif line.strip():
            now.append(line)
    return found
