"""A site whose tools fail one after the other: a run is rejected only if sbatch was not called, or rejected its job."""

from __future__ import annotations

import io
import shutil
import tarfile
from itertools import count
from pathlib import Path

import pytest

from tests.backends.test_broken_tools import shim
from yurt.backends import scripts
from yurt.backends.answers import CodeParcel
from yurt.backends.slurm.backend import SlurmBackend
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model.run import Code, Plan, Run, Setup
from yurt.transport.local import LocalHost

NAMES = """\
awk cat chmod cksum cmp comm cp cut date dd du find git grep gzip head id ln ls mkdir mktemp mv od rm sed sort stat tail
tar timeout touch tr uname uniq wc xargs"""
TOOLS = {name: f'exec {shutil.which(name)} "$@"' for name in NAMES.split()}
BROKEN = 'echo "${0##*/}: broken" >&2; exit 127'


def _tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("main.py"))
    return made.getvalue()


TAR = _tar()


class Site:
    """This machine as a cluster, whose sbatch records its calls."""

    def __init__(self, home: Path) -> None:
        home.chmod(0o700)
        self.home, self.tools = home, home / "tools"
        self.tools.mkdir()
        self.numbers = count()
        self.mend()
        shim(self.tools, "squeue", "echo JOBID")
        shim(self.tools, "scontrol", ":")
        shim(self.tools, "sbatch", f"echo called >> {home}/calls; echo 77")
        shim(self.tools, "scancel", ":")
        host = LocalHost()
        host.prelude = f"PATH={self.tools}:$PATH\n{scripts.plain_slurm()}"
        self.slurm = SlurmBackend(host, lambda: True)

    def mend(self) -> None:
        for tool, does in TOOLS.items():
            shim(self.tools, tool, does)

    def plan(self, kind: str) -> Plan:
        project, sweep = self.home / "storage/yurt/projects/p-0000", "sweep" in kind
        run = f"{'s' if sweep else ''}1nfkaf7-c1w{next(self.numbers)}"
        made = Run(
            id=run,
            context="alpha",
            context_type="slurm",
            project="p-0000",
            source="/p",
            created=0,
            command=["true"],
            folder=str(project / ("sweeps" if sweep else "runs") / run),
            code=Code(tree=f"{next(self.numbers):040x}") if "code" in kind else Code(),
            tasks=2 if sweep else 0,
        )
        setup = Setup(env=str(self.home / "storage/yurt/envs/0123")) if "held" in kind else Setup()
        sets = [{"n": 1}, {"n": 2}] if sweep else []
        return Plan(run=made, project_folder=str(project), store="", words=[b"true"], sets=sets, setup=setup)

    def prepare(self, plan: Plan, kind: str) -> None:
        if kind.startswith(("saved", "restarted")):
            self.submit(plan, kind)
        if kind == "restarted":
            (Path(plan.run.folder) / "winner").write_text("0badcafe.77\n")
        if "held" in kind:
            Path(plan.setup.env).mkdir(parents=True, exist_ok=True, mode=0o700)

    def submit(self, plan: Plan, kind: str) -> tuple[YurtError | None, bool]:
        """Submit a run; return the error, and whether sbatch was called."""
        (self.home / "calls").write_text("")
        code = CodeParcel(kind="tar", content=TAR) if "code" in kind else CodeParcel()
        tasks = "1:0:0-1" if plan.run.tasks else ""
        start = 2 if kind == "restarted" and (Path(plan.run.folder) / "winner").exists() else 1
        try:
            placed = self.slurm.submit(
                plan, "0badcafe", code, tasks=tasks, start=start, building="held" in kind and "saved" not in kind
            )
        except YurtError as error:
            return error, bool((self.home / "calls").read_text())
        assert placed.needs_env or placed.job == "77" or placed.groups == {"1:0:0-1": "77"}, placed
        return None, bool((self.home / "calls").read_text())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize(
    "kind", ["run", "sweep", "saved run", "saved sweep", "code", "held", "held sweep", "restarted"]
)
def test_whatever_tool_fails(site: Site, kind: str) -> None:
    plan, used = site.plan(kind), site.home / "used"
    site.prepare(plan, kind)
    for tool, does in TOOLS.items():
        shim(site.tools, tool, f"echo {tool} >> {used}\n{does}")
    assert site.submit(plan, kind) == (None, True)
    site.mend()
    tools, wrong = sorted(set(used.read_text().split())), []
    for broken in [*([each] for each in tools), tools]:
        plan = site.plan(kind)
        site.prepare(plan, kind)
        for each in broken:
            shim(site.tools, each, BROKEN)
        error, called = site.submit(plan, kind)
        if called and error is not None and not isinstance(error, UnreachableError):
            wrong.append(f"without {broken}: sbatch was called, but: {error}")
        if not called and error is None:
            wrong.append(f"without {broken}: sbatch was not called")
        site.mend()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["run", "sweep", "saved run", "saved sweep"])
@pytest.mark.parametrize(
    ("ends", "refused"),
    [
        ("echo sbatch: error: invalid account >&2; exit 1", True),
        ("echo 77; echo awk: broken >&2; exit 127", False),
        ("echo awk: broken >&2; exit 127", False),
        ("echo 'sbatch: lua: your job limit is 5' >&2; exit 124", False),
        ("echo 'sbatch: lua: checked' >&2; exit 137", False),
    ],
    ids=["refused", "submitted", "broken", "timeout", "killed"],
)
def test_an_sbatch_that_fails_after_it_submitted(site: Site, kind: str, ends: str, *, refused: bool) -> None:
    plan = site.plan(kind)
    site.prepare(plan, kind)
    shim(site.tools, "sbatch", f"echo called >> {site.home}/calls; {ends}")
    error, called = site.submit(plan, kind)
    assert called and type(error) is (RefusedError if refused else UnreachableError), error


@pytest.mark.parametrize(
    ("files", "queued", "words"),
    [
        ({"winner": "0cafe.7"}, "", ["0cafe", "1"]),  # lost before its first start: that start is decided by gen.1
        ({"winner": "0cafe.7"}, "8", []),
        ({"winner": "0cafe.7", "gen.1": "0cafe.7.0.n1.1.1.b"}, "", []),
    ],
)
def test_a_job_that_passed_the_gate_and_was_lost(
    site: Site, files: dict[str, str], queued: str, words: list[str]
) -> None:
    plan = site.plan("saved run")
    site.submit(plan, "saved run")
    for name, text in files.items():
        (Path(plan.run.folder) / name).write_text(f"{text}\n")
    shim(site.tools, "squeue", f"printf 'JOBID\\n{queued}'")
    shim(site.tools, "sbatch", f'echo "$@" >> {site.home}/words; echo 78')
    site.slurm.submit(plan, "0badcafe", CodeParcel())
    typed = (site.home / "words").read_text() if words else "job.sh"
    assert typed.partition("job.sh")[2].split() == words and (site.home / "words").exists() == bool(words)


def test_a_site_without_sbatch(site: Site) -> None:
    (site.tools / "sbatch").unlink()
    site.slurm.host.prelude = f"PATH={site.tools}\n{scripts.plain_slurm()}"
    error, _called = site.submit(site.plan("run"), "run")
    assert type(error) is RefusedError and "sbatch" in error.message
