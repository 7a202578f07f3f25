"""A bug report in Markdown that identifies neither the user nor a site and contains no secret."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

import yurt
from yurt.config import contexts, paths
from yurt.config import facts as cache
from yurt.contexts.doctor.finding import Examined
from yurt.contexts.doctor.mask import masked, names
from yurt.contexts.person import person
from yurt.errors import CODES, YurtError
from yurt.model.context import LOCAL, Context

SAFE_KEYS = ("type", "cmd_type", "track", "login_profile", "env_place", "resources", "ntasks")
"""Settings of a context whose values a report contains; of the others, it contains only the names."""

TITLE = "# Bug report"

COMMON = {"root", "local", "localhost", "main", "default", "yurt", "ssh", "slurm", "true", "false", "home", "folder"}
"""Words that identify nobody, and that the report itself uses."""


def text(examined: Sequence[Examined], traceback: str) -> str:
    """Return the report. `traceback`: the content of bug-report.txt, or nothing."""
    known = _contexts()
    own = {word for each in examined for finding in each.findings for word in finding.check.lower().split()}
    words = _words(known, COMMON | own | set(Context.__struct_fields__) | _of_codes())
    lines = [TITLE, "", *_versions(), "", "## Settings", ""]
    lines += [f"- {words.get(each.name, each.name)}: {_settings(each)}" for each in known]
    for each in examined:
        lines += ["", f"## {words.get(each.context, each.context) or 'This machine'}", ""]
        lines += [f"- {finding.result}: {finding.check}: {finding.text}" for finding in each.findings]
    if traceback:
        lines += ["", "## Last internal error", "", *_frames(traceback)]
    lines += ["", "## What happened", "", "(describe it here)", ""]
    return masked("\n".join(lines), words, _secrets(known))


def _versions() -> list[str]:
    system = f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}"
    return [f"- yurt {yurt.__version__}", f"- Python {platform.python_version()}", f"- {system}"]


def _contexts() -> list[Context]:
    try:
        return list(contexts.load(contexts.default_file()).contexts.values())
    except YurtError:
        return [LOCAL]


def _settings(context: Context) -> str:
    """Return the values of the settings that identify nobody, and the names of the others."""
    body = msgspec.to_builtins(context)
    shown = {key: body[key] for key in SAFE_KEYS if key in body}
    others = sorted(key for key in body if key not in SAFE_KEYS and key != "name")
    return msgspec.json.encode(shown).decode() + (f"; also set: {', '.join(others)}" if others else "")


def _of_codes() -> set[str]:
    return {word for code in CODES for word in code.split("-")}


def _words(known: Sequence[Context], common: set[str]) -> dict[str, str]:
    """Return the names of users, hosts, contexts, accounts and partitions, with their placeholders.

    Names that are also words of the report, such as a host `login`, are left out.
    """
    users, hosts, accounts = [person()], [socket.gethostname(), socket.gethostname().partition(".")[0]], []
    partitions: list[str] = []
    for each in known:
        user, _, host = (each.slurm_url or "").rpartition("@")
        facts = cache.load(each)
        users += [user, facts.user if facts else ""]
        hosts += [host, host.partition(".")[0], *((facts.host, facts.cluster) if facts else ())]
        accounts += [each.account or "", *(found.name for found in (facts.accounts if facts else ()))]
        partitions += [each.partition or "", *(found.name for found in (facts.partitions if facts else ()))]
    kinds: dict[str, Iterable[str]] = {
        "CONTEXT": [each.name for each in known],
        "USER": users,
        "HOST": hosts,
        "ACCOUNT": accounts,
        "PARTITION": partitions,
        "PROJECT": [Path.cwd().name],
        "FOLDER": [Path.home().name],
    }
    return names({kind: [word for word in found if word.lower() not in common] for kind, found in kinds.items()})


def _secrets(known: Sequence[Context]) -> list[str]:
    """Return values that must not be in a report: those of the environment and of contexts' variables."""
    ordinary = {"utf-8", "xterm", "linux", "bash", *COMMON}
    own = [value for key, value in os.environ.items() if not key.startswith("LC_") and len(value) >= 8]
    found = [*own, *(value for each in known for value in each.variables.values())]
    return [value for value in found if value.lower() not in ordinary]


def _frames(traceback: str) -> list[str]:
    """Return the frames in yurt's own files and the type of the error. Its message may contain anything."""
    package = Path(yurt.__file__).parent
    found = []
    for file, line, function in re.findall(r'^  File "([^"]*)", line (\d+), in (\w+|<\w+>)$', traceback, re.MULTILINE):
        below = file.rpartition("/yurt/")[2]
        if "/yurt/" in file and (package / below).is_file():
            found.append(f"    {below}:{line} in {function}")
    types = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception|Exit|Interrupt))\b", traceback, re.MULTILINE)
    builtin = [each for each in types if hasattr(sys.modules["builtins"], each) or each in ("YurtError",)]
    return [*found, f"    {builtin[-1]}" if builtin else "    another type of error"]


def default_file() -> Path:
    return paths.data_home() / "doctor-report.md"


def write(file: Path | None, content: str) -> Path:
    """Write the report, mode 0600, to a file or to the data folder; return its path."""
    target = file if file is not None else default_file()
    paths.write_private(target.absolute(), content.encode(errors="backslashreplace"))
    return target
