"""What a command of yurt's takes besides time: how often it starts ssh, its memory, the files it leaves on a site."""

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
    """How often a command starts ssh."""
    log = bench.home / "executions"
    shim = bench.home / "counting" / "ssh"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\necho >> {log}\nexec {shutil.which("ssh")} "$@"\n')
    shim.chmod(0o755)
    log.write_text("")
    bench.call(argv, folder=folder, more={"PATH": f"{shim.parent}:{os.environ['PATH']}"})
    return len(log.read_text())


def carried(bench: Bench, argv: list[str], more: Mapping[str, str]) -> int:
    """How many bytes ssh is given and gives back, without what encrypts them."""
    log = bench.home / "carried"
    shim = bench.home / "weighing" / "ssh"
    shim.parent.mkdir(exist_ok=True)
    weigh = f"tee >(wc -c >> {log})"
    shim.write_text(f'#!/bin/bash\n{weigh} | {shutil.which("ssh")} "$@" | {weigh}\nexit ${{PIPESTATUS[1]}}\n')
    shim.chmod(0o755)
    log.write_text("")
    bench.call(argv, more={**more, "PATH": f"{shim.parent}:{os.environ['PATH']}"})
    while len(sizes := log.read_text().split()) < 2 or len(sizes) % 2:
        time.sleep(0.05)
    return sum(int(size) for size in sizes)


def peak_kib(bench: Bench, argv: list[str], folder: Path | None = None) -> int:
    """The memory of the largest of the processes that a command is."""
    return int(bench.call([sys.executable, "-c", PEAK, *argv], folder=folder))


def files_since(bench: Bench, storage: str, what: Callable[[], object]) -> int:
    """How many files a command makes below a folder of alpha's, or changes there."""
    far = [*bench.ssh, "alice@alpha"]
    bench.call([*far, "touch .stamp; sleep 0.05"])
    what()
    return int(bench.call([*far, f"find {storage} ! -type d -newer .stamp | wc -l"]))
