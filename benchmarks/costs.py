"""What each verb costs a site: sessions, bytes, files and programs, as the table in docs/explanation/what-it-costs.md.

`python -m benchmarks costs` prints the table; `python -m benchmarks.costs --write` replaces the one on the page.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.login_node import Cost, LoginNode
from benchmarks.side_by_side import YURT, Bench, linked, project

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "what-it-costs.md"
BEGIN, END = "<!-- costs: begin -->\n", "<!-- costs: end -->\n"
HEAD = (
    "| command | connections | sessions | bytes sent | bytes received | files | programs there | programs here |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|\n"
)
FOLLOWED = 20
"""Seconds for which `logs -f` and `wait` are measured."""

TICKS = "for i in $(seq 600); do echo $i; sleep 1; done"
SERVER = """\
import http.server, socketserver, sys
class Server(socketserver.UnixStreamServer):
    def get_request(self):
        return super().get_request()[0], ("local", 0)
Server(sys.argv[1], http.server.SimpleHTTPRequestHandler).serve_forever()
"""


class Measurement:
    """Measures commands one after the other; those that fail are named and left out."""

    def __init__(self, bench: Bench, source: Path) -> None:
        self.bench, self.source = bench, source
        self.node = LoginNode(bench)
        self.rows: dict[str, Cost] = {}
        self.failed: list[str] = []

    def __call__(self, label: str, *words: str, seconds: float = 0) -> None:
        """Measure one command. `label` begins with the verb, as on the page."""
        time.sleep(3)  # a context that was queried a moment ago is not queried again
        try:
            self.rows[label] = self.node.measure([YURT, *words], self.source, seconds=seconds)
            print(label, *self.rows[label], file=sys.stderr, flush=True)
        except (RuntimeError, OSError) as error:
            self.failed.append(f"{label}: {error}")
            print(self.failed[-1], file=sys.stderr, flush=True)

    def quiet(self, *words: str) -> str:
        return self.bench.call([YURT, "-q", *words], folder=self.source).strip()


def submissions(measure: Measurement) -> None:
    bench, source = measure.bench, measure.source
    bench.call([YURT, "login", "--close", "alpha"])
    run = ("--context", "alpha", "run", "--time", "10m", "--hold")
    measure("login", "login", "alpha")
    measure("run, first of a project of 200 files", *run, "true")
    measure("run, code unchanged", *run, "true")
    (source / "d0" / "f0.py").write_text("edited = 1\n")
    measure("run, one file edited", *run, "true")
    measure("run of a sweep of 1,000 sets", *run, "--grid", "seed=1..1000", "true")
    measure("ps", "ps")
    measure("why", "why", "@last-sweep")
    measure("cancel of 400 tasks", "cancel", *(f"@last-sweep.{number}" for number in range(400)))
    measure("cancel of the sweep", "cancel", "@last-sweep")
    measure("run of a race, on one of its two clusters", "run", "--race", "alpha,beta", "--hold", "true")
    measure.quiet("cancel", "@last")


def results(measure: Measurement) -> None:
    run = ("--context", "alpha", "run", "--time", "10m")
    ticking = measure.quiet(*run, "sh", "-c", TICKS)
    ended = measure.quiet(*run, "--wait", "sh", "-c", "for n in 1 2 3; do seq 10000 > $YURT_OUTPUTS/$n; done; seq 100")
    until_running(measure, ticking)
    measure("show", "show", ended)
    measure("logs", "logs", ended)
    measure(f"logs -f, {FOLLOWED} s, a line each second", "logs", "-f", ticking, seconds=FOLLOWED)
    measure(f"wait, {FOLLOWED} s", "wait", ticking, seconds=FOLLOWED)
    measure("cancel of a run", "cancel", ticking)
    measure("fetch of 3 files", "fetch", ended)
    measure("fetch, nothing new", "fetch", ended)
    data = measure.bench.home / "data-file"
    data.write_bytes(random.Random(1).randbytes(10 << 20))
    measure("data put of 10 MiB", "data", "put", str(data), "alpha:/lustre/scratch/alice/copied/")
    measure("data get of 10 MiB", "data", "get", "alpha:/lustre/scratch/alice/copied/", f"{measure.bench.home}/came")


def until_running(measure: Measurement, run: str) -> None:
    end = time.monotonic() + 60
    while '"running"' not in measure.quiet("show", "--json", run) and time.monotonic() < end:
        time.sleep(0.5)


def sites(measure: Measurement) -> None:
    measure("cluster", "cluster", "alpha")
    measure("where", "where", "--context", "alpha")
    measure("storage", "storage", "alpha")
    measure.bench.environment["YURT_DATA_HOME"] = str(another(measure.bench))
    measure("import of all runs", "import", "alpha")
    measure("prune of finished runs", "--context", "alpha", "prune", "--unfetched", "--yes")
    measure.bench.environment["YURT_DATA_HOME"] = f"{measure.bench.home}/data"


def another(bench: Bench) -> Path:
    """Return the data folder of another machine of the user."""
    data = bench.home / "data-2"
    data.mkdir()
    (data / "lab").symlink_to(bench.home / "data" / "lab")
    return data


def nodes(measure: Measurement) -> None:
    (measure.source / "server.py").write_text(SERVER)
    words = ("--context", "alpha", "--no-browser", "--on-exit", "keep", "--name", "page")
    measure(f"serve, {FOLLOWED} s", "serve", *words, "--", "python3", "server.py", "{socket}", seconds=FOLLOWED)
    measure("serve list", "serve", "list")
    measure("serve stop", "serve", "stop", "page")
    measure("dev up", "dev", "up", "--context", "alpha", "--time", "10m")
    measure("dev status", "dev", "status")
    measure("dev down", "dev", "down", "--yes")


def homes(measure: Measurement) -> None:
    if shutil.which("unison") is None:
        measure.failed.append("home sync: Unison is not installed")
        return
    bench = measure.bench
    folder = bench.home / "home"
    folder.mkdir()
    (folder / ".yurt-home").touch()
    for number in range(100):
        (folder / f"file-{number}").write_text(f"{number}\n")
    bench.call([*bench.ssh, "alice@alpha", "mkdir synced && touch synced/.yurt-home"])
    file = bench.home / "config" / "homes.yaml"
    file.write_text(json.dumps({"hub": "local", "folder": str(folder), "places": {"alpha": {"root": "synced"}}}))
    file.chmod(0o600)
    bench.environment["UNISON"] = str(bench.home / "unison")
    (bench.home / "unison").mkdir(mode=0o700)
    measure("home sync, the first, of 100 files", "home", "sync", "--yes")
    (folder / "file-1").write_text("edited\n")
    measure("home sync, one file edited", "home", "sync", "--yes")


def markdown(rows: dict[str, Cost]) -> str:
    """Return the table; the verb of a row is in backquotes."""
    lines = []
    for label, cost in rows.items():
        verb, rest = re.fullmatch(
            r"((?:logs -f|\w+(?: (?:list|stop|up|down|status|put|get|sync))?))(.*)", label
        ).groups()  # type: ignore[union-attr]
        lines.append(f"| `{verb}`{rest} | " + " | ".join(f"{value:,}" for value in cost) + " |\n")
    return HEAD + "".join(lines)


def write(text: str) -> None:
    before = PAGE.read_text()
    begin, end = before.index(BEGIN) + len(BEGIN), before.index(END)
    PAGE.write_text(before[:begin] + text + before[end:])


PARTS: Sequence[Callable[[Measurement], None]] = (submissions, results, sites, nodes, homes)


def measured() -> Iterator[Measurement]:
    with linked() as bench:
        for name in ("alpha", "beta"):
            bench.call([YURT, "context", "probe", name])
        measure = Measurement(bench, project(bench.home / "project", files=200))
        for part in PARTS:
            part(measure)
        yield measure


def main() -> int:
    if os.geteuid() != 0 or shutil.which("strace") is None:
        print("costs: SKIPPED: the lab needs root, and strace is needed")
        return 0
    for measure in measured():
        text = markdown(measure.rows)
        print(text)
        for line in measure.failed:
            print(line, file=sys.stderr)
        if "--write" in sys.argv:
            write(text)
        return 1 if measure.failed else 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
