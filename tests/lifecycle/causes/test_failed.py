"""Causes of failures: real ones made here, and recorded messages where the hardware is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests import hints
from yurt.errors import UserError
from yurt.lifecycle.causes import not_started
from yurt.lifecycle.causes.failed import Cause, Evidence, cause_of
from yurt.lifecycle.causes.pending import pending
from yurt.lifecycle.causes.rules import known, own
from yurt.model.live import NodeTrouble
from yurt.model.run import Purpose, Resources, Run, State, Status
from yurt.model.usage import Usage
from yurt.model.waiting import EndedJob

RUN = Run(
    id="1aaaaaa-bbbbb",
    project="p",
    context="alpha",
    context_type="slurm",
    command=["python", "train.py"],
    created=1.0,
    folder="/f",
    source="/p",
    resources=Resources(memory_mb=2048, minutes=90),
)

HERE = Path(__file__).parent
FAILURES = (HERE / "failures.txt").read_text().splitlines()[1:]
MESSAGES = (HERE / "messages.txt").read_text().splitlines()[1:]


def explained(status: Status, err: str = "", out: str = "", **more: object) -> Cause:
    return cause_of(Evidence(run=RUN, status=status, err=err, out=out, **more), known())  # type: ignore[arg-type]


def failed(code: int = 1, signal: int | None = None) -> Status:
    return Status(state="failed", exit_code=code, signal=signal)


def outcome(done: subprocess.CompletedProcess[str]) -> Status:
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return failed(code, code - 128 if 128 < code <= 192 else None)


@pytest.mark.parametrize(("name", "sentence", "script"), [line.split("\t") for line in FAILURES])
def test_real_failures(name: str, sentence: str, script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", script.replace("python3 ", f"{sys.executable} ")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    cause = explained(outcome(done), done.stderr, done.stdout)
    assert (cause.name, sentence in cause.sentence) == (name, True), f"{cause} of {done}"


@pytest.mark.parametrize(("name", "line"), [line.split("\t") for line in MESSAGES])
def test_recorded_messages(name: str, line: str) -> None:
    assert explained(failed(), f"starting\n{line}\n").name == name


@pytest.mark.parametrize(
    ("status", "name", "sentence", "retry"),
    [
        (Status(state="out_of_memory"), "out-of-memory", "more memory than its limit of 2 GB", "--mem 4G"),
        (Status(state="timeout"), "time-limit", "reached its time limit of 1 h 30 min", "--time 180m"),
        (Status(state="node_failed", node="n7"), "node-failed", "its node failed: n7", "--exclude-node n7"),
    ],
)
def test_states(status: Status, name: str, sentence: str, retry: str) -> None:
    cause = explained(status, "Traceback (most recent call last):\nValueError: earlier\n")
    assert cause.name == name and sentence in cause.sentence
    assert cause.retry == f"yurt retry {RUN.id} {retry}"
    measured = Status(state="out_of_memory", usage=Usage(memory_mb=2355))
    assert "; measured: 2.3 GB" in explained(measured).sentence
    assert "; measured: 1.5 GB" in explained(Status(state="out_of_memory"), site=EndedJob(used_mb=1536)).sentence


def test_requests_that_the_user_did_not_make() -> None:
    """The limits are those of the site: a default of the partition."""
    run = msgspec.structs.replace(RUN, resources=Resources())
    late = cause_of(Evidence(run=run, status=Status(state="timeout", seconds=605)), known())
    assert late.sentence == "it reached its time limit; it ran for 10 min"
    assert late.retry == f"yurt retry {run.id} --time 22m"
    used = Usage(memory_mb=950, memory_limit_mb=1024)
    full = cause_of(Evidence(run=run, status=Status(state="out_of_memory", usage=used)), known())
    assert full.sentence == "it used more memory than its limit of 1 GB; measured: 950 MB"
    assert full.retry == f"yurt retry {run.id} --mem 2G"
    assert explained(Status(state="timeout", seconds=5400)).sentence.endswith("of 1 h 30 min; it ran for 1 h 30 min")
    bad = NodeTrouble(node="n7", state="down", reason="Not responding")
    failed_node = Status(state="node_failed", node="n7")
    assert explained(failed_node, site=EndedJob(node=bad)).sentence == "its node failed: n7 (down: Not responding)"


@pytest.mark.parametrize("state", ["cancelled", "lost"])
def test_the_recorded_reason(state: State) -> None:
    cause = explained(Status(state=state, reason="the site stopped it"), "KeyError: 'lr'\n")
    assert (cause.name, cause.sentence) == (state, "the site stopped it")


def test_the_last_error_counts() -> None:
    early = "FileNotFoundError: [Errno 2] No such file or directory: 'cache'\n" + "epoch\n" * 100
    trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\nKeyError: 'lr'\n"
    cause = explained(failed(), early + trace + "yurt: end\n")
    assert (cause.name, cause.line) == ("python-error", "KeyError: 'lr'")
    assert cause.traceback == trace.strip()


def test_a_brief_search_reads_only_the_end() -> None:
    err = "CUDA out of memory\n" + "epoch\n" * 100
    assert explained(failed(), err).name == "gpu-out-of-memory"
    assert explained(failed(), err, brief=True).name == "exit-code"


def test_progress_bars_and_chained_tracebacks() -> None:
    err = " 10%|#  \r 20%|## \r 99%|###### \nTraceback (most recent call last):\n  a\nKeyError: 1\n\nDuring handling\n"
    err += "\nTraceback (most recent call last):\n  b\nmypkg.errors.DataError: broken\nlast words\n"
    cause = explained(failed(), err)
    assert cause.sentence == "it ended with mypkg.errors.DataError: broken"
    assert cause.traceback == "Traceback (most recent call last):\n  b\nmypkg.errors.DataError: broken"


def test_own_rules_come_first(tmp_path: Path) -> None:
    assert own(tmp_path) == ()
    (tmp_path / "why.toml").write_text(
        "[[rule]]\nname = 'licence'\nmatch = 'no licence for (?P<what>\\w+)'\ncause = 'no licence for {what} is free'\n"
    )
    rules = [*own(tmp_path), *known()]
    cause = cause_of(Evidence(run=RUN, status=failed(), err="no licence for matlab\n"), rules)
    assert (cause.name, cause.sentence) == ("licence", "no licence for matlab is free")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]\n", "Expected"),
        ("[[rule]]\nname = 'a'\n", "rule 'a': `cause` is missing"),
        ("[[rule]]\ncause = 'a'\n", "rule 1: `name` is missing"),
        ("[rule]\nname = 'a'\n", "a rule must be a block that begins with `[[rule]]`"),
        ("rule = 3\n", "a rule must be a block that begins with `[[rule]]`"),
        ("[[rule]]\nname = 'a'\ncause = 3\nmatch = 'c'\n", "rule 'a': `cause` must be text in quotes, not 3"),
        ("[[rule]]\nname = 'a'\ncause = 'b'\nexits = 3\n", "`exits` must be a list of numbers, such as [3], not 3"),
        ("[[rule]]\nname = 'a'\ncause = 'b'\nexits = [true]\n", "`exits` must be a list of numbers"),
        ("[[rule]]\nname = 'a'\ncause = 'b'\nstates = 'x'\n", "`states` must be a list of words, such as ['failed']"),
        ("[[rule]]\nname = 'a'\ncause = 'b'\n", "rule 'a' has neither `match` nor `exits` nor `signals`"),
        ("[[rule]]\nname = 'a'\ncause = 'b'\nmatch = '('\n", "`match` of rule 'a' is not a regular expression"),
        (
            "[[rule]]\nname = 'a'\ncause = 'b'\nmatch = 'c'\nwhen = 1\n",
            "rule 'a': unknown key 'when'; use name,",
        ),
        ("rules = 3\n", "unknown key 'rules'"),
        (
            "[[rule]]\nname = 'a'\ncause = 'b {1}'\nmatch = '(c)'\n",
            "`cause` of rule 'a' has {1}: only groups with a name",
        ),
    ],
)
def test_own_rules_that_are_not_valid(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "why.toml").write_text(text)
    with pytest.raises(UserError, match=r"why\.toml is not valid") as error:
        own(tmp_path)
    assert said in error.value.message


def test_lines_of_yurt_are_no_cause() -> None:
    assert explained(failed(), "yurt: ModuleNotFoundError: No module named 'x'\n").name == "exit-code"


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("input cifar: /data/cifar does not exist", "check the name with `yurt data ls PLACE`"),
        ("input cifar: archive /data/c.tar is damaged: x", "make the archive again"),
        ("input cifar (8.0 MB) does not fit onto the disk of n1: 1 GB free in /tmp", "stage less"),
        ("module cuda/13 not found", "`--module NAME`"),
        ("secret TOKEN is missing: cannot read x", "`yurt retry 1aaaaaa-bbbbb`"),
        ("something else", ""),
    ],
)
def test_advice_if_the_command_did_not_start(why: str, said: str) -> None:
    found = not_started.advice(why, RUN)
    assert said in found and bool(said) == bool(found)


@pytest.mark.parametrize("context_type", ["slurm", "local"])
@pytest.mark.parametrize(
    ("purpose", "command", "called"),
    [
        ("run", ["python", "train.py"], "yurt retry 1aaaaaa-bbbbb"),
        ("dev", ["dev"], "yurt dev up paper --context alpha"),
        ("shell", ["shell"], "yurt shell --context alpha"),
        ("service", ["serve", "--", "app", "--port", "{port}"], "yurt serve --context alpha --name paper"),
    ],
)
def test_yurt_parses_each_command_of_the_advice(
    purpose: Purpose, command: list[str], called: str, context_type: str
) -> None:
    """Of every rule, for every kind of run: the command starts it again."""
    run = msgspec.structs.replace(RUN, purpose=purpose, name="paper", command=command, context_type=context_type)
    made = []
    for rule in known():
        line = next((line for name, line in (each.split("\t") for each in MESSAGES) if name == rule.name), "")
        state: State = rule.states[0]  # type: ignore[assignment]
        status = Status(state=state, exit_code=(*rule.exits, 1)[0], signal=(*rule.signals, None)[0], node="n7")
        made.append(cause_of(Evidence(run=run, status=status, err=line), [rule, known()[-1]]))
    typed = [f"`{each.retry}`" for each in made if each.retry] + [each.advice for each in made]
    typed += [not_started.advice(why, run) for why in ("input a does not exist", "secret A is missing")]
    typed += [pending(run, Status(reason=why), None, 0).advice for why in ("secret", "quota", "login", "waits")]
    assert [problem for text in typed for problem in hints.wrong_commands(text)] == []
    again = [words for text in typed for words in hints.TYPED.findall(text) if words.startswith(called)]
    assert len(again) >= 6 and (purpose == "run" or not any("yurt retry" in text for text in typed))


def test_a_node_that_the_run_requires() -> None:
    """It cannot be excluded, and a new dev node chooses its node anew."""
    pinned = msgspec.structs.replace(RUN, resources=Resources(nodelist="n[6-8]"))
    status = Status(state="node_failed", node="n7")
    cause = cause_of(Evidence(run=pinned, status=status), known())
    assert cause.retry == "" and "when n7 is back, run it again with `yurt retry 1aaaaaa-bbbbb`" in cause.advice
    desk = msgspec.structs.replace(pinned, purpose="dev", name="paper")
    cause = cause_of(Evidence(run=desk, status=status), known())
    assert (cause.retry, cause.advice) == ("", "run it again with `yurt dev up paper --context alpha`")
    several = explained(Status(state="node_failed", node="n[1-2]"))
    assert several.retry == "" and several.sentence == "its node failed: n[1-2]"
    one = explained(
        Status(state="node_failed", node="n[1-2]"), site=EndedJob(node=NodeTrouble(node="n2", state="down"))
    )
    assert one.retry.endswith("--exclude-node n2")


def test_no_gpu() -> None:
    line = "RuntimeError: No CUDA GPUs are available\n"
    here = msgspec.structs.replace(RUN, context_type="local", context="local")
    cause = cause_of(Evidence(run=here, status=failed(), err=line), known())
    assert cause.sentence.endswith(
        ": without `--gpus`, a run on this machine sees only the GPUs that no other run holds"
    )
    assert cause.retry.endswith("--gpus 1") and explained(failed(), line).sentence == "the program found no GPU"
    holds = msgspec.structs.replace(RUN, resources=Resources(gpus=1))
    cause = cause_of(Evidence(run=holds, status=failed(), err=line), known())
    assert cause.retry == "" and "ask for one" not in cause.advice


def test_every_rule_is_complete() -> None:
    names = [each.name for each in known()]
    assert len(set(names)) == len(names)
    for each in known():
        assert each.advice and not each.cause.endswith(".")
    assert known()[-1].match == "" and known()[-1].exits == ()


def test_a_log_of_anything_has_a_cause() -> None:
    for err in ("", "\n", "\r\r\n", "\x00\x1b[31m", "Traceback (most recent call last):", "x" * 100_000):
        cause = explained(failed(), err)
        assert cause.sentence and msgspec.json.encode(cause)


def test_an_error_that_the_program_handled_is_not_the_cause() -> None:
    log = "Traceback (most recent call last):\n  File 'a.py', line 1\nValueError: handled\n" + "more\n" * 5
    assert explained(failed(7), log).sentence == (
        "the command ended with exit code 7; the last error in its log is ValueError: handled"
    )
    assert explained(failed(1), log).sentence == "it ended with ValueError: handled"


def test_killed() -> None:
    """What it used is said if it is near the limit, or if there is none."""
    killed = Status(state="failed", signal=9, usage=Usage(memory_mb=30_000, largest_process=True))
    assert explained(killed).sentence.endswith("for lack of memory; measured: 29.3 GB")
    little = Status(state="failed", signal=9, usage=Usage(memory_mb=100))
    assert explained(little).sentence.endswith("for lack of memory")


def test_more_memory_than_was_measured() -> None:
    killed = Status(state="out_of_memory", usage=Usage(memory_mb=5000))
    assert (
        explained(killed).retry == "yurt retry 1aaaaaa-bbbbb --mem 10000M"
        and "measured: 4.88 GB" in explained(killed).sentence
    )
    missed = Status(state="out_of_memory", usage=Usage(memory_mb=100))
    assert (
        explained(missed).retry == "yurt retry 1aaaaaa-bbbbb --mem 4G" and "measured" not in explained(missed).sentence
    )
