"""A site whose tools fail one after the other: what a script could not find out is an error, never an empty answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from yurt.backends import scripts
from yurt.backends.shell import ownership
from yurt.backends.shell.claims import ShellClaims
from yurt.backends.shell.envs import ShellEnvs
from yurt.backends.shell.files import ShellFiles
from yurt.backends.shell.workspaces import ShellWorkspaces
from yurt.backends.slurm.backend import SlurmBackend
from yurt.errors import RefusedError, YurtError
from yurt.model import layout
from yurt.model.data import Manner
from yurt.model.files import NOTHING, Ended, KeepItem, Limits, LogPosition, Measures, Pick, Pull, Survey
from yurt.model.growth import Growing
from yurt.model.run import RunRef
from yurt.model.storage import TierPlace
from yurt.storage import contents, transfer
from yurt.transport.local import LocalHost

RUN, SWEEP, ENV = "1nfkaf7-c1w10", "s1nfkaf7-c1w10", "0123456789abcdef"
HEADER = "|COMMENT   |JOBID|STATE|REASON|START_TIME|NODELIST|NAME\\n"
QUEUE = f"{HEADER}|(null)    |11|RUNNING|None|2026-11-15T06:38:09|n1|yurt-{RUN}x\\n"
JOBS = f"JOBID|STATE|NAME\\n11|RUNNING|yurt-{RUN}x\\n12_0|RUNNING|yurt-{SWEEP}+0\\n"
NODE = "NodeName=n1 CPUTot=4 CPUAlloc=1 RealMemory=1000 AllocMem=10 Gres= GresUsed= State=MIXED Partitions=main"
MINE = "PENDING|main|$(/usr/bin/id -un)|5|12|1|Priority"
NAMES = """\
awk cat cksum cp cut dd df du find grep head id ls mkdir mktemp mv readlink rm rsync sed sha256sum sort stat tail tar
timeout touch tr uniq wc xargs"""
TOOLS = {name: f'exec {shutil.which(name)} "$@"' for name in NAMES.split()} | {
    "sacct": ":",
    "scontrol": f"""case $* in
      ping) echo 'Slurmctld(primary) at c1 is UP' ;;
      *'show node'*) echo '{NODE}' ;;
      *'show partition'*) echo 'PartitionName=main State=UP MaxTime=UNLIMITED Default=YES' ;;
      *) echo BOOT_TIME = 2026-01-01T00:00:00 ;;
    esac""",
    "scancel": ":",
    "sleep": ":",
    "squeue": f"case $* in *'%T|%P'*) echo \"{MINE}\" ;; *%10k*) printf '{QUEUE}' ;; *) printf '{JOBS}' ;; esac",
}
"""The programs of a site, and what they do when they work."""
LIMITS = Limits(trip=1 << 20, seconds=10, log=1000, metrics=1000, metrics_head=100, files=10)


class Site(NamedTuple):
    """This machine as a site, with a run that has finished, one that is running, a sweep, and an environment."""

    base: Path
    tools: Path
    host: LocalHost

    @property
    def run(self) -> str:
        return str(self.base / "projects/p-0000/runs" / RUN)

    @property
    def sweep(self) -> str:
        return str(self.base / "projects/p-0000/sweeps" / SWEEP)

    @property
    def env(self) -> str:
        return str(self.base / "envs" / ENV)

    @property
    def files(self) -> ShellFiles:
        return ShellFiles(self.host)

    @property
    def slurm(self) -> SlurmBackend:
        return SlurmBackend(self.host, lambda: True)


def write(folder: str | Path, **files: str) -> None:
    for name, content in files.items():
        path = Path(folder) / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def shim(tools: Path, name: str, text: str) -> None:
    (tools / name).write_text(f"#!/bin/sh\n{text}\n")
    (tools / name).chmod(0o755)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    home = tmp_path_factory.mktemp("site", numbered=False)
    home.chmod(0o700)
    made = Site(home / "storage" / "yurt", home / "tools", LocalHost())
    made.tools.mkdir()
    made.host.prelude = f"PATH={made.tools}:$PATH\n{scripts.text('slurm.sh', 'job')}"
    made.base.mkdir(parents=True, mode=0o700)
    for run in (made.run, f"{made.run}x"):
        write(
            run,
            run_DOT_json=f'{{"id":"{Path(run).name}"}}',
            winner="0badcafe.11\n",
            code="4b825dc642cb6eb9a060e54bf8d69288fbee4904\n",
            outputs__model="weights",
            checkpoints__one="saved",
            work__notes="written",
            work__model="hidden",
            out_DOT_log="hello\nthere\n",
            err_DOT_log="warned\n",
            metrics_DOT_jsonl='{"loss":1}\n',
            sent="12 1:0:0-1\n",
            result='{"kind":"value"}\nabc',
            **{f"{layout.START}1": "0badcafe.11\n", f"{layout.WANT}abcd": "0 first\n"},
        )
        (Path(run) / "result").chmod(0o600)
    write(made.run, exit_DOT_json='{"code":0}\n')
    write(made.sweep, run_DOT_json=f'{{"id":"{SWEEP}"}}', sent="12 1:0:0-1\n", offsets="0\n5\n")
    for number in (0, 1):
        task = {
            f"tasks__{number}__{name}": content
            for name, content in {
                "exit_DOT_json": '{"code":0}\n',
                "outputs__x": "y",
                "metrics_DOT_jsonl": '{"loss":1}\n',
            }.items()
        }
        write(made.sweep, **task)
    write(
        made.env,
        ready="env-1 3 10\n",
        lock="one==1.0\n",
        **{"env-1__bin__python": "#!/bin/sh\n", "env-1__lib__x": "x", "definition_DOT_json": "{}\n"},
    )
    (Path(made.env) / "env-1/bin/python").chmod(0o755)
    write(made.base / "workspaces/w", v1='{"version":1}\nrest', holder="me\n")
    write(made.base / "races/r", **{"0.1": "first\n", "1.1": "second\n"})
    (made.base.parent / "lasting").mkdir()
    return made


def _logs(site: Site, *, many: bool) -> Any:
    found: dict[str, bytes] = {}

    def sink(log: LogPosition, which: str, part: bytes) -> None:
        found[log.run + which] = found.get(log.run + which, b"") + part

    logs = [LogPosition("a", site.run, over=True), LogPosition("b", f"{site.run}x", over=True)][: 1 + many]
    site.files.tail(logs, sink, lines=None if many else 5)
    return sorted(found.items()), [each.gone for each in logs]


def _pull(site: Site, *, everything: bool, has_rsync: bool) -> Any:
    target = site.base.parent / "fetched"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    files = site.files
    files._has_rsync = has_rsync
    pulls = [Pull(site.run, RUN, outputs=True, work=True), Pull(f"{site.run}x", f"{RUN}x", outputs=True, work=True)]
    _way, brought = files.pull(pulls, target, Pick(), lambda _done, _total: None, everything=everything)
    names = sorted(str(each.relative_to(target)) for each in target.rglob("*") if each.is_file())
    return [name for name in names if "pycache" not in name], brought.hidden, brought.vanished


def _has(measures: Measures) -> list[bool]:
    """Return which parts of a run are not empty; what could not be measured is not."""
    return [each != NOTHING for each in measures.by_part().values()]


def _tasks(survey: Survey) -> dict[int, list[bool]]:
    return {number: _has(each) for number, each in survey.tasks.items()}


def _collect(site: Site) -> Any:
    ended = [Ended(site.run, ""), Ended(f"{site.run}x", "")]
    found = site.files.collect(ended, LIMITS, content=True, measure=True, timeout=30)
    for pieces in found.values():
        if b"outputs ? ?\n" in pieces.pop("parts").content:  # they could not be counted
            del pieces["files"]
        else:
            assert b"outputs/model" in pieces.pop("files").content
    return found


def _keep(site: Site) -> Any:
    tier = site.base.parent / "lasting"
    shutil.rmtree(tier)
    tier.mkdir()
    items = [KeepItem(source=site.run, target=str(tier / "yurt-kept/p/r"))]
    (kept,) = site.files.keep(str(tier), items, checkpoints=True, copied=lambda _count: None)
    if kept.failed:
        raise AssertionError if (tier / "yurt-kept/p/r").exists() else YurtError(kept.failed, code="site-refused")
    assert (tier / "yurt-kept/p/r/outputs/model").read_text() == "weights"
    assert (tier / "yurt-kept/p/r/work/notes").read_text() == "written"
    return True


def _grow(site: Site) -> Any:
    found: list[tuple[str, bytes]] = []

    class Reader:
        def begin(self, _at: int, path: str, _seen: str, _start: int) -> None:
            found.append((path, b""))

        def more(self, part: bytes) -> None:
            found.append((found.pop()[0], part))

        def end(self) -> None:
            pass

    site.files.grow([Growing(folder=site.run)], ["metrics"], Reader())
    return sorted(found)


def _remove(site: Site, how: str) -> Any:
    copy = site.base.parent / "copy" / "yurt"
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(site.base, copy, symlinks=True)
    folder = str(copy / "projects/p-0000/runs" / RUN)
    removed = site.files.remove([folder]) if how == "remove" else site.files.clear(str(copy), [folder])
    for each in removed.gone:
        assert not (copy / "projects/p-0000/runs" / each).exists()
    if removed.failed is not None:
        raise removed.failed
    return sorted(removed.gone), sorted(each.removeprefix(str(copy)) for each in removed.left), Path(folder).exists()


def _cancel(site: Site, how: Callable[[SlurmBackend, RunRef, RunRef], Any]) -> Any:
    """Cancel a run, or a task, whose job goes on: whatever fails, it is not confirmed."""
    for each in (f"{site.run}x", site.sweep):
        for name in ("cancel", "winner", "tasks/0/winner"):
            (Path(each) / name).unlink(missing_ok=True)
        write(each, winner="0badcafe.11\n", jobs="11\n")
    (Path(site.sweep) / "winner").unlink()
    try:
        return how(site.slurm, RunRef(f"{RUN}x", f"{site.run}x", 0.0), RunRef(SWEEP, site.sweep, 0.0, open="0"))
    except YurtError:
        return None


def _data(site: Site, what: str, *words: str) -> Any:
    place: Any = SimpleNamespace(host=site.host, path=site.run, context=SimpleNamespace(name="x"))
    folder = site.base.parent / "data"
    write(folder, x="y", kept__z="z")
    keep = f"keep {folder}/kept\n".encode()
    found = contents._asked(place, what, [str(folder / each) for each in words], keep)
    assert (folder / "kept/z").exists() and (folder / "x").exists() == (what != "remove" or "x" not in words)
    return sorted((each.name.removeprefix(str(folder)), each.kind, each.files) for each in found)


def _get(site: Site, name: str) -> Any:
    target = site.base.parent / "got"
    shutil.rmtree(target, ignore_errors=True)
    place: Any = SimpleNamespace(host=site.host, path=f"{site.run}/{name}", here=False)
    moved = transfer.get(place, target / "it", Manner(), lambda _done, _total: None)
    return moved.files, sorted(str(each.relative_to(target)) for each in target.rglob("*"))


def _remove_env(site: Site) -> Any:
    copy = site.base.parent / "copy" / "yurt"
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(site.base, copy, symlinks=True)
    ShellEnvs(site.host).remove([str(copy / "envs" / ENV)])
    return sorted(str(each.relative_to(copy)) for each in (copy / "envs").rglob("*"))


def _look(site: Site) -> Any:
    found = site.slurm.look([])
    if found.silent:
        raise YurtError(found.silent, code="site-refused")
    return [each.name for each in found.partitions], found.nodes.states, [each.job for each in found.queue.mine]


def _observe(site: Site) -> Any:
    refs = [
        RunRef(RUN, site.run, 0.0),
        RunRef(f"{RUN}x", f"{site.run}x", 0.0),
        RunRef(SWEEP, site.sweep, 0.0, open="0-1"),
    ]
    seen = site.slurm.observe(refs)
    return {
        run: (each.ending is not None, each.live, each.gone, each.record, each.records_known, each.winner)
        for run, each in seen.runs.items()
    }


OPERATIONS: dict[str, Callable[[Site], Any]] = {
    "read": lambda site: site.files.read(site.run, layout.EXIT),
    "tail": lambda site: _logs(site, many=False),
    "tail_many": lambda site: _logs(site, many=True),
    "collect": _collect,
    "call_results": lambda site: site.files.call_results([site.run]),
    "submitted_groups": lambda site: site.files.submitted_groups([site.sweep]),
    "list_runs": lambda site: site.files.list_runs(str(site.base)),
    "gather": lambda site: [
        {folder: each and each.files for folder, each in part.items()} if isinstance(part, dict) else part
        for part in site.files.gather([site.run, f"{site.run}x"])
    ],
    "gather_tasks": lambda site: {
        sweep: {number: each.files for number, each in tasks.items()}
        for sweep, tasks in site.files.gather_tasks([site.sweep]).items()
    },
    "contents": lambda site: {
        run: (each.ended, _has(each.measures)) for run, each in site.files.contents([site.run, f"{site.run}x"]).items()
    },
    "pull_rsync": lambda site: _pull(site, everything=False, has_rsync=True),
    "pull_tar": lambda site: _pull(site, everything=False, has_rsync=False),
    "pull_all": lambda site: _pull(site, everything=True, has_rsync=False),
    "keep_look": lambda site: _has(site.files.keep_look([KeepItem(source=site.run, target="p/r")], [])[0][0].measures),
    "keep": _keep,
    "survey": lambda site: [
        (each.what, _has(each.measures), _tasks(each)) for each in site.files.survey([site.run, site.sweep])
    ],
    "holdings": lambda site: [
        (each.folder, each.ended, _has(each.survey.measures), _tasks(each.survey))
        for each in site.files.holdings(str(site.base)).runs
    ],
    "remove": lambda site: _remove(site, "remove"),
    "clear": lambda site: _remove(site, "clear"),
    "grow": _grow,
    "env_look": lambda site: [
        (each.condition, each.installed, each.entries, each.lock) for each in ShellEnvs(site.host).look([site.env])
    ],
    "env_folders": lambda site: ShellEnvs(site.host).folders([str(site.base)]),
    "env_lacking": lambda site: ShellEnvs(site.host).lacking(site.env, ["abc/one.whl"]),
    "env_prune": lambda site: [
        (each.what, each.address, each.files)
        for each in ShellEnvs(site.host).prune(str(site.base), str(site.base), 0, [])
    ],
    "workspaces": lambda site: ShellWorkspaces(site.host).look([str(site.base / "workspaces/w")]),
    "holders": lambda site: ShellClaims(site.host).holders(str(site.base / "races/r")),
    "wants": lambda site: ShellClaims(site.host).wants([site.run]),
    "storage": lambda site: [
        (each.name, each.there)
        for each in site.slurm.storage(
            [TierPlace(name="scratch", path=str(site.base.parent))], own=[str(site.base)]
        ).tiers
    ],
    "cancel": lambda site: _cancel(site, lambda slurm, run, _sweep: slurm.cancel(run)),
    "cancel_runs": lambda site: _cancel(site, lambda slurm, run, _sweep: slurm.cancel_runs([run]).get(run.id)),
    "cancel_tasks": lambda site: _cancel(site, lambda slurm, _run, sweep: slurm.cancel_tasks(sweep)),
    "nodes": lambda site: [(each.name, each.partitions, each.state) for each in site.slurm.nodes()],
    "look": _look,
    "data_get": lambda site: _get(site, "outputs"),
    "data_get_file": lambda site: _get(site, "outputs/model"),
    "env_sums": lambda site: ShellEnvs(site.host).sums([f"{site.env}/lock"]),
    "env_remove": _remove_env,
    "data_ls": lambda site: _data(site, "list", "."),
    "data_ls_file": lambda site: _data(site, "list", "x"),
    "data_measure": lambda site: _data(site, "measure", "x", "kept"),
    "data_rm": lambda site: _data(site, "remove", "kept"),
    "observe": _observe,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_tool_fails(site: Site, name: str) -> None:
    call, used, wrong = OPERATIONS[name], site.tools.parent / "used", []
    used.write_text("")
    for tool, does in TOOLS.items():
        shim(site.tools, tool, f"echo {tool} >> {used}\n{does}")
    truth = call(site)
    for tool, does in TOOLS.items():
        shim(site.tools, tool, does)
    for tool in sorted(set(used.read_text().split())):
        shim(site.tools, tool, "exit 1")
        try:
            found = call(site)
        except YurtError:
            pass
        else:
            if found != truth:
                wrong.append(f"without {tool}:\n  {found}\n  instead of {truth}")
        shim(site.tools, tool, TOOLS[tool])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("said", ["", "welcome\n", "folder\nfolder\n", "= none /a\n= none /b\n"])
def test_another_number_of_answers(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(ownership, "run", lambda *_words, **_more: SimpleNamespace(code=0, text=said))
    for reader in (ShellWorkspaces(LocalHost()), ShellEnvs(LocalHost())):
        with pytest.raises(RefusedError, match=r"cannot be read: .[02] answers instead of 1") as caught:
            reader.look(["/w"])
        assert caught.value.code == "site-invalid"
