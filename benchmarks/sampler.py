"""Cost of the sampler in a job: share of one core and size of its file, on a node with many processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, table
from yurt.backends import scripts

PROCESSES, SECONDS = 1000, 120
SHARE, KB = 0.5, 32

START = """\
newline='
'
kind=local gpus=
"""


def stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def spent(session: int) -> float:
    """Return the CPU seconds of a session, with those of processes that it has waited for."""
    ticks = 0
    for each in Path("/proc").glob("[0-9]*"):
        try:
            fields = stat(int(each.name))
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / 100


def main() -> int:
    others = [subprocess.Popen(["sleep", "1000"]) for _each in range(PROCESSES)]
    job = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            script = START + scripts.text("sampler.sh", "job") + f"sample 1 {job.pid} {job.pid} {stat(job.pid)[19]}"
            begun = time.monotonic()
            sampler = subprocess.Popen(["sh", "-c", script], cwd=folder, start_new_session=True)
            time.sleep(SECONDS)
            share = 100 * spent(sampler.pid) / (time.monotonic() - begun)
            job.kill()
            job.wait()
            files = list(Path(folder).iterdir())
            size = sum(each.stat().st_size for each in files) / 1000
            sampler.kill()
            sampler.wait()
    finally:
        for each in [*others, job]:
            each.kill()
            each.wait()
    figures = [
        Figure(f"percent of a core, first {SECONDS} s", share, SHARE),
        Figure("  files", len(files), 1),
        Figure("  size of the file, KB", size, KB),
    ]
    return table(f"sampler, {PROCESSES:,} other processes on the node", figures)


if __name__ == "__main__":
    sys.exit(main())
