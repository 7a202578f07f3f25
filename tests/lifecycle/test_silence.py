"""A link that drops all packets, and a Slurm that hangs.

yurt says what it waits for, gives up, keeps the run, and does not wait as long again soon.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.calls import YURT, Called
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    """A laptop with the usual timeouts, a connection to alpha and an unfinished run."""
    laptop.environment["YURT_CLOCKS"] = "slow=3"
    laptop.run("alpha", "--hold", "true")
    assert laptop.row(laptop.quick("ps", "--json").json["data"][0]["id"])["state"] == "held"
    return laptop


@pytest.fixture
def silent(laptop: Laptop, lab: Lab) -> Iterator[None]:
    """The link to alpha drops all packets; the connection stays open on this side."""
    lab.faults.cut("alpha")
    yield
    lab.faults.heal("alpha")
    laptop.quick("cancel", *(row["id"] for row in laptop.quick("ps", "--cached", "--json").json["data"]))


def timed(laptop: Laptop, *words: str) -> tuple[float, Called]:
    started = time.monotonic()
    done = laptop(*words)
    return time.monotonic() - started, done


@pytest.mark.slow
def test_run_gives_up_and_ps_does_not_wait_again(laptop: Laptop, silent: None, lab: Lab) -> None:
    took, made = timed(laptop, "--context", "alpha", "run", "true")
    assert made.code == 0 and 14 < took < 25, (took, made)
    waiting, saved = made.err.splitlines()
    assert waiting == "yurt: waiting for alpha to respond; giving up after 15 s"
    assert "alpha: no response within 15 s" in saved and "is saved and will be submitted" in saved
    took, looked = timed(laptop, "ps")
    assert looked.code == 0 and took < 8, (took, looked)
    (warning,) = looked.err.splitlines()
    said = r"cannot query alpha: .+; showing the state of \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"yurt: warning: {said}", warning), warning
    took, made = timed(laptop, "--context", "alpha", "run", "true")
    assert made.code == 0 and took < 8 and "is saved and will be submitted" in made.err
    states = [row["state"] for row in laptop.quick("ps", "--cached", "--json").json["data"]]
    assert states == ["waiting", "waiting", "held"]
    took, done = timed(laptop, "cancel", laptop.quick("ps", "--cached", "--json").json["data"][2]["id"])
    assert done.code == 4 and took < 8
    lab.faults.heal("alpha")
    laptop("login", "--close", "alpha")
    runs = [row["id"] for row in laptop("ps", "--json").json["data"]]
    assert laptop.row(runs[2])["state"] == "cancelled", "the first command notices that the site is back"
    assert laptop.quick("wait", *runs[:2], "--timeout", "100").code == 0
    assert laptop.ended(runs[2])["state"] == "cancelled"


def test_ps_gives_up(laptop: Laptop, silent: None) -> None:
    took, looked = timed(laptop, "ps")
    assert looked.code == 0 and 14 < took < 25, (took, looked)
    waiting, warning = looked.err.splitlines()
    assert waiting == "yurt: waiting for alpha to respond; giving up after 15 s"
    assert "cannot query alpha: no response within 15 s" in warning
    took, _looked = timed(laptop, "show", laptop.quick("ps", "--cached", "--json").json["data"][0]["id"])
    assert took < 8


def test_ctrl_c_keeps_the_run(laptop: Laptop, silent: None, lab: Lab, ssh: Ssh) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    process = subprocess.Popen(
        [YURT, "--context", "alpha", "run", "sh", "-c", f"echo ran >> {ledger}"],
        env={**os.environ, **laptop.environment},
        cwd=laptop.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: len(laptop.quick("ps", "--cached", "--json").json["data"]) == 2)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=5)
    run = laptop.quick("ps", "--cached", "--json").json["data"][0]["id"]
    assert process.returncode == 130
    assert f"interrupted; run {run} is saved, and the next yurt command submits it if necessary" in err
    assert "waiting for alpha to respond" in err
    lab.faults.heal("alpha")
    laptop("login", "--close", "alpha")
    assert laptop.ended(run)["state"] == "completed"
    assert ssh("alpha", f"cat {ledger}") == "ran"


HANGS = """\
#!/bin/sh
ps -o args= -p $PPID >> ~/asked
exec sleep 600
"""
"""A command of Slurm that hangs. Its parent is `timeout SECONDS COMMAND …`."""


@pytest.fixture
def hanging(laptop: Laptop, ssh: Ssh) -> Iterator[None]:
    """The commands of Slurm on alpha hang."""
    laptop.environment["YURT_CLOCKS"] = "silent=4 again=2 slow=1"
    laptop.row(laptop.run("alpha", "--hold", "true")["run"]["id"])
    ssh("alpha", "mkdir ~/bin && cp -p ~/.bashrc ~/.bashrc.was && : > ~/asked")
    ssh("alpha", f"cat > ~/bin/squeue << 'end'\n{HANGS}end\nchmod +x ~/bin/squeue")
    ssh("alpha", "cd ~/bin && for each in sbatch scancel scontrol sacct; do ln squeue $each; done")
    ssh("alpha", "{ echo 'PATH=~/bin:$PATH'; cat ~/.bashrc.was; } > ~/.bashrc")
    yield
    ssh("alpha", "mv -f ~/.bashrc.was ~/.bashrc; rm -rf ~/bin ~/asked")


def test_slurm_that_hangs(laptop: Laptop, hanging: None, ssh: Ssh) -> None:
    def asked() -> list[str]:
        """How long each command so far was waited for."""
        return [" ".join(line.split()[1:3]) for line in ssh("alpha", "cat ~/asked").splitlines()]

    run = laptop.quick("ps", "--cached", "--json").json["data"][0]["id"]
    looked = laptop("ps")
    waiting, warning = looked.err.splitlines()
    assert waiting == "yurt: waiting for Slurm on alpha to respond; giving up after 4 s"
    assert looked.code == 0 and "cannot query alpha: Slurm does not respond; showing the state of" in warning
    assert asked() == ["4 squeue"], "the query that was sent early is not repeated"
    waited = laptop("wait", run, "--timeout", "3")
    assert waited.code == 4 and asked()[1:] == ["2 squeue"], "a loop asks once more"
    new = laptop("--context", "alpha", "run", "true")
    assert new.code == 0 and "Slurm does not respond" in new.err and "is saved and will be submitted" in new.err
    assert asked()[2:] == ["2 sbatch"]
    cancelled = laptop("cancel", run)
    assert cancelled.code == 4 and "Slurm does not respond" in cancelled.out and asked()[3:] == ["2 squeue"]
    ssh("alpha", "rm -r ~/bin")
    refused = laptop("--context", "alpha", "run", "--partition", "none", "true")
    states = {row["id"]: row["state"] for row in laptop.quick("ps", "--cached", "--json").json["data"]}
    assert refused.code != 0 and states[run] == "cancelled", "the first command notices, and cancels before it plans"


def test_a_saved_cancellation_is_sent_by_verbs_that_reach_the_site(laptop: Laptop, lab: Lab, ssh: Ssh) -> None:
    laptop.environment["YURT_CLOCKS"] = "silent=2 again=2 slow=1 rest=0"
    ended = laptop.run("alpha", "true")["run"]["id"]
    assert laptop.ended(ended)["state"] == "completed"
    for verb in (["fetch", ended], ["--context", "alpha", "run", "true"]):
        run = laptop.run("alpha", "--hold", "true")["run"]["id"]
        lab.faults.cut("alpha")
        saved = laptop.quick("cancel", run)
        lab.faults.heal("alpha")
        assert saved.code == 4 and "the next yurt command that reaches alpha will cancel it" in saved.out, saved
        assert laptop(*verb).code == 0
        assert run not in ssh("alpha", "squeue -h -o %j"), verb


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)
