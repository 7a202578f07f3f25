"""A Slurm that yurt does not support or does not know: add, probe and doctor say so, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.laptop import Laptop
from yurt.lab import Lab

LINE = "[ ! -d /tmp/other-slurm ] || PATH=/tmp/other-slurm:$PATH\n"


@pytest.fixture
def has(lab: Lab) -> Iterator[Callable[[str], None]]:
    """Let the programs of alpha print another version; the cluster is the same."""
    root = Path(f"/proc/{lab.cluster('alpha').pid('login')}/root")
    folder, bashrc = root / "tmp" / "other-slurm", root / "home" / "alice" / ".bashrc"
    before = bashrc.read_text()

    def prints(version: str) -> None:
        folder.mkdir(exist_ok=True)
        for program in ("scontrol", "sinfo"):
            found = r"s/\(slurm[a-z-]*\|SLURM_VERSION *=\) [0-9.]*/\1 " + version + "/"
            (folder / program).write_text(f"#!/bin/sh\n/usr/bin/{program} \"$@\" | sed '{found}'\n")
            (folder / program).chmod(0o755)

    bashrc.write_text(LINE + before)
    yield prints
    bashrc.write_text(before)
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()


@pytest.mark.lab
def test_said_once(laptop: Laptop, has: Callable[[str], None]) -> None:
    for version, said in (("19.05.8", "19.05.8 is older than 20.11"), ("27.05.1", "27.05.1 is newer than 26.05")):
        has(version)
        probed = laptop.quick("context", "probe", "alpha")
        assert probed.code == 0 and (probed.out + probed.err).count(said) == 1, probed
        doctor = laptop.quick("doctor", "alpha")
        assert (doctor.out + doctor.err).count(said) == 1, doctor
    run = laptop.quick("--context", "alpha", "run", "--no-snapshot", "true")
    listed = laptop.quick("ps")
    assert "submitted" in run.out and "newer" not in run.out + run.err + listed.out + listed.err, (run, listed)
    assert laptop.quick("wait", "-").code == 0
