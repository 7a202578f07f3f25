"""How long `ssh yurt-dev true` takes, next to plain ssh to the same node on a warm connection to its login host.

On alpha, next to the node's own sshd. On beta, whose nodes accept no ssh, next to the same sshd that srun starts.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import sys
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, linked

ROUNDS = 15


def started(bench: Bench, context: str) -> list[str]:
    """Start a dev node and connect to it once; return the command that is measured."""
    bench.call([YURT, "--context", context, "dev", "up", context, "--node", "n1", "--cpus", "1", "--time", "20m"])
    command = ["ssh", "-F", str(bench.home / "config" / "ssh_config"), f"yurt-dev-{context}", "true"]
    bench.call(command)
    return command


def login(bench: Bench, context: str) -> list[str]:
    """Open a connection to a login host; return ssh on it."""
    shared = ["-S", str(bench.home / f"m-{context}")]
    bench.call([*bench.ssh, *shared, "-M", "-f", "-N", "-o", "ControlPersist=yes", f"alice@{context}"])
    return [*bench.ssh, *shared, "-T"]


def to_the_node(bench: Bench) -> list[str]:
    through = shlex.join([*login(bench, "alpha"), "-W", "n1:22", "alice@alpha"])
    return [*bench.ssh, "-o", f"ProxyCommand={through}", "alpha-n1", "true"]


def by_hand(bench: Bench) -> list[str]:
    link = json.loads((bench.home / "config" / "dev" / "link-beta.json").read_text())
    srun = f"srun --jobid={link['job']} --quiet --overlap --mem=0 --unbuffered --input=0 {link['sshd']}"
    through = shlex.join([*login(bench, "beta"), "alice@beta", srun]).replace("%", "%%")
    return ["ssh", "-F", str(bench.home / "config" / "ssh_config"), "-o", f"ProxyCommand={through}", "yurt-dev-beta"]


def main() -> int:
    if os.geteuid() != 0 or not Path("/proc/self/stat").exists():
        print("dev_ssh: SKIPPED: the lab needs root")
        return 0
    figures = []
    with linked() as bench:
        file = bench.home / "config" / "contexts.yaml"
        file.write_text(file.read_text().replace("  beta:\n", "  beta:\n    dev_sshd: true\n"))
        for context in ("alpha", "beta"):
            ours = started(bench, context)
            theirs = to_the_node(bench) if context == "alpha" else [*by_hand(bench), "true"]
            taken = [(bench.seconds(ours), bench.seconds(theirs)) for _round in range(ROUNDS + 2)][2:]
            mine, plain = (statistics.median(each) for each in zip(*taken, strict=True))
            print(f"dev_ssh: {context}: {mine * 1000:.0f} ms, by plain ssh {plain * 1000:.0f} ms", flush=True)
            figures.append(Figure(f"ssh yurt-dev true, {context}", mine / plain, 1.5))
            bench.call([YURT, "dev", "down", context, "--now", "--yes"])
    return table("ssh to a dev node", figures, "x plain ssh")


if __name__ == "__main__":
    sys.exit(main())
