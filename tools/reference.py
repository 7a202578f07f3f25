"""Writes docs/reference from the code. `--check` only tells whether it is up to date."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

sys.path.insert(0, str(Path(__file__).parent))
import python_reference

from yurt.cli import main
from yurt.cli.app import every_command
from yurt.config.contexts import Merged
from yurt.errors import CODES
from yurt.lab import Started
from yurt.lab.status import LabStatus
from yurt.lifecycle.files.transfer import Fetched
from yurt.lifecycle.tasks import SweepShown
from yurt.model.context import Context, ContextResources
from yurt.model.facts import Facts
from yurt.model.settings import TABLE
from yurt.store import Entry
from yurt.verbs import context
from yurt.verbs.agent import Round
from yurt.verbs.cancel import Cancelled
from yurt.verbs.cluster import Cluster
from yurt.verbs.context_add import Added
from yurt.verbs.diff import Difference
from yurt.verbs.import_ import Imported
from yurt.verbs.lab import FaultSet
from yurt.verbs.login import LoggedIn
from yurt.verbs.logs import LogLine
from yurt.verbs.prune import Pruned
from yurt.verbs.prune_all import Cleared
from yurt.verbs.ps import Row
from yurt.verbs.run import PlanView
from yurt.verbs.secret import Secret
from yurt.verbs.show import Shown

FOLDER = Path(__file__).parent.parent / "docs" / "reference"

KINDS: dict[str, tuple[str, Any]] = {
    "run": ("yurt run", Entry),
    "plan": ("yurt run --dry-run", PlanView),
    "runs": ("yurt ps", list[Row]),
    "run-shown": ("yurt show", Shown),
    "sweep-shown": ("yurt show SWEEP", SweepShown),
    "log": ("yurt logs, one envelope a line", LogLine),
    "runs-ended": ("yurt wait", list[Entry]),
    "runs-cancelled": ("yurt cancel", list[Cancelled]),
    "runs-retried": ("yurt retry", list[Entry]),
    "runs-fetched": ("yurt fetch", list[Fetched]),
    "runs-pruned": ("yurt prune", Pruned),
    "context-cleared": ("yurt prune --all", Cleared),
    "diff": ("yurt diff", Difference),
    "runs-imported": ("yurt import", Imported),
    "agent-round": ("yurt agent once", Round),
    "contexts": ("yurt context list", context.Contexts),
    "context": ("yurt context show", context.Shown),
    "context-resolved": ("yurt context show --resolved", context.Resolved),
    "context-edited": ("yurt context edit", context.Edited),
    "context-copied": ("yurt context copy", context.Copied),
    "context-used": ("yurt context use", context.Used),
    "contexts-removed": ("yurt context remove", context.Removed),
    "contexts-imported": ("yurt context import", Merged),
    "context-added": ("yurt context add", Added),
    "facts": ("yurt context probe", Facts),
    "cluster": ("yurt cluster", Cluster),
    "login": ("yurt login", list[LoggedIn]),
    "secret-set": ("yurt secret set", Secret),
    "secrets": ("yurt secret list", list[Secret]),
    "secret-removed": ("yurt secret remove", Secret),
    "lab-started": ("yurt lab up", Started),
    "lab-stopped": ("yurt lab down", None),
    "lab-settings": ("yurt lab set", None),
    "lab-status": ("yurt lab status", LabStatus),
    "lab-fault": ("yurt lab fault …", FaultSet),
    "command": ("yurt lab shell", None),
    "completion": ("yurt completion", None),
}

HEAD = "<!-- Written by `make docs` from the code; do not edit. -->\n\n"

EXIT_CODES = """\
| exit code | meaning |
|---|---|
| 0 | done |
| 1 | the run asked about failed |
| 2 | wrong usage or configuration |
| 3 | not found |
| 4 | the site could not be reached or asked; safe to repeat |
| 5 | the site, or this machine, refused |
| 70 | a bug in yurt |
| 130 | interrupted |
"""


def cli_page() -> str:
    parts = [f"{HEAD}# Commands\n"]
    for words, command in every_command(main.root):
        text = command.get_help(click.Context(command, info_name=words, terminal_width=96, max_content_width=96))
        parts.append(f"## {words}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def errors_page() -> str:
    rows = "".join(f"| `{code}` | {line} |\n" for code, line in CODES.items())
    return f"{HEAD}# Errors and exit codes\n\n{EXIT_CODES}\n| error code | meaning |\n|---|---|\n{rows}"


def json_page() -> str:
    parts = [
        f"{HEAD}# JSON\n\nEvery verb takes `--json` and prints one envelope on standard output:\n\n"
        '```json\n{"yurt": 1, "kind": "…", "data": …, "warnings": ["…"]}\n```\n\nor, if it failed,\n\n'
        '```json\n{"yurt": 1, "error": {"code": "…", "fault": "user|site|transient|bug", '
        '"message": "…", "hint": "…"}}\n```\n\n'
        "The number after `yurt` changes only if a reader of the old envelope would break.\n"
    ]
    for kind, (words, shape) in KINDS.items():
        parts.append(f"## {kind}\n\nPrinted by `{words}`.\n")
        if shape is not None:
            schema = json.dumps(_described(msgspec.json.schema(shape)), indent=1, ensure_ascii=False)
            parts.append(f"```json\n{schema}\n```\n")
    return "\n".join(parts)


def contexts_page() -> str:
    table = {row.key: row for row in TABLE if row.key}
    keys = [*Context.__struct_fields__, *(f"resources.{key}" for key in ContextResources.__struct_fields__)]
    rows = "".join(
        f"| `{key}` | {table[key].about} | {', '.join(f'`{other}`' for other in table[key].aliases)} "
        f"| `{table[key].example}` |\n"
        for key in keys
    )
    return (
        f"{HEAD}# contexts.yaml\n\nIn `$YURT_CONFIG_HOME`, else the platform's configuration folder "
        "(`~/.config/yurt` on Linux).\n\n```yaml\ncontexts:\n  alpha:\n    type: slurm\n    slurm_url: alice@alpha\n"
        "current_context: alpha\n```\n\n"
        "A context is called by its key: letters, digits, `.`, `_` and `-`, with a letter or a digit first. `type` "
        "must be there, and `slurm_url` where the type is slurm. `local` exists without standing in the file. A file "
        "of mrunner's loads as it is; the other names are those mrunner used, and its `env` of variables is "
        "`variables`. A list may be written as one string of words, a mapping as a list or a string of `key=value`. "
        "Values are read as they are typed, so `12:00:00` and `0123` need no quotes; a bare time is minutes, a bare "
        "amount of memory MB. `tpu` is refused: yurt runs on no TPUs.\n\n"
        f"| key | meaning | other names | example |\n|---|---|---|---|\n{rows}"
    )


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in which each key of a context says what it means."""
    about = {row.key: row.about for row in TABLE if row.key}
    for kind, prefix in (("Context", ""), ("ContextResources", "resources.")):
        properties = schema.get("$defs", {}).get(kind, {}).get("properties", {})
        properties |= {key: {"description": about[prefix + key], **each} for key, each in properties.items()}
    return schema


PAGES = {
    "cli.md": cli_page,
    "errors.md": errors_page,
    "json.md": json_page,
    "contexts.md": contexts_page,
    "python.md": python_reference.page,
}


def stale() -> list[str]:
    """Pages that do not say what the code says."""
    return [
        name for name, page in PAGES.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != page()
    ]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"stale, run make docs: {', '.join(stale())}" if stale() else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for _name, _page in PAGES.items():
        (FOLDER / _name).write_text(_page())
    print(f"docs: wrote {', '.join(PAGES)} in docs/reference")
