"""The script that examines a site for `yurt doctor`, and its output as values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from yurt.backends import scripts
from yurt.backends.job.script import quote


class Space(msgspec.Struct, frozen=True):
    """The free space and inodes of a file system; None if df does not say."""

    path: str
    total_kb: int | None
    free_kb: int | None
    inodes: int | None
    free_inodes: int | None


class Quota(msgspec.Struct, frozen=True):
    """A user's use of a file system and the limits; 0 means no limit."""

    path: str
    used_kb: int
    limit_kb: int
    files: int
    file_limit: int


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
        began=_number(_first(parts, "begin")),
        ended=_number(_first(parts, "end")),
        user=user,
        host=host,
        shell=shell,
        tools=dict(line.split(" ", 1) for line in parts.get("tools", []) if " " in line),
        profile_code=_number(profile[0].removeprefix("code ")) or 0 if profile else 0,
        profile_output=" ".join(profile[1:]),
        spaces=read_spaces(parts.get("space", [])),
        quotas=read_quotas(parts.get("quota", [])),
        owner_code=_number(code) or 0,
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


def read_spaces(lines: Iterable[str]) -> dict[str, Space]:
    """Return the rows NAME TOTAL FREE INODES FREE-INODES PATH."""
    found: dict[str, Space] = {}
    for line in lines:
        fields = line.split(" ", 5)
        if len(fields) == 6:
            found[fields[0]] = Space(fields[5], *(_number(each) for each in fields[1:5]))
    return found


def read_quotas(lines: Iterable[str]) -> list[Quota]:
    """Return the rows of quota and lfs quota: PATH USED SOFT HARD [GRACE] FILES SOFT HARD [GRACE].

    The grace is absent while the use is below the soft limit; an asterisk marks a use above it.
    """
    found: dict[str, Quota] = {}
    words = " ".join(lines).split()
    while words:
        path, numbers = words.pop(0), []
        while words and not words[0].startswith("/") and not re.fullmatch(r"[\w.-]+:/.*", words[0]):
            numbers.append(words.pop(0))
        counts = [int(each.rstrip("*")) for each in numbers if re.fullmatch(r"\d+\*?", each)]
        if path.startswith("/") or ":/" in path:
            used, soft, hard, files, soft_files, hard_files = (*counts, 0, 0, 0, 0, 0, 0)[:6]
            found[path] = Quota(path, used, soft or hard, files, soft_files or hard_files)
    return list(found.values())


def _refusal(lines: Sequence[str]) -> str:
    """Return the reason in sbatch's output."""
    reasons = [re.sub(r"^(sbatch: )?(error: )?(allocation failure: )?", "", line) for line in lines]
    return next((each for each in reversed(reasons) if each), "no error message")


def _first(parts: Mapping[str, list[str]], name: str) -> str:
    return next(iter(parts.get(name, [])), "").strip()


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
