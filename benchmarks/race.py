"""How long a job takes to claim a race by ssh, next to a fresh ssh connection over the same link, in turns in one run.

The budget: less than one fresh connection and three round trips over a connection that is open already.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, linked

ROUNDS = 15

TIME = """\
for word in %(rounds)s; do
  began=$(date +%%s%%N); %(fresh)s; fresh=$(($(date +%%s%%N) - began))
  began=$(date +%%s%%N); %(open)s; open=$(($(date +%%s%%N) - began))
  began=$(date +%%s%%N); %(claim)s; claim=$(($(date +%%s%%N) - began))
  echo "took $fresh $open $claim"
done
"""


def measure(bench: Bench) -> tuple[float, float, float]:
    """Return the seconds of a fresh connection, of a round trip over an open one, and of a claim, all on beta."""
    project = bench.home / "project"
    project.mkdir()
    (project / "yurt.yaml").write_text("name: race\n")
    race = bench.call([YURT, "-q", "run", "--race", "alpha,beta", "--hold", "true"], folder=project).strip()
    folder = f"/lustre/scratch/alice/yurt/races/{race}-key"
    files = f"-o UserKnownHostsFile={folder}/known_hosts -o HostKeyAlias=yurt-arbiter -i {folder}/key"
    keyed = f"ssh -n -T -o BatchMode=yes -o IdentitiesOnly=yes -o ControlPath=none {files} alice@alpha"
    shared = "-o ControlPath=/tmp/yurt-bench-%C"
    script = TIME % {
        "rounds": " ".join(map(str, range(ROUNDS))),
        "fresh": "ssh -n -T -o BatchMode=yes -o ControlPath=none alice@alpha true",
        "open": f"ssh -n -T {shared} alice@alpha true",
        "claim": f"{keyed} 'claim 0 1nfaaa0-aaaa0' > /dev/null",
    }
    opened = f"ssh -n -T -M -N -f {shared} alice@alpha"
    try:
        text = bench.call([*bench.ssh, "beta", f"{opened}; {script} ssh {shared} -O exit alice@alpha"])
    finally:
        subprocess.run([YURT, "cancel", race], env=bench.environment, capture_output=True, check=False)
    rows = [[int(word) / 1e9 for word in line.split()[1:]] for line in text.splitlines() if line.startswith("took ")]
    assert len(rows) == ROUNDS, text
    fresh, opened_trip, claim = (statistics.median(each) for each in zip(*rows, strict=True))
    return fresh, opened_trip, claim


def main() -> int:
    if os.geteuid() != 0 or not Path("/proc/self/stat").exists():
        print("race: SKIPPED: the lab needs root")
        return 0
    began = time.monotonic()
    with linked() as bench:
        fresh, trip, claim = measure(bench)
    print(f"race: measured in {time.monotonic() - began:.0f} s")
    allowed = fresh + 3 * trip
    return table(
        "claims",
        [
            Figure("a claim, relative to a fresh connection and three round trips", claim / allowed, 1.0),
            Figure("a claim, relative to a fresh connection", claim / fresh),
            Figure("a round trip over an open connection, relative to a fresh one", trip / fresh),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
