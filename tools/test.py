"""`make test`: set-up, lint, tests. What cannot run on this machine is left out, and said."""

from __future__ import annotations

import os
import subprocess
import sys
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
        return subprocess.call([*PYTEST, *sys.argv[1:]])
    plain = subprocess.call([*PYTEST, "-m", "not lab", *sys.argv[1:]])
    if packages.may_be_root() and packages.lab_packages_there():
        print("test: the lab's tests run as root, by sudo", flush=True)
        as_root = packages.as_root(["env", "PYTHONDONTWRITEBYTECODE=1", *PYTEST])
        return subprocess.call([*as_root, "-m", "lab", "-p", "no:cacheprovider", *sys.argv[1:]]) or plain
    print("test: LEFT OUT: every test on real Slurm (marked 'lab'): they need root, or sudo without a question")
    return plain


if __name__ == "__main__":
    sys.exit(main())
