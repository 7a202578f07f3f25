"""Time of one operation on a site over an open ssh master, compared with `ssh -S … true`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.figures import Figure, table

TURNS = 60
BUDGET = 0.5


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def quiet(argv: list[str]) -> None:
    subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=True)


def main() -> int:
    if os.geteuid() != 0:
        print("connection: skipped; the lab needs root")
        return 0
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"YURT_CONFIG_HOME": f"{home}/c", "YURT_DATA_HOME": f"{home}/d", "YURT_RUNTIME_DIR": f"{home}/r"}
        from yurt.lab import Lab
        from yurt.transport.ssh import SshHost

        lab = Lab()
        lab.up(["alpha"])
        try:
            host = SshHost("alpha", "alice@alpha", ["-F", str(lab.instance.client / "ssh_config")])
            host.run("true")
            bare = ["ssh", *host.master.options, "-S", str(host.master.socket), host.destination, "true"]
            plain = ["ssh", *host.master.options, host.destination, "true"]
            rows: dict[str, list[float]] = {"ssh -S … true": [], "yurt, true": []}
            for _turn in range(TURNS):
                rows["ssh -S … true"].append(seconds(lambda: quiet(bare)))
                rows["yurt, true"].append(seconds(lambda: host.run("true")))
            rows["ssh true, no master"] = [seconds(lambda: quiet(plain)) for _ in range(5)]
            baseline = statistics.median(rows["ssh -S … true"])
            figures = [
                Figure(name, statistics.median(times) / baseline, BUDGET if name == "yurt, true" else None)
                for name, times in rows.items()
            ]
            return table("one operation on alpha", figures, "x ssh -S")
        finally:
            host.master.close()
            lab.down(wipe=True)


if __name__ == "__main__":
    sys.exit(main())
