"""Opens on shared disks by 50 array tasks on alpha that import a package of 5,000 files, from there and from tmpdir."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path

from benchmarks.counts import ssh_executions
from benchmarks.figures import Figure, table
from benchmarks.opens import Opens
from benchmarks.side_by_side import YURT, Bench, alpha
from yurt.lab import Lab

FILES, TASKS = 5000, 50


def wheel(folder: Path) -> Path:
    """Write a wheel whose package imports all its modules."""
    folder.mkdir()
    names = [f"m{number:04}" for number in range(FILES - 1)]
    info = "many_files-1.0.dist-info"
    files = {
        "many_files/__init__.py": "".join(f"from many_files import {name}\n" for name in names),
        **{f"many_files/{name}.py": f"value = '{name}'\n" for name in names},
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: many-files\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    with zipfile.ZipFile(folder / "many_files-1.0-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return folder / "many_files-1.0-py3-none-any.whl"


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def run(place: str, *words: str) -> list[str]:
    return [YURT, "--context", "alpha", "--json", "run", "--time", "30m", "--env-place", place, *words, "train.py"]


def opens(bench: Bench, source: Path, place: str, prefix: str) -> int:
    """Return the opens of a sweep. Its tasks must have used an environment below `prefix`."""
    cluster = Lab().cluster("alpha")
    nodes = [cluster.pid(node.name) for node in cluster.spec.of_role("node")]
    with Opens(nodes, ["/lustre/scratch", "/home"]) as counted:
        sweep = json.loads(bench.call(run(place, "--cpus", "4", "--grid", f"seed=1..{TASKS}"), folder=source))
        bench.call([YURT, "wait", sweep["data"]["run"]["id"]], folder=source)
    logs = bench.call([YURT, "logs", sweep["data"]["run"]["id"], "--out"], folder=source).split()
    used = [word for word in logs if word.startswith("prefix=")]
    assert len(used) == TASKS and all(word.startswith(f"prefix={prefix}") for word in used), used[:3]
    return counted.count


def main() -> int:
    if os.geteuid() != 0:
        print("env_place: skipped; the lab needs root")
        return 0
    with alpha() as bench:
        source = bench.home / "project"
        source.mkdir()
        (source / "requirements.txt").write_text("many-files==1.0\n")
        (source / "train.py").write_text("import sys, many_files\nprint(f'prefix={sys.prefix}')\n")
        package = wheel(bench.home / "wheels")
        bench.environment |= {"UV_FIND_LINKS": str(package.parent), "UV_OFFLINE": "1"}
        bench.call([YURT, "lab", "index", str(package)])
        for place in ("scratch", "tmpdir"):  # built, then packed
            bench.call(run(place, "--wait"), folder=source)
        os.environ |= bench.environment
        shared = opens(bench, source, "scratch", "/lustre/scratch/")
        local = opens(bench, source, "tmpdir", "/scratch/job-")
        trips = [ssh_executions(bench, run(place), source) for place in ("scratch", "tmpdir")]
    figures = [
        Figure("opens on shared disks, env_place scratch", shared),
        Figure("  for each task", shared / TASKS),
        Figure("opens on shared disks, env_place tmpdir", local),
        Figure("  for each task", local / TASKS),
        Figure("  tmpdir, x scratch", local / shared, 1 / 20),
        Figure("ssh executions, env_place scratch", trips[0]),
        Figure("ssh executions, env_place tmpdir", trips[1], trips[0]),
    ]
    return table(f"{TASKS} array tasks, a package of {FILES:,} files", figures)


if __name__ == "__main__":
    sys.exit(main())
