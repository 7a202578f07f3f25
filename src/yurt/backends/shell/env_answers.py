"""Parses what the scripts for environments print on a site."""

from __future__ import annotations

import re
from collections.abc import Sequence

from yurt.model.env import EnvState, EnvTools, SitePython, UnusedEnv
from yurt.model.site_words import count, moment, whole

PYTHON_MODULE = re.compile(r"((?:[\w.+-]+/)*c?python3?/3\.\d[\w.+-]*)(?:\([\w:, ]*\))*$", re.IGNORECASE)
"""A line of `module -t avail` about a Python: `python/3.11.5(default)`, `Python/3.11.3-GCCcore-12.3.0`."""


def read_tools(mark: str, text: str, *, now: float) -> EnvTools:
    """Parse the output of env_ask.sh."""
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(f"{mark} "):
            name = line.split()[1]
            sections[name] = []
        elif name and line.strip():
            sections[name].append(line)
    platform = [*sections.get("platform", []), "", "", ""]
    words = [line.split(" ", 2) for line in sections.get("pythons", [])]
    pythons = [SitePython(word[0], word[2], word[1] == "venv") for word in words if len(word) == 3]
    available = [found[1] for line in sections.get("available", []) if (found := PYTHON_MODULE.match(line.strip()))]
    tools = dict(reversed([line.split(" ", 1) for line in sections.get("tools", []) if " " in line]))
    return EnvTools(
        asked_at=now,
        machine=platform[0],
        libc=platform[1],
        cpu_seconds=whole(platform[2]) if platform[2].isdigit() else None,
        pythons=list({each.path: each for each in pythons}.values()),
        uv=tools.get("uv", ""),
        conda=tools.get("conda", "") or tools.get("mamba", ""),
        compiler=tools.get("gcc", ""),
        cuda=next(iter(sections.get("cuda", [])), ""),
        index="reachable" in sections.get("index", []),
        python_modules=list(dict.fromkeys(available)),
        modules_failed="" if "platform" in sections else " ".join(sections.get("modules", [])),
    )


def read_states(text: str) -> list[EnvState]:
    """Parse the output of env_look.sh."""
    found: list[EnvState] = []
    for block in f"\n{text}".split("\n= ")[1:]:
        head, _, body = block.partition("\n")
        condition, _, folder = head.partition(" ")
        lines: dict[str, list[str]] = {}
        for line in body.split("\n"):
            key, _, value = line.partition(" ")
            lines.setdefault(key, []).append(value)
        size = (lines.get("size") or ["0 0"])[0].split()
        found.append(
            EnvState(
                folder=folder,
                condition=condition,  # type: ignore[arg-type]
                entries=count(size[0]),
                kilobytes=count(size[-1]),
                installed=count((lines.get("installed") or ["0"])[0]),
                pack_kilobytes=count((lines.get("pack") or ["0"])[0]),
                phase=(lines.get("phase") or [""])[0],
                built=_time(lines.get("ready")),
                used=_time(lines.get("used")),
                definition=(lines.get("definition") or [""])[0].encode(),
                lacking=lines.get("lacking", []),
                change=(lines.get("change") or [""])[0],
                failure="\n".join(lines.get("failed", [])).strip(),
                lock="\n".join(lines.get("lock", [])),
            )
        )
    return found


def read_unused(text: str) -> list[UnusedEnv]:
    """Parse the output of env_prune.sh."""
    found: list[UnusedEnv] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "wheels":
            files, kilobytes = rest.split()
            found.append(UnusedEnv(what="wheels", files=count(files), kilobytes=count(kilobytes)))
        elif word in ("env", "replaced"):
            address, files, kilobytes, used, definition = (*rest.split(" ", 4), "", "")[:5]
            found.append(
                UnusedEnv(
                    what="environment" if word == "env" else "replaced",
                    address=address,
                    files=count(files),
                    kilobytes=count(kilobytes),
                    used=moment(used) if used else None,
                    definition=definition.encode(),
                )
            )
    return found


def _time(values: Sequence[str] | None) -> float | None:
    return moment(values[0]) if values else None
