"""What the lab costs: time to ready (beside a fixed piece of work in the same run), memory, idle CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

YURT = str(Path(sys.executable).parent / "yurt")


def seconds(argv: list[str], environment: dict[str, str]) -> float:
    started = time.monotonic()
    subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.monotonic() - started


def main() -> int:
    if os.geteuid() != 0:
        print("lab: left out, it needs root")
        return 0
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "YURT_CONFIG_HOME": f"{home}/config", "YURT_DATA_HOME": f"{home}/data"}
        yardstick = seconds([sys.executable, "-c", "sum(i * i for i in range(10**7))"], environment)
        print(f"\n{'lab, both clusters':26} {'seconds':>8} {'of yardstick':>13} {'budget':>8}")
        print(f"{'yardstick (10M squares)':26} {yardstick:8.2f} {1:13.1f}")
        up, down = [YURT, "lab", "up", "--json"], [YURT, "lab", "down"]
        rows = {"first up": (up, 25), "up again": (up, None), "down": (down, None), "up after down": (up, 10)}
        for name, (argv, budget) in rows.items():
            took = seconds(argv, environment)
            print(f"{name:26} {took:8.2f} {took / yardstick:13.1f} {f'{budget} s' if budget else '':>8}")
        program = (
            "import msgspec as m; from yurt.verbs.lab import figures as f; print(m.json.encode(f(seconds=20)).decode())"
        )
        time.sleep(20)
        idle = json.loads(subprocess.check_output([sys.executable, "-c", program], env=environment))
        print(f"{'memory':26} {idle['memory'] / (1 << 20):8.0f} MiB {'':>9} 300 MiB")
        print(f"{'idle CPU of one core':26} {idle['idle_percent']:8.2f} % {'':>11}   1 %")
        subprocess.run([YURT, "lab", "down", "--wipe"], env=environment, capture_output=True, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
