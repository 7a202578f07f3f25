"""Costs of a command other than time: ssh executions, transferred bytes, memory, files created on a site."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.side_by_side import Bench

PEAK = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def ssh_executions(bench: Bench, argv: list[str], folder: Path) -> int:
    """Return how many times a command executes ssh."""
    log = bench.home / "executions"
    shim = bench.home / "counting" / "ssh"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\necho >> {log}\nexec {shutil.which("ssh")} "$@"\n')
    shim.chmod(0o755)
    log.write_text("")
    bench.call(argv, folder=folder, more={"PATH": f"{shim.parent}:{os.environ['PATH']}"})
    return len(log.read_text())


def transferred(bench: Bench, argv: list[str], more: Mapping[str, str]) -> int:
    """Return the bytes that a command sends and receives through ssh, without ssh's own overhead."""
    log = bench.home / "transferred"
    shim = bench.home / "measuring" / "ssh"
    shim.parent.mkdir(exist_ok=True)
    measure = f"tee >(wc -c >> {log})"
    shim.write_text(f'#!/bin/bash\n{measure} | {shutil.which("ssh")} "$@" | {measure}\nexit ${{PIPESTATUS[1]}}\n')
    shim.chmod(0o755)
    log.write_text("")
    bench.call(argv, more={**more, "PATH": f"{shim.parent}:{os.environ['PATH']}"})
    while len(sizes := log.read_text().split()) < 2 or len(sizes) % 2:
        time.sleep(0.05)
    return sum(int(size) for size in sizes)


def peak_kib(bench: Bench, argv: list[str], folder: Path | None = None) -> int:
    """Return the peak memory of the largest process of a command, in KiB."""
    return int(bench.call([sys.executable, "-c", PEAK, *argv], folder=folder))


def files_changed(bench: Bench, storage: str, action: Callable[[], object]) -> int:
    """Return how many files an action creates or changes in a folder on alpha."""
    on_alpha = [*bench.ssh, "alice@alpha"]
    bench.call([*on_alpha, "touch .stamp; sleep 0.05"])
    action()
    return int(bench.call([*on_alpha, f"find {storage} ! -type d -newer .stamp | wc -l"]))
