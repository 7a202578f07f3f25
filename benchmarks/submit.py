"""From Enter to job id, whole commands over ssh to alpha, turn by turn beside `ssh sbatch`, tar and SlurmDeck 0.4."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.side_by_side import YURT, Bench, alpha, middle, project

TURNS, FIRST_TURNS = 15, 5
SBATCH = "sbatch --parsable --output=/dev/null --wrap=true"
PEER = "slurmdeck==0.4.*"


class SlurmDeck:
    """The peer, in a virtual environment of its own outside the repository, with ssh set up for the lab."""

    def __init__(self, bench: Bench, source: Path) -> None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yurt-bench" / "slurmdeck"
        if not (cache / "bin" / "slurmdeck").exists():
            subprocess.run([sys.executable, "-m", "venv", str(cache)], check=True)
            subprocess.run([str(cache / "bin" / "pip"), "install", "-q", PEER], check=True, capture_output=True)
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

    def submit(self) -> float:
        words = [self.program, "submit", "--partition", "main", "--mem", "100M", "--time", "00:05:00", "--", "true"]
        return self.bench.seconds(words, folder=self.folder, more=self.more)


def ssh_executions(bench: Bench, argv: list[str], folder: Path) -> int:
    """How often a command of yurt's starts ssh."""
    log = bench.home / "executions"
    shim = bench.home / "counting" / "ssh"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\necho >> {log}\nexec {shutil.which("ssh")} "$@"\n')
    shim.chmod(0o755)
    log.write_text("")
    bench.call(argv, folder=folder, more={"PATH": f"{shim.parent}:{os.environ['PATH']}"})
    return len(log.read_text())


def main() -> int:
    if os.geteuid() != 0:
        print("submit: left out, it needs the lab and the lab needs root")
        return 0
    with alpha() as bench:
        source = project(bench.home / "project")
        run = [YURT, "--context", "alpha", "run", "--time", "5m", "true"]
        bench.call(run, folder=source)
        peer = SlurmDeck(bench, source)
        rows: dict[str, list[float]] = {name: [] for name in ("plain", "multiplexed", "unchanged", "edited", "peer")}
        plain = [*bench.ssh, "alice@alpha", SBATCH]
        shared = [*bench.ssh, "-S", f"{bench.home}/own", "alice@alpha", SBATCH]
        bench.call([*bench.ssh, "-M", "-N", "-f", "-S", f"{bench.home}/own", "alice@alpha"])
        for turn in range(TURNS):
            rows["plain"].append(bench.seconds(plain))
            rows["unchanged"].append(bench.seconds(run, folder=source))
            rows["multiplexed"].append(bench.seconds(shared))
            (source / "d0" / "f0.py").write_text(f"turn = {turn} # {time.time()}\n")
            rows["edited"].append(bench.seconds(run, folder=source))
            if turn % 3 == 0:
                rows["peer"].append(peer.submit())
        subprocess.run(
            [*bench.ssh, "-S", f"{bench.home}/own", "-O", "exit", "alice@alpha"], capture_output=True, check=False
        )
        tar, first = [], []
        for turn in range(FIRST_TURNS):
            command = f"tar c -C {source} . | {shlex.join(bench.ssh)} alice@alpha 'mkdir t{turn} && tar x -C t{turn}'"
            tar.append(bench.seconds(["sh", "-c", command]) + bench.seconds(plain))
            fresh = bench.home / f"fresh{turn}"
            shutil.copytree(source, fresh)
            first.append(bench.seconds(run, folder=fresh))
        executions = ssh_executions(bench, run, source)
    unit = middle(rows["plain"])
    print(f"\n{'from Enter to job id, 2,000 files':38} {'of ssh sbatch':>13} {'budget':>7}")
    for label, times, budget in (
        ("ssh sbatch", rows["plain"], ""),
        ("ssh sbatch, multiplexed", rows["multiplexed"], ""),
        ("yurt run, code unchanged", rows["unchanged"], "1.5"),
        ("yurt run, one file edited", rows["edited"], "2.5"),
        ("SlurmDeck 0.4, code unchanged", rows["peer"], ""),
        ("tar | ssh tar, and ssh sbatch", tar, ""),
        ("yurt run, first time", first, ""),
    ):
        print(f"{label:38} {middle(times) / unit:13.2f} {budget:>7}")
    print(f"{'yurt run, first time, of tar':38} {middle(first) / middle(tar):13.2f} {'3':>7}")
    print(
        f"{'yurt run unchanged, of SlurmDeck':38} {middle(rows['unchanged']) / middle(rows['peer']):13.2f} {'0.25':>7}"
    )
    print(f"{'ssh executions, unchanged':38} {executions:13d} {'2':>7}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
