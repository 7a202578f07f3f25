"""`make test`: set-up, lint, tests. What cannot run on this machine is left out, and said."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import lint
import packages

PYTEST = [sys.executable, "-m", "pytest"]


def main() -> int:
    if packages.main():
        return 1
    if lint.main():
        return 1
    if os.geteuid() == 0:
        return side_by_side([*PYTEST, "-m", "lab"])
    if packages.may_be_root() and packages.lab_packages_there():
        print("test: the lab's tests run as root, by sudo", flush=True)
        return side_by_side(packages.as_root(["env", "PYTHONDONTWRITEBYTECODE=1", *PYTEST, "-m", "lab"]))
    print("test: LEFT OUT: every test on real Slurm (marked 'lab'): they need root, or sudo without a question")
    return subprocess.call([*PYTEST, "-m", "not lab", *sys.argv[1:]])


def side_by_side(lab: list[str]) -> int:
    """Both kinds of tests at once: those on the lab mostly wait. What the others print is shown when they are done."""
    with tempfile.TemporaryFile() as said:
        print("test: those on the lab, shown as they go; the others beside them, shown at the end", flush=True)
        # Where faults are to meet a moment, those on the lab go first.
        words = ["nice", "-n", "10", *PYTEST, "-m", "not lab", "-p", "no:cacheprovider", *sys.argv[1:]]
        others = subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT)
        try:
            first = subprocess.call([*lab, "-p", "no:cacheprovider", *sys.argv[1:]])
            second = others.wait()
        except BaseException:
            others.terminate()
            others.wait()
            raise
        said.seek(0)
        print("test: those that need no lab", flush=True)
        for line in said:
            print(line.decode(errors="replace"), end="", flush=True)
    nothing = 5  # the exit code where no test was chosen: a path may hold only one kind
    return next((code for code in (first, second) if code not in (0, nothing)), min(first, second))


if __name__ == "__main__":
    sys.exit(main())
