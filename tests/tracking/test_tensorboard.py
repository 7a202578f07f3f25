"""`yurt tensorboard` with the real TensorBoard, over its HTTP API and in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.laptop import Laptop
from tests.tracking import events
from tests.tracking.boards import CHROMIUM, Board, board, left, pictured, processes, servers
from tests.user import User, said
from yurt.lab import Lab
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

LOGS = """\
import sys, time, yurt
for step in range(5):
    yurt.log(step=step, loss=float(sys.argv[2]) / (step + 1))
"""

PICTURE = os.environ.get("TEST_PICTURE", "")
"""Where to save the picture of two clusters side by side."""

browser = pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs the Debian package chromium")


def start(user: User, *words: str) -> tuple[str, Path]:
    """Start a run on this machine that goes on until the end of the test; return its id and its folder."""
    done = user.quick("run", "--json", *words, "sh", "-c", PATIENT)
    assert done.code == 0, done
    run = done.json["data"]["run"]
    return run["id"], Path(run["folder"])


def write(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        stream.write(content)
    return file


def test_curves_appear_while_a_run_writes(user: User) -> None:
    run, folder = start(user, "--name", "first")
    name = events.event_name()
    file = write(folder / "work/runs/Nov17_12-00-00_host" / name, events.begin() + events.scalars(1, 2))
    with board(user, run, "--no-browser", "--interval", "1") as shown:
        assert f"following {run} (local)" in shown.err
        eventually(lambda: shown.points("first") == [(0, 1.0), (1, 2.0)])
        half = events.scalars(3, first=2)
        write(file, half[:20])
        extra = write(folder / "work/runs/extra" / name, events.begin() + events.scalars(9))
        eventually(lambda: shown.points("first/extra") == [(0, 9.0)])
        assert shown.points("first") == [(0, 1.0), (1, 2.0)]
        write(file, half[20:])
        write(folder / "longer", events.begin() + events.scalars(*range(10, 20))).rename(extra)  # replaces it
        eventually(lambda: shown.points("first (2)/extra") == [(step, step + 10.0) for step in range(10)])
        eventually(lambda: shown.runs() == ["first (2)", "first (2)/extra"])
        eventually(lambda: shown.points("first (2)") == [(0, 1.0), (1, 2.0), (2, 3.0)])
        file.write_bytes(events.begin() + events.scalars(5))  # truncated
        eventually(lambda: shown.points("first (3)") == [(0, 5.0)])
        assert shown.end() == 0
    assert left(user) == []


def test_metrics_of_yurt_and_hyperparameters(user: User) -> None:
    (user.project / "train.py").write_text(LOGS)
    sweep = user("run", "--name", "grid", "--grid", "lr=0.5,0.25", "--json", "train.py").json["data"]["run"]["id"]
    assert user("wait", sweep).code == 0
    with board(user, "--json", "--filter", "lr=0.5") as shown:
        opened = json.loads(shown.line)
        assert opened["kind"] == "tensorboard"
        (only,) = opened["data"]["runs"]
        assert only == {"id": f"{sweep}.0", "context": "local", "labels": ["grid/lr=0.5"], "final": True}
        eventually(lambda: shown.runs() == ["grid/lr=0.5"])
        assert shown.end() == 0
    with board(user, "--no-browser") as shown:  # all have finished: the newest one
        eventually(lambda: shown.runs() == ["grid/lr=0.25", "grid/lr=0.5"])
        assert [step for step, _value in shown.points("grid/lr=0.5")] == list(range(5))
        assert [value for _step, value in shown.points("grid/lr=0.5")][:2] == [0.5, 0.25]
        asked = json.dumps({"experimentName": "", "hparamsLimit": 10})
        found = shown.get("plugin/hparams/experiment", request=asked)
        assert [each["name"] for each in found["hparamInfos"]] == ["lr"]
        assert found["hparamInfos"][0]["type"] == "DATA_TYPE_FLOAT64"
        assert shown.end(signal.SIGTERM) == 0
    assert left(user) == []


def test_only_the_printed_url_opens_it_and_nothing_is_left(user: User) -> None:
    run, _folder = start(user)
    with board(user, "--no-browser", "-q") as shown:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{40,}", shown.line) and not shown.err
        for path in ("", "data/runs", "?token=wrong"):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(f"{shown.url.partition('?')[0]}{path}", timeout=30)
        data = Path(user.environment["YURT_DATA_HOME"])
        assert {each.stat().st_mode & 0o077 for each in [*data.glob("pages/*"), *data.glob("pages/*/*")]} == {0}
        assert [each.stat().st_mode & 0o077 for each in user.runtime.glob("page-*")] == [0]
        assert not any(shown.url.partition("=")[2].encode() in words for words in processes().values())
        with pytest.raises(AssertionError, match="not found"):
            Board(user, ("nothing", "--no-browser"))
        shown.end(signal.SIGKILL)
    eventually(lambda: not servers(user))
    assert len(left(user)) == 1  # its folder
    with board(user, run, "--no-browser") as shown:
        assert len([each for each in left(user) if re.search("/pages/[^/]*$", each)]) == 1
        assert shown.end(signal.SIGHUP) == 0
    assert left(user) == []


def test_the_browser_gets_a_private_file_and_the_server_is_killed(user: User, tmp_path: Path) -> None:
    """All users can read the arguments of a program, so the token is not among them."""
    start(user)
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/asked.new; mv {tmp_path}/asked.new {tmp_path}/asked\n')
    program.chmod(0o755)
    with board(user, BROWSER=f"{program} %s") as shown:
        eventually((tmp_path / "asked").exists)
        asked = (tmp_path / "asked").read_text().strip()
        assert asked.startswith("file://") and "token" not in asked
        file = Path(asked.removeprefix("file://"))
        assert shown.url in file.read_text() and file.stat().st_mode & 0o077 == 0
        (server,) = servers(user)
        os.kill(server, signal.SIGKILL)
        assert shown.process.wait(60) == 5
        assert "yurt: the TensorBoard server ended: " in shown.err
    assert left(user) == []


def test_what_can_go_wrong(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(user.quick("tensorboard"), 3) == "there are no runs yet"
    assert said(user.quick("tensorboard", "x7q4z"), 3) == "run 'x7q4z' not found"
    assert said(user.quick("tensorboard", "--filter", "lr=1"), 3).startswith("this project has no sweeps yet")
    assert "--interval must be at least 1s" in said(user.quick("tensorboard", "--interval", "0"), 2)
    monkeypatch.setattr("yurt.tracking.tensorboard.tensorboard.find_spec", lambda _name: None)
    missing = user.quick("tensorboard")
    assert said(missing, 2) == "the package tensorboard is not installed"
    assert "pip install 'yurt[tensorboard]'" in missing.err


@browser
@pytest.mark.slow
def test_a_browser_shows_the_curves(user: User, tmp_path: Path) -> None:
    run, folder = start(user, "--name", "in the browser")
    write(folder / "work/logs" / events.event_name(), events.begin() + events.scalars(*range(20)))
    with board(user, run, "--no-browser") as shown:
        eventually(lambda: shown.runs() == ["in the browser"])
        page = tmp_path / "link.html"
        page.write_text(f'<meta http-equiv="refresh" content="0;url={shown.url}">')
        asked = pictured(shown.url, ["in the browser", "loss"], link=page.as_uri())
        own = (shown.url.partition("?")[0], "data:", "blob:", "file:")
        assert [each for each in asked if not each.startswith(own)] == []
        assert shown.end() == 0


TRAINS = """\
import math, os, sys, time, writer
rate, folder = float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "runs"
log = writer.Writer(folder)
step = 0
while not os.path.exists(os.path.join(os.environ["YURT_RUN_DIR"], "go")) and step < 600:
    log.add("train/loss", step, math.exp(-rate * step / 4) + 0.1 / rate)
    log.add("train/accuracy", step, 1 - math.exp(-rate * step / 3))
    step += 1
    time.sleep(0.25)
"""


def submitted(laptop: Laptop) -> tuple[str, str]:
    """Submit a sweep on one cluster and a run on the other, which write event files; return their ids."""
    events.add_writer(laptop.project)
    (laptop.project / "train.py").write_text(TRAINS)
    sweep = laptop.run("alpha", "--name", "grid", "--grid", "lr=0.3,1.0", "train.py")["run"]["id"]
    run = laptop.run("beta", "--name", "baseline", "train.py", "--", "--lr", "0.6", "lightning_logs/version_0")["run"]
    return sweep, run["id"]


def grows(shown: Board, *names: str, by: int = 1) -> None:
    """Wait until TensorBoard has more points of each of these runs."""
    before = {name: len(shown.points(name, "train/loss")) for name in names}
    eventually(lambda: all(len(shown.points(name, "train/loss")) >= before[name] + by for name in names))


@browser
@pytest.mark.lab
def test_a_sweep_of_one_cluster_and_a_run_of_another(laptop: Laptop) -> None:
    runs = submitted(laptop)
    with board(laptop, "--no-browser", "--interval", "1") as shown:
        wanted = ["baseline", "grid/lr=0.3", "grid/lr=1.0"]
        eventually(lambda: shown.runs() == wanted)
        grows(shown, *wanted, by=20 if PICTURE else 1)
        pictured(shown.url, wanted, PICTURE, cards=2)
        assert shown.end() == 0
    assert laptop.quick("cancel", *runs).code == 0
    assert left(laptop) == []


@pytest.mark.lab
@pytest.mark.slow
def test_the_page_goes_on_while_a_cluster_is_unreachable(laptop: Laptop, lab: Lab) -> None:
    sweep, run = submitted(laptop)
    try:
        with board(laptop, "--no-browser", "--interval", "1") as shown:
            eventually(lambda: shown.runs() == ["baseline", "grid/lr=0.3", "grid/lr=1.0"])
            lab.faults.cut("alpha")
            eventually(lambda: "yurt keeps trying" in shown.err)
            grows(shown, "baseline")
            assert "grid/lr=0.3" in shown.runs()
            lab.faults.heal("alpha")
            eventually(lambda: "yurt: alpha responds again" in shown.err)
            grows(shown, "grid/lr=0.3", "grid/lr=1.0")
            assert shown.end() == 0
        laptop.quick("cancel", sweep, run)
        laptop.ended(sweep)
        laptop.ended(run)
        shutil.rmtree(laptop.home / "data/followed")
        lab.faults.cut("alpha")  # before its start: the curves of finished runs come later
        with board(laptop, sweep, run, "--no-browser", "--interval", "1") as shown:
            assert "warning: " in shown.err and "yurt keeps trying" in shown.err
            eventually(lambda: shown.runs() == ["baseline"])
            lab.faults.heal("alpha")
            eventually(lambda: shown.runs() == ["baseline", "grid/lr=0.3", "grid/lr=1.0"])
            assert shown.end() == 0
    finally:
        lab.faults.heal("alpha")
