"""`yurt why` of runs on this machine."""

from __future__ import annotations

import re
import shlex

import msgspec
import pytest

from tests import hints
from tests.lifecycle.causes.test_failed import RUN
from tests.user import User
from yurt.contexts import folders
from yurt.lifecycle import why
from yurt.lifecycle.causes.pending import pending
from yurt.lifecycle.refresh.refresh import Refreshed
from yurt.model.run import Status
from yurt.model.usage import Usage
from yurt.store import Entry, Store


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
    assert found.code == 2 and "why.toml is not valid: rule 'licence': `cause` is missing" in found.err


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


def test_the_same_words_in_show_and_ps(user: User) -> None:
    cause = "Python package or module 'nonesuch' is not installed in its environment"
    waited = user.quick("run", "--wait", "--name", "first", "python3", "-c", "import nonesuch")
    assert cause in waited.err
    row = user.quick("ps", "--json").json["data"][0]
    assert (row["reason"], row["exit_code"]) == (cause, 1)
    shown = user.quick("show", "first", "--cached")
    assert re.search(f"cause +{cause}", shown.out)
    assert "help" in shown.out and "add it to the dependencies of the project" in shown.out
    data = user.quick("show", "first", "--json").json["data"]
    assert (data["cause"]["name"], data["pending"]) == ("module-not-found", None)
    assert data["status"]["reason"] == "exit code 1"  # what all machines agree on


def test_own_rules_in_ps(user: User) -> None:
    rules = user.home / "config" / "why.toml"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("[[rule]]\nname = 'licence'\nmatch = 'no licence'\ncause = 'no licence is free'\n")
    user.quick("run", "--wait", "sh", "-c", "echo no licence >&2; exit 1")
    assert user.quick("ps", "--json").json["data"][0]["reason"] == "no licence is free"
    rules.write_text("[[rule\n")  # no other verb fails because of it
    assert user.quick("run", "--wait", "sh", "-c", "echo no licence >&2; exit 1").code == 1
    assert user.quick("ps", "--json").json["data"][0]["reason"] == "exit code 1"
    assert user.quick("show", "-").code == 0 and user.quick("why", "-").code == 2


def test_a_sweep_in_show_and_ps(user: User) -> None:
    script = "case $YURT_PARAM_N in 1) exit 3 ;; 2) exit 0 ;; *) python3 -c 'import nonesuch' ;; esac"
    user.quick("run", "--wait", "--grid", "n=0..3", "sh", "-c", script)
    failures = user.quick("show", "@last-sweep", "--json").json["data"]["failures"]
    cause = "Python package or module 'nonesuch' is not installed in its environment"
    assert [(each["why"], each["tasks"]) for each in failures] == [(cause, "0,3"), ("exit code 3", "1")]
    assert f"2 tasks (0,3): {cause}" in user.quick("show", "@last-sweep").out
    assert user.quick("ps", "--json").json["data"][0]["reason"] == cause


def test_a_run_that_waits_for_another(user: User) -> None:
    first = user.quick("run", "--json", "sleep", "100").json["data"]["run"]["id"]
    second = user.quick("run", "--json", "--after", first, "true").json["data"]["run"]["id"]
    try:
        found = user.quick("why", second)
        assert "cause: waiting for an earlier run to finish\n" in found.out and "Slurm" not in found.out
        assert f"after: run {first} is running; this one follows when it has completed" in found.out
        data = user.quick("show", second, "--json").json["data"]
        assert [(each["run"], each["state"]) for each in data["pending"]["after"]] == [(first, "running")]
        assert f"waits for     run {first} (running)" in user.quick("show", second).out
    finally:
        user.quick("cancel", first, second)


def test_the_command_to_type_works(user: User) -> None:
    user.quick("run", "--wait", "--mem", "100M", "sh", "-c", "echo MemoryError >&2; exit 1")
    line = next(line for line in user.quick("why", "-").out.splitlines() if line.startswith("type:"))
    words = shlex.split(line.removeprefix("type:  yurt "))
    assert words[0] == "retry" and words[2:] == ["--mem", "200M"]
    again = user.quick(*words, "--json").json["data"]
    user.quick("wait", "-")
    assert user.quick("show", "-", "--json").json["data"]["run"]["resources"]["memory_mb"] == 200, again


SITUATIONS = {
    "memory": ["--mem", "100M", "sh", "-c", "echo MemoryError >&2; exit 1"],
    "time": ["--time", "1s", "sleep", "100"],
    "gpu": ["sh", "-c", "echo RuntimeError: No CUDA GPUs are available >&2; exit 1"],
    "killed": ["sh", "-c", "kill -9 $$"],
    "exit code": ["sh", "-c", "exit 7"],
    "full disk": ["sh", "-c", "echo cp: No space left on device >&2; exit 1"],
    "rendezvous": ["sh", "-c", "echo RendezvousTimeoutError >&2; exit 1"],
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_command_of_the_advice_works(user: User, situation: str) -> None:
    """Where it was given: typed as it is printed."""
    machine = {"YURT_LOCAL_GPUS": "1"}
    user.quick("run", "--wait", *SITUATIONS[situation], **machine)
    typed = commands(user.quick("why", "-", **machine).out)
    assert typed
    for words in typed:
        assert user.quick(*words, **machine).code == 0, words


def commands(out: str) -> list[list[str]]:
    """Return the words of each complete command of yurt in the advice of `yurt why`, those that look before others."""
    found = [typed for text in hints.advice(out) for typed in hints.TYPED.findall(text) if hints.CALL.match(typed)]
    return [shlex.split(typed)[1:] for typed in found if "…" not in typed]


def test_a_machine_without_gpus(user: User) -> None:
    """A retry with `--gpus` would be refused."""
    user.quick("run", "--wait", *SITUATIONS["gpu"])
    found = user.quick("why", "-", YURT_LOCAL_GPUS="0").out
    assert "cause: the program found no GPU: this machine has none\n" in found and "type:" not in found


def test_a_gpu_that_was_not_used(user: User) -> None:
    machine = {"YURT_LOCAL_GPUS": "1"}
    run = user.quick("run", "--wait", "--gpus", "1", "--json", "true", **machine).json["data"]["run"]["id"]

    def used(**fields: float) -> str:
        with Store(str(user.home / "data" / "yurt.db")) as index:
            usage = Usage(**fields)  # type: ignore[arg-type]
            index.change([run], lambda _run, status: msgspec.structs.replace(status, usage=usage))
        return user.quick("why", run, **machine).out

    idle = used(seconds=720, gpu_percent=0)
    assert "cause: its GPU was not used: the mean utilization was 0 % in 12 min\nhelp:  check that it uses" in idle
    assert "nothing is wrong" not in idle
    for fields in ({"seconds": 720, "gpu_percent": 40}, {"seconds": 8, "gpu_percent": 0}, {"seconds": 720}):
        assert "nothing is wrong with it" in used(**fields)


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


def test_a_cancelled_sweep(user: User) -> None:
    sweep = user.quick("run", "--json", "--grid", "n=0..1", "sh", "-c", "sleep 100").json["data"]["run"]["id"]
    user.quick("cancel", sweep)
    user.quick("wait", sweep)
    found = user.quick("why", sweep).out
    assert f"{sweep} on local: cancelled\ncause: cancelled" in found
    assert f"help:  start it again with `yurt retry {sweep}`" in found


def test_a_slow_rule(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yurt.lifecycle.causes.rules.MOST", 0.5)
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


def test_a_race_that_is_decided_meanwhile(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is on the context that was first, not on the one that was named first."""
    before = Entry(msgspec.structs.replace(RUN, context="alpha", race=RUN.id), Status(state="queued"))
    after = Entry(msgspec.structs.replace(before.run, context="beta"), Status(state="running"))
    found = iter([[before], [after]])
    monkeypatch.setattr(why, "which", lambda *_words: next(found))
    monkeypatch.setattr(why, "name_warnings", lambda *_words: [])
    monkeypatch.setattr(why, "refresh_contexts", lambda *_words, **_more: Refreshed())
    monkeypatch.setattr(folders, "store", lambda: Store(str(user.home / "yurt.db")))
    done = why.why("-").data
    assert (done.context, done.state) == ("beta", "running")
