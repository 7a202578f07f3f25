"""Other tools that the benches compare with, each in a cache outside the repository; set up for the lab's alpha."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.side_by_side import Bench

SLURMDECK, SUBMITIT = "slurmdeck==0.4.*", "submitit==1.5.*"


class Absent(Exception):
    """A peer could not be installed: the bench goes on without it."""


def _cache(name: str) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yurt-bench" / name


def _install(python: str, package: str, *options: str) -> None:
    argv = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *options, package]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Absent(f"{package} is left out: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")


class SlurmDeck:
    """In a virtual environment of its own, on this side of ssh."""

    def __init__(self, bench: Bench, source: Path) -> None:
        cache = _cache("slurmdeck")
        if not (cache / "bin" / "slurmdeck").exists():
            subprocess.run([sys.executable, "-m", "venv", str(cache)], check=True)
            _install(str(cache / "bin" / "python"), SLURMDECK)
        self.bench, self.folder = bench, bench.home / "peer"
        shutil.copytree(source, self.folder)
        shim = bench.home / "shim" / "ssh"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {shlex.join(bench.ssh[1:])} "$@"\n')
        shim.chmod(0o755)
        home = bench.home / "peer-home"
        (home / "run").mkdir(parents=True, mode=0o700)
        self.more = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}
        self.more["PATH"] = f"{shim.parent}:{os.environ['PATH']}"
        self.program = str(cache / "bin" / "slurmdeck")
        base = "/lustre/scratch/alice/peer"
        self.call("remote", "add", "alpha", "--ssh-alias", "alpha", "--base", base, "--use")
        self.call("remote", "connect", "alpha")
        self.call("init", "--remote", "alpha")
        self.submit()

    def call(self, *words: str) -> None:
        self.bench.call([self.program, *words], folder=self.folder, more=self.more)

    def submit(self, *options: str, command: Sequence[str] = ("true",)) -> float:
        """Seconds from Enter to the end of one submission."""
        words = [self.program, "submit", "--partition", "main", "--mem", "100M", "--time", "00:05:00", *options, "--"]
        return self.bench.seconds([*words, *command], folder=self.folder, more=self.more)


MAP_ARRAY = """\
import submitit

def train(lr, seed):
    return lr * seed

executor = submitit.AutoExecutor(folder="submitit-logs/%j")
executor.update_parameters(timeout_min=5, slurm_partition="main", mem_gb=0.1, slurm_array_parallelism=COUNT)
jobs = executor.map_array(train, [number / COUNT for number in range(COUNT)], list(range(COUNT)))
assert len(jobs) == COUNT and jobs[-1].job_id
"""


class Submitit:
    """On the login node itself, below alice's home; pure Python, so that the node's own python3 runs it."""

    def __init__(self, bench: Bench) -> None:
        cache = _cache("submitit")
        if not (cache / "submitit").exists():
            _install(sys.executable, SUBMITIT, "--target", str(cache))
        self.bench = bench
        pack = (
            f"tar c -C {shlex.quote(str(cache))} . | {shlex.join(bench.ssh)} alice@alpha 'mkdir peer && tar x -C peer'"
        )
        bench.call(["sh", "-c", pack])
        self.map_array(2)

    def map_array(self, count: int) -> float:
        """Seconds on the node's own clock from the start to the end of a script that maps so many."""
        script = MAP_ARRAY.replace("COUNT", str(count))
        timed = f"""\
cat > map.py <<'END'
{script}END
export PYTHONPATH=peer
from=$(date +%s%N)
python3 map.py || exit
echo $(($(date +%s%N) - from))
"""
        return int(self.bench.call([*self.bench.ssh, "alice@alpha", timed]).split()[-1]) / 1e9
