"""Texts that a site chose, such as names, reasons and metrics, cannot control the terminal."""

from __future__ import annotations

import re
import time

import msgspec
import pexpect
import pytest

from tests.cli.test_terminal import SAFE
from tests.user import User
from yurt.cli import progress, render
from yurt.contexts import add as context_add
from yurt.model.context import Context
from yurt.model.facts import Account, Facts, NodeFacts, NodeKind, Partition, Qos, Tier
from yurt.model.progress import Event
from yurt.store import Store
from yurt.store.bad_nodes import BadNode

EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b6n\r[red]b[/]"
OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh])")
"""What rich and yurt themselves print: colours, and a hidden cursor under a progress bar."""


@pytest.fixture
def run(user: User) -> str:
    """A finished run with hostile metrics, a hostile status and hostile code; its id."""
    script = f"import yurt\nyurt.log(**{{{EVIL!r}: 1.0, 'text': {EVIL!r}}})\n"
    (user.project / "train.py").write_text(script)
    (user.project / "other\x1b[6n.txt").write_text(EVIL)
    done = user("--context", "local", "-q", "run", "--wait", "train.py")
    assert done.code == 0, done
    return _with_hostile_status(user, done.out.strip())


def _with_hostile_status(user: User, run: str) -> str:
    evil = {"state": "failed", "reason": EVIL, "native": EVIL, "node": EVIL, "job": EVIL}
    with Store(f"{user.home}/data/yurt.db") as store:
        store.change([run], lambda _run, status: msgspec.structs.replace(status, **evil))
    return run


def _shown(user: User, *words: str, columns: int = 200) -> str:
    """What a command prints on a terminal, without yurt's own colours."""
    child = user.spawn(*words, columns=columns)
    child.expect(pexpect.EOF)
    return OWN.sub("", str(child.before))


@pytest.mark.parametrize("words", [["ps", "--cached", "--wide"], ["show", "--cached"], ["wait"]], ids=" ".join)
def test_runs(user: User, run: str, words: list[str]) -> None:
    shown = _shown(user, *words, *([] if "ps" in words else [run]))
    assert "owned" in shown and SAFE.fullmatch(shown) is not None, shown
    assert "[red]b[/]" in shown


def test_diff(user: User, run: str) -> None:
    (user.project / "other\x1b[6n.txt").write_text(EVIL + "\nmore")
    other = _with_hostile_status(user, user("--context", "local", "-q", "run", "--wait", "train.py").out.strip())
    shown = _shown(user, "diff", "--cached", run, other)
    assert "more" in shown and SAFE.fullmatch(shown) is not None, shown


@pytest.mark.parametrize("option", ["", "--csv", "--plot=loss"])
def test_sweeps(user: User, option: str) -> None:
    (user.project / "train.py").write_text(f"import yurt\nyurt.log(loss=1.0, text={EVIL!r})\n")
    done = user("--context", "local", "-q", "run", "--wait", "--grid", f"key=x,{EVIL!r}", "train.py")
    assert done.code == 0, done
    sweep = done.out.strip()
    shown = _shown(user, "show", sweep, *([option] if option else []))
    assert "1" in shown and SAFE.fullmatch(shown) is not None, shown


FACTS = Facts(
    probed_at=time.time(), user=EVIL, host=EVIL, slurm_version=EVIL, cluster=EVIL, requeue=False, requeue_refusal=EVIL,
    home_refusal=EVIL, modules=EVIL, tools={EVIL: EVIL},
    partitions=[
        Partition(name=EVIL, preempt=EVIL, nodes=[NodeKind(count=1, cpus=1, memory_mb=1, gpus=1, gpu_type=EVIL)])
    ],
    accounts=[Account(name=EVIL, qos=[EVIL])], qos=[Qos(name=EVIL)], tiers=[Tier(name=EVIL, variable=EVIL, path=EVIL)],
    node=NodeFacts(node=EVIL, probed_at=0, internet=True, ssh=True, local_disk=EVIL),
)  # fmt: skip


def test_facts_of_a_site(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    from yurt.config import facts

    monkeypatch.setenv("YURT_CONFIG_HOME", user.environment["YURT_CONFIG_HOME"])
    facts.save(Context(name="big", type="slurm", slurm_url="me@big"), FACTS)
    (user.home / "config" / "contexts.yaml").write_text("contexts: {big: {type: slurm, slurm_url: me@big}}\n")
    (user.home / "data").mkdir()
    with Store(f"{user.home}/data/yurt.db") as store:
        store.note_bad_node("big", BadNode(EVIL, time.time(), "x", EVIL))
    shown = _shown(user, "cluster", "big", columns=1000)
    assert "avoided" in shown and shown.count("owned") > 15 and SAFE.fullmatch(shown) is not None, shown
    assert "[red]" in shown and "\ra" not in shown


def test_a_question_about_names_of_a_site(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def prompt(text: str, **_more: object) -> str:
        asked.append(text)
        return render.plain(EVIL)

    monkeypatch.setattr("click.prompt", prompt)
    assert context_add._ask("which", [EVIL, "x"]) == EVIL
    assert asked[0].isprintable()


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    progress._lines(render.plain)(Event(EVIL))
    with progress._bar() as watch:
        watch(Event(EVIL))
    assert "\x1b]" not in capsys.readouterr().err


def test_json_has_no_control_characters(user: User, run: str) -> None:
    answer = user("show", "--cached", "--json", run)
    assert answer.json["data"]["status"]["reason"] == EVIL
    assert SAFE.fullmatch(answer.out) is not None


def test_a_plan(user: User) -> None:
    """The job script contains the values of the user; in a pipe it is exact."""
    words = ["--context", "local", "run", "--dry-run", "--var", f"X={EVIL}", "--note", EVIL, "true"]
    shown = _shown(user, *words)
    assert "--- job.sh" in shown and "owned" in shown and SAFE.fullmatch(shown) is not None, shown
    assert EVIL.partition("\r")[0] in user(*words).out


def test_an_impossible_time_is_shown_as_unknown() -> None:
    assert [render.moment(at) for at in (1e30, -1e30, float("nan"), None)] == ["?", "?", "?", ""]
