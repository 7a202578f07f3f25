"""`yurt why`: failures on this machine, the queue of a cluster, a site that does not respond."""

from __future__ import annotations

import pytest

from tests.laptop import Laptop
from tests.user import User
from tests.why.test_failed import RUN
from yurt.lab import Lab
from yurt.model.run import Status
from yurt.testing.waiting import eventually
from yurt.why.pending import pending


def test_a_failed_run(user: User) -> None:
    user.quick("run", "--wait", "--name", "first", "python3", "-c", "import nonesuch")
    found = user.quick("why", "first")
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0].endswith(" (first) on local: failed")
    assert lines[1] == "cause: Python package or module 'nonesuch' is not installed in its environment"
    assert lines[-1] == "  ModuleNotFoundError: No module named 'nonesuch'"
    cause = user.quick("why", "first", "--json").json["data"]["cause"]
    assert (cause["name"], cause["line"]) == ("module-not-found", "ModuleNotFoundError: No module named 'nonesuch'")


def test_own_rules(user: User) -> None:
    user.quick("run", "--wait", "sh", "-c", "echo no licence for matlab >&2; exit 1")
    rules = user.home / "config" / "why.toml"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text(
        "[[rule]]\nname = 'licence'\nmatch = 'no licence for (?P<what>\\w+)'\ncause = 'no {what} is free'\n"
    )
    assert "cause: no matlab is free" in user.quick("why", "-").out
    rules.write_text("[[rule]]\nname = 'licence'\n")
    found = user.quick("why", "-")
    assert found.code == 2 and "why.toml is not valid: Object missing required field `cause`" in found.err


def test_a_sweep(user: User) -> None:
    script = "case $YURT_PARAM_N in 1) nonesuch ;; 2) exit 0 ;; *) python3 -c 'import nonesuch' ;; esac"
    user.quick("run", "--wait", "--grid", "n=0..3", "sh", "-c", script)
    groups = user.quick("why", "@last-sweep", "--json").json["data"]["groups"]
    assert [(each["cause"]["name"], each["tasks"]) for each in groups] == [
        ("module-not-found", [0, 3]),
        ("command-not-found", [1]),
    ]
    assert "2 tasks (0, 3):\ncause: Python package" in user.quick("why", "@last-sweep").out
    assert "task 2" not in user.quick("why", "@last-sweep.2").out


def test_nothing_wrong(user: User) -> None:
    user.quick("run", "--wait", "true")
    assert "nothing is wrong with it" in user.quick("why", "-").out
    assert user.quick("why", "nonesuch").code == 3


def test_a_command_that_does_not_exist(user: User) -> None:
    user.quick("run", "--wait", "nonesuch")
    assert "cause: command 'nonesuch' was not found on the node" in user.quick("why", "-").out


def test_a_cancelled_run(user: User) -> None:
    run = user.quick("run", "--json", "sleep", "100").json["data"]["run"]["id"]
    user.quick("cancel", run)
    user.quick("wait", run)
    assert f"cause: cancelled\nhelp:  start it again with `yurt retry {run}`" in user.quick("why", run).out


def test_a_slow_rule(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yurt.why.rules.MOST", 0.5)
    user.quick("run", "--wait", "sh", "-c", f"echo {'a' * 60}b >&2; exit 1")
    rules = user.home / "config" / "why.toml"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("[[rule]]\nname = 'slow'\nmatch = '^(a+)+$'\ncause = 'x'\n")
    found = user.quick("why", "-")
    assert found.code == 2 and "why.toml: rule 'slow' takes too long" in found.err


def test_advice_is_given_once() -> None:
    held = Status(state="held", reason="held; release it with `yurt release`", native="PENDING (JobHeldUser)")
    made = pending(RUN, held, None, 0)
    assert (made.sentence, made.advice) == ("held", f"release it with `yurt release {RUN.id}`")


@pytest.mark.lab
def test_in_the_queue(laptop: Laptop) -> None:
    mine = laptop.run("alpha", "--hold", "true")["run"]["id"]
    try:
        eventually(lambda: laptop.quick("why", mine, "--json").json["data"]["state"] == "held")
        found = laptop.quick("why", mine)
        assert "cause: held (Slurm: JobHeldUser)\n" in found.out
        assert f"help:  release it with `yurt release {mine}`" in found.out
    finally:
        laptop.quick("cancel", mine)


@pytest.mark.lab
@pytest.mark.slow
def test_a_site_that_does_not_respond(laptop: Laptop, lab: Lab) -> None:
    mine = laptop.run("alpha", "--hold", "true")["run"]["id"]
    try:
        eventually(lambda: laptop.quick("why", mine, "--json").json["data"]["state"] == "held")
        lab.faults.cut("alpha")
        cut = laptop.quick("why", mine)
        assert "cannot query alpha" in cut.err and "cause: held" in cut.out
    finally:
        lab.faults.heal("alpha")
        laptop.quick("cancel", mine)
