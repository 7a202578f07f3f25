"""The script that examines a site for `yurt doctor`, and its output as values. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from shlex import quote

import msgspec

from yurt.backends import scripts
from yurt.model.disk import Quota, Space, number, read_quotas, read_spaces


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What the script found."""

    began: int | None = None
    ended: int | None = None
    """The clock of the site, in seconds since 1970, when the script began and ended."""
    user: str = ""
    host: str = ""
    shell: str = ""
    tools: dict[str, str] = {}
    profile_code: int = 0
    profile_output: str = ""
    spaces: dict[str, Space] = {}
    quotas: list[Quota] = []
    owner_code: int = 0
    unsafe: str = ""
    real_storage: str = ""
    """The storage folder with its symbolic links resolved, if it has any."""
    written: bool = False
    write_error: str = ""
    module_system: bool = False
    missing_modules: list[str] = []
    missing_paths: dict[str, str] = {}
    """Settings of the context that name a file that does not exist, with that file."""
    slurm: bool = True
    slurm_error: str = ""
    slurm_version: str = ""
    partitions: dict[str, str] = {}
    """The state of each partition: up, down, drain or inact."""
    accounts: list[str] = []
    submit_error: str = ""


def script(*, slurm: bool, options: Sequence[str] = ()) -> str:
    """Return the script. `options`: those of sbatch that the context sets."""
    parts = [scripts.text("own.sh", "job"), scripts.text("doctor.sh")]
    if slurm:
        words = " ".join(each for each in options if re.fullmatch(r"[\w.,:@%+=-]+", each))
        parts += [f"scheduler={quote(words)}\n", scripts.text("doctor.sh", "slurm")]
    return "".join([*parts, "\nsection end\ndate +%s\n"])


def read(parts: Mapping[str, list[str]]) -> Site:
    """Return the values in the sections of the script's output. Missing ones keep their defaults."""
    user, host, shell = (*parts.get("who", []), "", "", "")[:3]
    profile = parts.get("profile", [])
    owner = parts.get("owner", [])
    write = parts.get("write", [])
    sinfo, submit = parts.get("sinfo", []), parts.get("submit", [])
    silent = bool(sinfo) and sinfo[0].startswith("silent ")
    code, _, unsafe = (owner[0] if owner else "0 ").partition(" ")
    return Site(
        began=number(_first(parts, "begin")),
        ended=number(_first(parts, "end")),
        user=user,
        host=host,
        shell=shell,
        tools=dict(line.split(" ", 1) for line in parts.get("tools", []) if " " in line),
        profile_code=number(profile[0].removeprefix("code ")) or 0 if profile else 0,
        profile_output=" ".join(profile[1:]),
        spaces=read_spaces(parts.get("space", [])),
        quotas=read_quotas(parts.get("quota", [])),
        owner_code=number(code) or 0,
        unsafe=unsafe,
        real_storage=next((line[5:] for line in owner if line.startswith("real ")), ""),
        written=write[-1:] == ["written"],
        write_error=write[-1] if write and write[-1] != "written" else "",
        module_system=any(line.startswith("found") for line in parts.get("modules", [])),
        missing_modules=[line[8:] for line in parts.get("modules", []) if line.startswith("missing ")],
        missing_paths=dict(line.split("=", 1) for line in parts.get("paths", []) if "=" in line),
        slurm=sinfo != ["missing"],
        slurm_error=sinfo[-1].removeprefix("silent ") if silent else "",
        slurm_version=_first(parts, "version").removeprefix("slurm-wlm ").removeprefix("slurm "),
        partitions=dict(line.split()[1:3] for line in sinfo if re.fullmatch(r"partition \S+ \S+", line)),
        accounts=parts.get("accounts", []),
        submit_error="" if not submit or submit[-1] == "taken" else _refusal(submit),
    )


def _refusal(lines: Sequence[str]) -> str:
    """Return the reason in sbatch's output."""
    reasons = [re.sub(r"^(sbatch: )?(error: )?(allocation failure: )?", "", line) for line in lines]
    return next((each for each in reversed(reasons) if each), "no error message")


def _first(parts: Mapping[str, list[str]], name: str) -> str:
    return next(iter(parts.get(name, [])), "").strip()
