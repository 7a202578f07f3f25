"""The probe of a Slurm site: the script, and the parser of its output. Pure."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable

from yurt.backends import scripts
from yurt.model.facts import MAX_ARRAY, Account, Facts, NodeKind, Partition, Qos, Tier
from yurt.model.sizes import MB

TIERS = {"HOME": "home", "SCRATCH": "scratch", "PROJECT": "project", "WORK": "project", "ARCHIVE": "archive"}
SILENT = 7
"""Exit code of the script if Slurm is installed and its controller does not respond."""

NO_LIMIT = ("UNLIMITED", "INFINITE", "NONE", "N/A", "NOT_SET", "")


def script() -> str:
    return scripts.text("probe.sh", "slurm")


def new_mark() -> str:
    return f"yurt-{secrets.token_hex(6)}"


def sections(mark: str, text: str) -> dict[str, list[str]]:
    """Split the output at its marks: name -> lines."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(mark + " "):
            lines = found.setdefault(line[len(mark) + 1 :].strip(), [])
        elif line.strip():
            lines.append(line.rstrip())
    return found


def read(mark: str, text: str, *, now: float) -> Facts:
    """Return the facts in a probe's output. Missing values keep their defaults."""
    parts = sections(mark, text)
    user, host, shell = (*parts.get("who", []), "", "", "")[:3]
    config = read_config(parts.get("config", []))
    accounting = config.get("AccountingStorageType", "").endswith("slurmdbd")
    kinds = read_nodes(parts.get("nodes", []))
    default_account = next(iter(parts.get("default-account", [])), "")
    refusal = _refusal(parts.get("submit", []))
    modules, init = read_modules(parts.get("modules", []))
    return Facts(
        probed_at=now,
        user=user,
        host=host,
        shell=shell,
        slurm_version=config.get("SLURM_VERSION", ""),
        cluster=config.get("ClusterName", ""),
        accounting=accounting,
        accounting_silent=accounting and parts.get("accounting", []) == ["silent"],
        partitions=[read_partition(line, kinds) for line in parts.get("partitions", []) if "PartitionName=" in line],
        accounts=read_accounts(parts.get("associations", []), default_account),
        qos=[read_qos(line) for line in parts.get("qos", [])],
        max_array=_number(config.get("MaxArraySize", ""), MAX_ARRAY),
        min_job_age=_number(config.get("MinJobAge", ""), 300),
        kill_wait=_number(config.get("KillWait", ""), 30),
        enforces_limits=config.get("EnforcePartLimits", "NO") != "NO",
        # If every submission is refused, nothing is known about requeueing.
        requeue=bool(refusal) or not _refusal(parts.get("submit-requeue", [])),
        requeue_refusal="" if refusal else _refusal(parts.get("submit-requeue", [])),
        home_refusal="" if refusal else _refusal(parts.get("submit-home", [])),
        variables=read_config(parts.get("variables", [])),
        sbatch_variables=read_config(parts.get("sbatch", [])),
        marks=read_config(parts.get("marks", [])),
        tiers=read_tiers(parts.get("tiers", [])),
        modules=modules,
        modules_init=init,
        pythons=read_pythons(parts.get("pythons", [])),
        tools=dict(line.split(" ", 1) for line in parts.get("tools", []) if " " in line),
    )


def read_config(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def read_partition(line: str, kinds: dict[str, list[NodeKind]]) -> Partition:
    fields = dict(re.findall(r"(\w+)=(\S+)", line))
    name = fields.get("PartitionName", "")
    preempt = fields.get("PreemptMode", "OFF").split(",")[-1]
    allowed = fields.get("AllowAccounts", "ALL")
    return Partition(
        name=name,
        default=fields.get("Default") == "YES",
        up=fields.get("State", "UP") == "UP",
        max_minutes=minutes(fields.get("MaxTime", "")),
        default_minutes=minutes(fields.get("DefaultTime", "")),
        grace_seconds=_number(fields.get("GraceTime", ""), 0),
        preempt="" if preempt in ("OFF", "NONE") else preempt.lower(),
        max_nodes=_limit(fields.get("MaxNodes", "")),
        accounts=[] if allowed == "ALL" else allowed.split(","),
        nodes=kinds.get(name, []),
    )


def read_nodes(lines: Iterable[str]) -> dict[str, list[NodeKind]]:
    """Return the kinds of nodes of each partition, from sinfo's %R|%D|%c|%m|%G|%f."""
    found: dict[str, list[NodeKind]] = {}
    for line in lines:
        fields = line.split("|")
        if len(fields) != 6:
            continue
        partition, count, cpus, memory, gres, features = fields
        gpu_type, gpus = read_gres(gres)
        kind = NodeKind(
            count=_number(count, 0),
            cpus=_number(cpus, 0),
            memory_mb=_number(memory, 0),
            gpu_type=gpu_type,
            gpus=gpus,
            features=[] if features == "(null)" else features.split(","),
        )
        found.setdefault(partition, []).append(kind)
    return found


def read_gres(text: str) -> tuple[str, int]:
    """Return (GPU type, count) of a node's gres, such as gpu:a100:2(S:0-1),tmp:1G; ("", 0) without GPUs."""
    for one in re.sub(r"\([^)]*\)", "", text).split(","):
        words = one.split(":")
        if words[0] == "gpu" and len(words) > 1 and words[-1].isdigit():
            return (words[1] if len(words) > 2 else "", int(words[-1]))
    return "", 0


def read_accounts(lines: Iterable[str], default: str) -> list[Account]:
    """Return the accounts from rows of associations; an account may have a row for each partition."""
    found: dict[str, Account] = {}
    for line in lines:
        name, _partition, qos, default_qos, max_submit = (*line.split("|"), "", "", "", "")[:5]
        known = found.get(name)
        allowed = {*(known.qos if known else []), *(each for each in qos.split(",") if each)}
        found[name] = Account(
            name=name,
            default=name == default,
            qos=sorted(allowed),
            default_qos=default_qos or (known.default_qos if known else ""),
            max_submit=_limit(max_submit),
        )
    return [found[name] for name in sorted(found)]


def read_qos(line: str) -> Qos:
    name, submit, running, wall = (*line.split("|"), "", "", "")[:4]
    return Qos(name=name, max_submit=_limit(submit), max_running=_limit(running), max_minutes=minutes(wall))


def read_tiers(lines: Iterable[str]) -> list[Tier]:
    """Return storage tiers from rows NAME WRITABLE TOTAL-KB FREE-KB PATH; the first row of each tier counts."""
    found: dict[str, Tier] = {}
    for line in lines:
        fields = line.split(" ", 4)
        if len(fields) != 5:
            continue
        variable, writable, total, free, path = fields
        name = TIERS.get(variable) or next((tier for word, tier in TIERS.items() if variable.endswith("_" + word)), "")
        if name and (name not in found or variable in TIERS):
            found[name] = Tier(
                name=name,
                variable=variable,
                path=path,
                total_mb=int(total) * 1024 // MB if total.isdigit() else None,
                free_mb=int(free) * 1024 // MB if free.isdigit() else None,
                writable=writable == "1",
            )
    return [found[name] for name in sorted(found)]


def read_modules(lines: list[str]) -> tuple[str, str]:
    """Return (kind of module system, its folder); ("", "") without one."""
    if not lines:
        return "", ""
    words = lines[-1].split()
    if words and words[0] == "lmod":
        return "lmod", words[1] if len(words) > 1 else ""
    return "environment-modules", words[0] if words else ""


def read_pythons(lines: Iterable[str]) -> list[str]:
    """Return the versions in lines such as `Python 3.11.2`, each once, in their order."""
    found = (re.fullmatch(r"Python (3\.\d+)(\.\d+)?\S*", line) for line in lines)
    return list(dict.fromkeys(each[1] + (each[2] or "") for each in found if each is not None))


def minutes(text: str) -> int | None:
    """Return the minutes of a Slurm duration, rounded up; None means no limit."""
    if text.upper() in NO_LIMIT:
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)|(?:(\d+)-)(\d+)|(\d+)", text)
    if found is None:
        return None
    days, hours, mins, seconds, only_days, only_hours, only_minutes = (int(part or 0) for part in found.groups())
    total = ((days + only_days) * 24 + hours + only_hours) * 60 + mins + only_minutes
    return total + (1 if seconds else 0)


def _refusal(lines: list[str]) -> str:
    """Return the reason why the site rejected a submission; empty if it did not."""
    if not lines or not lines[0].startswith("refused"):
        return ""
    reasons = [re.sub(r"^(refused )?(sbatch: )?(error: )?", "", line) for line in lines]
    return next((line for line in reasons if line and not line.startswith("allocation failure")), "no reason given")


def _number(text: str, otherwise: int) -> int:
    found = re.match(r"\d+", text)
    return int(found.group()) if found else otherwise


def _limit(text: str) -> int | None:
    return int(text) if text.isdigit() else None
