"""Other tools to compare with, set up for the lab's alpha and installed in a cache outside the repository."""

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


class Unavailable(Exception):
    """A tool could not be installed. The benchmark continues without it."""


def _cache(name: str) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yurt-bench" / name


def _install(python: str, package: str, *options: str) -> None:
    argv = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *options, package]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{package} skipped: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")


class SlurmDeck:
    """SlurmDeck in its own virtual environment on this machine."""

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

    def call(self, *arguments: str) -> None:
        self.bench.call([self.program, *arguments], folder=self.folder, more=self.more)

    def submit(self, *options: str, command: Sequence[str] = ("true",)) -> float:
        """Return the seconds that one submission takes."""
        argv = [self.program, "submit", "--partition", "main", "--mem", "100M", "--time", "00:05:00", *options, "--"]
        return self.bench.seconds([*argv, *command], folder=self.folder, more=self.more)


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
    """submitit on the login node, in alice's home. It is pure Python, so the login node's python3 can run it."""

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
        """Return the seconds that a script with `count` array tasks takes, by the login node's clock."""
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
