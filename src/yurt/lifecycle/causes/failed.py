"""Finds the cause of a failed run in its status and the end of its logs. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.lifecycle.causes import amounts
from yurt.lifecycle.causes.amounts import memory
from yurt.model import hostlist, time_limit
from yurt.model.again import again, filled
from yurt.model.run import Run, Status
from yurt.model.waiting import EndedJob

if TYPE_CHECKING:
    from yurt.lifecycle.causes.rules import Rule

LAST = 60
"""Lines at the end of a log that are searched before all others: what ended the run is there."""

OWN_LINES = "yurt: "
"""How lines begin that yurt itself writes to a log."""

LONG = 300
"""Characters of a line that are kept."""


GENERAL = ("exit-code", "signal", "cancelled", "lost", "not-started", "rejected", "outputs-not-copied", "unknown")
"""Causes that say no more than the reason of a run."""

OF_STATES = ("out-of-memory", "time-limit", "node-failed")
"""Causes that follow from the state of a run alone. Its reason may say more."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a run that ended."""

    run: Run
    status: Status
    out: str = ""
    """The end of its standard output."""
    err: str = ""
    """The end of its standard error."""
    brief: bool = False
    """Whether only the ends of the logs are searched: that is quick, and nearly always enough."""
    site: EndedJob = EndedJob()
    """What its site says about its job and its node."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run failed."""

    name: str
    """The name of the rule; failures with the same name are grouped."""
    sentence: str
    """The cause in words."""
    advice: str = ""
    """What to do about it."""
    retry: str = ""
    """The changed command to type; empty if no option helps."""
    line: str = ""
    """The line of the log that shows it."""
    traceback: str = ""
    """The last traceback of Python in the log."""

    def short(self, reason: str) -> str:
        """Return the sentence if it says more than the recorded reason; else nothing."""
        if self.name in GENERAL:
            return ""
        if self.name in OF_STATES:
            return self.sentence if self.sentence != reason and self.sentence.startswith(reason) else ""
        return self.sentence


def cause_of(evidence: Evidence, rules: Sequence[Rule]) -> Cause:
    """Return the cause according to the first rule that applies. The last rule should apply to everything."""
    status = evidence.status
    tried = [each for each in rules if each.applies(status.state, status.exit_code, status.signal)]
    logs = [_lines(evidence.err), _lines(evidence.out)]
    ends = [each[-LAST:] for each in logs]
    for lines in ([*ends[0], *ends[1]], [] if evidence.brief else [*logs[0], *logs[1]]):
        for rule in tried:
            if rule.match and (found := rule.find(lines)) is not None:
                groups, line = found
                return _made(rule, evidence, groups, line.strip()[:LONG])
    for rule in tried:
        if not rule.match:
            return _made(rule, evidence, {}, "")
    return Cause(name="unknown", sentence=status.reason or f"it is {status.state}", traceback=last_traceback(logs))


def last_traceback(logs: Sequence[Sequence[str]]) -> str:
    """Return the last traceback of Python in the lines of some logs; empty if there is none."""
    for lines in logs:
        for at in range(len(lines) - 1, -1, -1):
            if lines[at].lstrip().startswith("Traceback (most recent call last)"):
                return "\n".join(_traceback(lines[at:]))
    return ""


def _traceback(lines: Sequence[str]) -> list[str]:
    """Return the lines of a traceback, which begins with the first one, up to its error."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    found = [lines[0][indent:]]
    for line in lines[1:]:
        inner = line[indent:]
        found.append(inner)
        if inner and not inner[0].isspace():
            break
    return [line[:LONG] for line in found]


def _lines(text: str) -> list[str]:
    """Return the lines of a log, without those of yurt. Of a progress bar, which overwrites itself, only its last state
    counts."""
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return [_cut(line) for line in lines if line.strip() and not line.startswith(OWN_LINES)]


def _cut(line: str) -> str:
    """Return a line without its middle if it is long: expressions are slow on such lines."""
    return line if len(line) <= 2 * LONG else f"{line[:LONG]} … {line[-LONG:]}"


def _made(rule: Rule, evidence: Evidence, groups: dict[str, str], line: str) -> Cause:
    run = evidence.run
    words = {**_words(evidence), **groups}
    retry = _filled(rule.retry, words).strip()
    return Cause(
        name=rule.name,
        sentence=_filled(rule.cause, words),
        advice=filled(rule.advice, run, words),
        retry=again(run, retry) if retry and "?" not in retry else "",
        line=line,
        traceback=last_traceback([_lines(evidence.err), _lines(evidence.out)]),
    )


def _filled(text: str, words: dict[str, str]) -> str:
    """Replace {name}; a name without a value becomes a question mark."""
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], "?"), text)


def _words(evidence: Evidence) -> dict[str, str]:
    run, status, wanted = evidence.run, evidence.status, evidence.run.resources
    words = {
        "command": " ".join(run.command),
        "code": str(status.exit_code),
        "reason": status.reason or status.state,
        "signal": _signal(status.signal),
        **_of_gpus(run),
        **_of_node(evidence),
        "of_mem": "",
        "of_time": "",
        "and_used": "",
        "and_ran": "",
        "last_error": "",
        "file": "a file",
    }
    usage = status.usage
    limit = wanted.memory_mb or (usage.memory_limit_mb if usage is not None else None)
    if limit:
        words |= {"mem": memory(limit), "of_mem": f" of {memory(limit)}"}
    used = _used_mb(evidence)
    if used and used >= (limit or 0) / 2:  # much less was measured long before the end
        words |= {"used": memory(used), "and_used": f"; measured: {memory(used)}"}
    if limit:
        words["twice_mem"] = _option(2 * max(limit, math.ceil(used or 0)))
    if error := last_traceback([_lines(evidence.err), _lines(evidence.out)]).splitlines()[-1:]:
        words["last_error"] = f"; the last error in its log is {error[0].strip()}"
    if status.seconds:
        words["ran"] = amounts.time(status.seconds / 60) if status.seconds >= 60 else f"{status.seconds:.0f} s"
        words["and_ran"] = f"; it ran for {words['ran']}"
    if seconds := time_limit.of_run(run):
        limit_in_words = amounts.time(seconds / 60) if seconds % 60 == 0 else f"{seconds} s"
        words |= {"time": limit_in_words, "of_time": f" of {limit_in_words}"}
    if minutes := wanted.minutes or math.ceil((status.seconds or 0.0) / 60):
        words["twice_time"] = f"{2 * minutes}m"
    return words


def _of_gpus(run: Run) -> dict[str, str]:
    """Return the words about the GPUs that a run did not find."""
    if run.resources.gpus:
        more = "check with `nvidia-smi` in the run what it has, and that its packages support this GPU"
        return {"hidden": "", "with_gpu": more, "one_gpu": ""}
    here = run.context_type == "local"
    hidden = ": without `--gpus`, a run on this machine sees only the GPUs that no other run holds" if here else ""
    return {"hidden": hidden, "with_gpu": "ask for one with `--gpus 1`", "one_gpu": "--gpus 1"}


def _of_node(evidence: Evidence) -> dict[str, str]:
    """Return the words about the node of a run: which one failed, and how to start it again without it."""
    run, node, bad = evidence.run, evidence.status.node, evidence.site.node
    about = ""
    if bad is not None and bad.node:
        node, about = bad.node, f" ({bad.state}: {bad.reason})" if bad.reason else ""
    known = bool(node) and not set(node) & set("[,")  # of several nodes, it is unknown which one failed
    exclude, advice = "", f"run it again with `{again(run)}`"  # a new dev node avoids nodes that failed
    if known and run.purpose != "dev" and hostlist.contains(run.resources.nodelist or "", node):
        advice = f"it requires this node (`--nodelist`): when {node} is back, {advice}"
    elif known and run.purpose != "dev" and run.context_type == "slurm":
        exclude, advice = f"--exclude-node {node}", "run it again, on another node"
    on_node = f": {node}{about}" if node else ""
    return {"node": node, "on_node": on_node, "without_node": advice, "exclude_node": exclude}


def _used_mb(evidence: Evidence) -> float | None:
    """Return the most memory that a run used, as its job measured it, else according to the accounting of its site."""
    usage = evidence.status.usage
    return (usage.memory_mb if usage is not None else None) or evidence.site.used_mb


def _option(amount: int) -> str:
    """Return an amount of memory as an option has it."""
    return f"{amount // 1024}G" if amount % 1024 == 0 else f"{amount}M"


def _signal(number: int | None) -> str:
    import signal as signals  # builds its enumerations when it is imported

    try:
        return f"{number} ({signals.Signals(number or 0).name})"
    except ValueError:
        return str(number)
