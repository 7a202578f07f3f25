"""yurt.log: complete lines of JSON for any value and after any failure."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import pytest

from tests.node.conftest import Run


def test_a_line_for_each_call(run: Run) -> None:
    before = time.time()
    run("import yurt\nfor step in range(3): yurt.log(step=step, loss=0.5 / (step + 1), note='a b')\nyurt.log(9, x=1)")
    rows = run.rows()
    assert [row["step"] for row in rows] == [0, 1, 2, 9]
    assert [row.get("loss") for row in rows] == [0.5, 0.25, 0.5 / 3, None]
    assert list(rows[0]) == ["time", "step", "loss", "note"]
    assert before - 1 <= rows[0]["time"] <= rows[-1]["time"] <= time.time() + 1
    assert stat.S_IMODE(run.metrics.stat().st_mode) == 0o600


def test_each_line_is_there_at_once(run: Run) -> None:
    process = run.start("import os, yurt\nyurt.log(loss=1)\nos.kill(os.getpid(), 9)")
    process.communicate()
    assert [row["loss"] for row in run.rows()] == [1]


VALUES = """\
import yurt, decimal, enum, fractions, datetime
class Scalar:
    def __init__(self, value): self.value = value
    def item(self): return self.value
class Array:
    def item(self): raise ValueError("more than one")
    def tolist(self): return [1, [float("nan"), 2.5]]
class Bad:
    def __str__(self): raise RuntimeError("no")
class Float(float): pass
class Kind(enum.IntEnum): A = 3
again = []
again.append(again)
yurt.log(step=Scalar(4), nan=float("nan"), up=float("inf"), down=-float("inf"), scalar=Scalar(2.5),
    scalar_nan=Scalar(float("nan")), array=Array(), own=Float("inf"), kind=Kind.A, yes=True, none=None, big=2 ** 70,
    decimal=decimal.Decimal("0.5"), text="\\u00fc \\U0001f600 \\u2028 \\n", half="\\udcff",
    nested={1: (1, float("nan"))}, day=datetime.date(2020, 1, 2), complex=Scalar(1j), bytes=b"x",
    **{"val/loss \\u00fc \\udcff": 1})
yurt.log(again=again)
yurt.log(time=1, rank=2)
yurt.log(bad=Bad())
yurt.log(bad=Bad())
yurt.log(after=1)
"""


def test_every_kind_of_value(run: Run) -> None:
    out, err = run(VALUES)
    row, again, reserved, after = run.rows()
    assert out == "" and err == "yurt: cannot write metrics: no\n"
    assert {key: value for key, value in row.items() if key != "time"} == {
        "step": 4,
        "nan": "NaN",
        "up": "Infinity",
        "down": "-Infinity",
        "scalar": 2.5,
        "scalar_nan": "NaN",
        "array": [1, ["NaN", 2.5]],
        "own": "Infinity",
        "kind": 3,
        "yes": True,
        "none": None,
        "big": 2**70,
        "decimal": 0.5,
        "text": "ü \U0001f600 \u2028 \n",
        "half": "\\udcff",
        "nested": {"1": [1, "NaN"]},
        "day": "2020-01-02",
        "complex": "1j",
        "bytes": "b'x'",
        "val/loss ü \\udcff": 1,
    }
    assert [float(row[name]) for name in ("up", "down")] == [float("inf"), -float("inf")]
    assert row["yes"] is True and "[...]" in json.dumps(again)
    assert reserved["time"] > 1e9 and (reserved["time_"], reserved["rank_"]) == (1, 2) and "rank" not in reserved
    assert after["after"] == 1


def test_numbers_of_numpy(run: Run) -> None:
    import numpy

    where = str(Path(numpy.__file__).parents[1])
    run(
        f"import sys; sys.path.append({where!r})\nimport numpy as n, yurt\n"
        "yurt.log(step=n.int64(3), a=n.float32(0.5), b=n.array(2), c=n.array([1., n.nan]))\n"
        "yurt.log(d=n.bool_(True), e=n.float64('nan'))"
    )
    first, second = run.rows()
    row = {**first, **second}
    assert [row[key] for key in ("step", "a", "b", "c", "d", "e")] == [3, 0.5, 2, [1.0, "NaN"], True, "NaN"]


@pytest.mark.parametrize("after", [0.05, 0.2, 0.6])
def test_killed_in_the_middle(run: Run, after: float) -> None:
    process = run.start("import yurt\nfor step in range(10**6):\n    yurt.log(step=step, loss=1.5, name='x' * 50)")
    while not run.metrics.exists():
        time.sleep(0.001)
    time.sleep(after)
    process.kill()
    process.communicate()
    whole, newline, _part = run.metrics.read_bytes().rpartition(b"\n")  # a kill may come between two pages of a write
    run.metrics.write_bytes(whole + newline)
    assert [row["step"] for row in run.rows()] == list(range(len(run.rows()))) and len(run.rows()) > 10


def test_a_torn_last_line_spoils_no_other(run: Run) -> None:
    run.metrics.write_bytes(b'{"time":1,"step":0}\n{"time":2,"st')
    run("import yurt\nyurt.log(step=1)\nyurt.log(step=2)")
    lines = run.metrics.read_bytes().split(b"\n")
    assert lines[:2] == [b'{"time":1,"step":0}', b'{"time":2,"st'] and lines[4:] == [b""]
    assert [json.loads(line)["step"] for line in lines[2:4]] == [1, 2]


MANY = """\
import os, threading, yurt
def work(who):
    for step in range(500):
        yurt.log(step=step, who=who, filler="x" * (step % 300))
children = []
if {first}:
    yurt.log(step=-1, who=-1)
for number in range(4):
    child = os.fork()
    if child == 0:
        threads = [threading.Thread(target=work, args=(number * 10 + each,)) for each in range(3)]
        for each in threads: each.start()
        for each in threads: each.join()
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("first", [True, False])
def test_forks_and_threads(run: Run, first: bool) -> None:
    run(MANY.format(first=first))
    rows = [row for row in run.rows() if row["step"] >= 0]
    assert len(rows) == 4 * 3 * 500
    for number in range(4):
        for each in range(3):
            steps = [row["step"] for row in rows if row["who"] == number * 10 + each]
            assert steps == list(range(500))


def test_tasks_of_a_job(run: Run) -> None:
    script = "import yurt\nfor step in range(2000):\n    yurt.log(step=step, loss=0.5)"
    tasks = [run.start(script, SLURM_PROCID=str(rank), SLURM_NODEID=str(rank % 2)) for rank in range(4)]
    assert [task.wait(60) for task in tasks] == [0, 0, 0, 0]
    rows = run.rows()
    for rank in range(4):
        assert [row["step"] for row in rows if row.get("rank", 0) == rank] == list(range(2000))
    assert "rank" not in next(row for row in rows if row.get("rank", 0) == 0)


def test_nodes_that_cannot_append_to_one_file(run: Run) -> None:
    """On NFS two nodes overwrite each other: each has its own file."""
    script = "import yurt\nfrom yurt.node import metrics\nmetrics._unordered = lambda folder: True\nyurt.log(step=1)"
    for rank, node in ((0, 0), (1, 0), (2, 1)):
        run(script, SLURM_PROCID=str(rank), SLURM_NODEID=str(node))
    assert [row.get("rank") for row in run.rows()] == [None, 1]
    assert json.loads((run.folder / "metrics.1.jsonl").read_text())["rank"] == 2


def test_the_kind_of_a_disk(run: Run) -> None:
    mounts = "/dev/a / ext4 rw\nh:/x /home nfs4 rw\nb /home/fast\\040disk xfs rw\nc /mnt fuse.sshfs rw\n"
    folders = ("/", "/home", "/home/a", "/homes", "/home/fast disk/x", "/mnt/a")
    script = (
        f"from yurt.node import metrics\nimport io\nmetrics.open = lambda name: io.StringIO({mounts!r})\n"
        f"print(*[metrics._unordered(each) for each in {folders!r}])"
    )
    assert run(script)[0].split() == ["False", "True", "True", "False", "False", "True"]


def test_a_full_disk_is_reported_once(run: Run) -> None:
    run.metrics.symlink_to("/dev/full")
    script = "import os, yurt\nfor step in range(5): yurt.log(step=step)\nprint(len(os.listdir('/proc/self/fd')))"
    out, err = run(script)
    assert err == "yurt: cannot write metrics: [Errno 28] No space left on device\n"
    assert int(out) < 8, "files are left open"


def test_a_disk_that_gets_full_and_is_free_again(run: Run) -> None:
    """An incomplete line stays on its own; the next ones are complete."""
    script = """\
import resource, signal, yurt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for step in range(100):
    yurt.log(step=step)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for step in range(100, 105):
    yurt.log(step=step)
"""
    _out, err = run(script)
    assert err.count("\n") == 1 and "File too large" in err
    whole, broken = [], []
    for line in run.metrics.read_bytes().splitlines():
        try:
            whole.append(json.loads(line)["step"])
        except ValueError:
            broken.append(line)
    assert whole[-6:] == [whole[-6], 100, 101, 102, 103, 104] and whole[:10] == list(range(10))
    assert len(broken) == 1


def test_a_script_that_closes_all_files(run: Run) -> None:
    run("import os, yurt\nyurt.log(step=0)\nos.closerange(3, 100)\nyurt.log(step=1)\nyurt.log(step=2)")
    assert [row["step"] for row in run.rows()] == [0, 1, 2]


def test_a_user_file_that_reuses_the_descriptor(run: Run) -> None:
    script = (
        "import os, yurt\nyurt.log(step=0)\nos.closerange(3, 100)\nmine = open('mine', 'w')\n"
        "yurt.log(step=1)\nmine.write('kept')\nmine.close()\nyurt.log(step=2)"
    )
    run(script)
    assert (run.work / "mine").read_text() == "kept" and [row["step"] for row in run.rows()] == [0, 1, 2]


def test_a_folder_that_is_gone(run: Run) -> None:
    _out, err = run("import yurt\nyurt.log(step=0)\nyurt.log(step=1)", YURT_RUN_DIR=str(run.folder / "gone"))
    assert err.count("\n") == 1 and "No such file" in err


def test_no_standard_error(run: Run) -> None:
    script = "import sys, yurt\nsys.stderr.close()\nyurt.log(step=0)\nsys.stderr = None\nyurt.log(step=0)"
    run(script, YURT_RUN_DIR=str(run.folder / "gone"))


def test_outside_of_a_run_nothing_is_written(run: Run) -> None:
    out, err = run("import yurt\nyurt.log(step=1, loss=2)\nprint(yurt.params())", outside=True)
    assert (out, err) == ("{}\n", "")
    assert [each.name for each in run.work.iterdir()] == ["script1.py"] and not run.metrics.exists()


def test_params(run: Run) -> None:
    assert run("import yurt\nprint(ascii(yurt.params()))", LC_ALL="C")[0] == "{'lr': 0.1, 'name': '\\xfc'}\n"


def test_a_child_that_is_another_program_logs_too(run: Run) -> None:
    script = (
        "import subprocess, sys, yurt\nyurt.log(step=0)\n"
        "subprocess.check_call([sys.executable, '-c', 'import yurt; yurt.log(step=1)'])\nyurt.log(step=2)"
    )
    run(script)
    assert [row["step"] for row in run.rows()] == [0, 1, 2]


def test_a_signal_in_the_middle(run: Run) -> None:
    """A handler that logs, in a script that logs."""
    script = """\
import signal, yurt
yurt.log(step=0)
signal.signal(signal.SIGALRM, lambda *_: yurt.log(alarm=1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for step in range(20000): yurt.log(step=step)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    run(script)
    assert any("alarm" in row for row in run.rows())
