"""Findings about a site, from the output of its script. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from yurt.backends.shell.doctor import Site
from yurt.backends.shell.ownership import refused
from yurt.backends.slurm import versions
from yurt.contexts.doctor.finding import Finding, fault, ok, skipped, warning
from yurt.contexts.doctor.programs import dotted, version_in
from yurt.model.context import Context

SKEW_WARNING, SKEW_FAULT = 5.0, 60.0
NODE_LOCAL = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/localscratch")
OLDEST_PYTHON = (3, 6)
LEAST_KB, LEAST_INODES, NEARLY = 512 << 10, 10_000, 0.95
USES = {
    "git": "without it, yurt uploads code as a tar archive",
    "rsync": "without it, yurt downloads results as a tar archive",
    "python3": "without it, `yurt.log` and environments need a module with Python",
    "tar": "without it, yurt cannot copy files",
    "zstd": "",
    "unison": "",
}


def check(site: Site, context: Context, base: str, *, local: bool = False) -> list[Finding]:
    """Return the findings about a site that answered. `local`: the site is this machine."""
    found = [*_shell(site), *_space(site), *_storage(site, context, base, local=local), *_software(site, context)]
    return found if local else [*found, *_slurm(site, context), *_tools(site)]


def skew(site: Site, sent: float, received: float) -> tuple[float, float]:
    """Return bounds of the site's clock minus this machine's: the script ran between `sent` and `received`."""
    assert site.began is not None and site.ended is not None
    return site.ended - received, site.began + 1 - sent


def clock(site: Site, sent: float, received: float) -> Finding:
    """Compare the clocks. The time that the script took counts in favour of the site."""
    if site.began is None or site.ended is None:
        return skipped("clock", "the site did not print its time")
    least, most = skew(site, sent, received)
    certain = 0.0 if least <= 0 <= most else min(least, most, key=abs)
    middle = (least + most) / 2
    if abs(certain) <= SKEW_WARNING:
        return ok("clock", "its clock agrees with the clock of this machine")
    side = "ahead of" if middle > 0 else "behind"
    text = f"its clock is about {abs(middle):.0f} s {side} the clock of this machine"
    remedy = (
        "set the clock of this machine (`timedatectl`, or `sudo sntp -sS time.apple.com` on macOS), or tell the site"
    )
    return (fault if abs(certain) > SKEW_FAULT else warning)("clock", text, remedy)


def noise(context: Context, text: str) -> Finding:
    """Return the finding about what the dotfiles printed before the script started."""
    if not text.strip():
        return ok("dotfiles", "non-interactive shells print nothing")
    return warning(
        "dotfiles",
        "your dotfiles print text in non-interactive shells, which breaks scp and rsync",
        f"in ~/.bashrc on {context.name}, return early: `case $- in *i*) ;; *) return ;; esac`",
        detail=text.strip().splitlines()[0],
    )


def _shell(site: Site) -> Iterator[Finding]:
    yield ok("login shell", "the login shell runs yurt's scripts", site.shell)
    if site.profile_code == 124:
        remedy = "shorten your profile on the site, or set `login_profile: false` with `yurt context edit`"
        yield warning("profile", "your login profile takes more than 20 s", remedy)
    elif site.profile_code:
        text = f"your login profile ends with exit code {site.profile_code}"
        remedy = "run `bash -lc true` on the site and correct your profile: `exit`, `exec` and `set -e` break it"
        yield warning("profile", text, remedy, detail=site.profile_output)
    else:
        yield ok("profile", "the login profile runs without an error")


def _space(site: Site) -> Iterator[Finding]:
    for name, each in site.spaces.items():
        check, free = f"{name} space", f"free some space in {each.path}"
        if each.free_kb is not None and each.free_kb < LEAST_KB:
            yield warning(check, f"the {name} folder has {each.free_kb // 1024} MB of free space", free)
        elif each.inodes and each.free_inodes is not None and each.free_inodes < LEAST_INODES:
            yield warning(check, f"the {name} folder has room for {each.free_inodes} more files", free)
        elif each.free_kb is not None:
            yield ok(check, f"the {name} folder has {_gb(each.free_kb)} of free space")
    for quota in site.quotas:
        full = bool(quota.limit_kb) and quota.used_kb >= quota.limit_kb * NEARLY
        many = bool(quota.file_limit) and quota.files >= quota.file_limit * NEARLY
        over = (full and quota.used_kb >= quota.limit_kb) or (many and quota.files >= quota.file_limit)
        used = (
            f"{quota.files} of {quota.file_limit} files" if many else f"{_gb(quota.used_kb)} of {_gb(quota.limit_kb)}"
        )
        if full or many:
            text = f"your disk quota is {'exceeded' if over else 'nearly used up'}: {used}"
            remedy = f"remove files in {quota.path}, or old runs with `yurt prune`"
            yield (fault if over else warning)("quota", text, remedy, detail=quota.path)
        else:
            yield ok("quota", "your disk quota has room", quota.path)


def _gb(kb: int) -> str:
    return f"{kb / (1 << 20):.1f} GB"


def _storage(site: Site, context: Context, base: str, *, local: bool) -> Iterator[Finding]:
    edit = f"choose another folder as `storage_dir` with `yurt context edit {context.name}`"
    if site.owner_code:
        error = refused(context.name, site.owner_code, site.unsafe)
        yield fault("storage safety", "other users can change the storage folder", error.hint, detail=site.unsafe)
    elif site.written:
        yield ok("storage safety", "only you can change the storage folder", base)
    real = site.real_storage or base
    if not local and any(real == each or real.startswith(f"{each}/") for each in NODE_LOCAL):
        yield fault("storage place", "the storage folder is not shared with the compute nodes", edit, detail=real)
    elif local and real.startswith(("/tmp/", "/dev/shm/")):
        yield warning("storage place", "the storage folder is emptied at restarts", edit, detail=real)
    if site.written:
        yield ok("storage", "the storage folder is writable", base)
    else:
        remedy = f"check it with `ls -ld {quote(base.rpartition('/')[0] or '/')}` on {context.name}, or {edit}"
        reason = site.write_error.rpartition(": ")[2] or "no error message"
        yield fault("storage", "cannot write to the storage folder", remedy, detail=f"{base}: {reason}")


def _software(site: Site, context: Context) -> Iterator[Finding]:
    edit = f"correct it with `yurt context edit {context.name}`"
    if context.modules_to_load and not site.module_system:
        yield fault("modules", "the context loads modules, and the site has no `module` command", edit)
    for name in site.missing_modules if site.module_system else ():
        remedy = f"list them with `module avail` on {context.name}; {edit}"
        yield fault("modules", "a module of the context does not exist", remedy, detail=name)
    if site.module_system and not site.missing_modules:
        named = len(context.modules_to_load)
        yield ok("modules", f"the context's {named} modules exist" if named else "the site has modules")
    for key, path in site.missing_paths.items():
        yield fault("settings", f"{key} of the context does not exist", edit, detail=path)


def _slurm(site: Site, context: Context) -> Iterator[Finding]:
    edit = f"choose another one with `yurt context edit {context.name}`; `yurt cluster {context.name}` lists them"
    if not site.slurm:
        remedy = f"check slurm_url with `yurt context show {context.name}`: it must name a login node"
        yield fault("Slurm", "sinfo and sbatch are not on this host's PATH", remedy)
        return
    if site.slurm_error:
        remedy = "the controller may be down; run the command again later"
        yield fault("Slurm", "Slurm does not respond", remedy, detail=site.slurm_error)
        return
    if text := versions.caution(site.slurm_version):
        yield warning("Slurm", text, "if a run fails because of it, report it with the output of `yurt doctor`")
    else:
        yield ok("Slurm", f"Slurm {site.slurm_version} responds")
    known = True
    if context.partition:
        names = context.partition.split(",")
        known = all(name in site.partitions for name in names)
        if not known:
            yield fault("partition", "the partition of the context does not exist", edit, detail=context.partition)
        elif not any(site.partitions[name] == "up" for name in names):
            yield fault("partition", "the partition of the context is not up", edit, detail=context.partition)
        else:
            yield ok("partition", "the partition of the context is up", context.partition)
    if context.account and site.accounts and context.account not in site.accounts:
        known = False
        yield fault("account", "you do not belong to the account of the context", edit, detail=context.account)
    elif context.account:
        yield ok("account", "you belong to the account of the context", context.account)
    if site.submit_error and known:
        yield fault("sbatch", "Slurm would reject a job", edit, detail=site.submit_error)
    elif known:
        yield ok("sbatch", "Slurm accepts a job (sbatch --test-only)")


def _tools(site: Site) -> Iterator[Finding]:
    for tool, use in USES.items():
        line = site.tools.get(tool)
        version = version_in(line or "")
        if line is None and not use:
            yield skipped(tool, f"{tool} is not installed")
        elif line is None:
            found = fault if tool == "tar" else warning
            yield found(tool, f"{tool} is not installed; {use}", "ask the site, or load a module that has it")
        elif tool == "python3" and version and version < OLDEST_PYTHON:
            text = f"python3 is version {dotted(version)}; `yurt.log` needs 3.6"
            yield warning(tool, text, "name a module with a newer Python as `modules_to_load` of the context")
        else:
            yield ok(tool, f"{tool} {dotted(version)}".strip())
