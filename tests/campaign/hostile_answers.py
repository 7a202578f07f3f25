"""The recorded answers of a site for `tests.campaign.hostile`, and what yurt does with each of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from yurt.backends.shell.claims import ShellClaims
from yurt.backends.shell.envs import ShellEnvs
from yurt.backends.shell.files import ShellFiles
from yurt.backends.shell.workspaces import ShellWorkspaces
from yurt.backends.slurm.backend import SlurmBackend
from yurt.cli import render
from yurt.config import facts as recorded_facts
from yurt.config import paths
from yurt.contexts import facts, node_keys
from yurt.contexts.project import code_folder
from yurt.dev import desks, holder, ssh_config, views
from yurt.dev import find as dev_find
from yurt.dev import ssh as dev_ssh
from yurt.dev import ssh_connection as connect
from yurt.homes import backups, guard, versions
from yurt.homes.config import Homes
from yurt.homes.places import Place
from yurt.lifecycle import import_
from yurt.lifecycle.files.transfer import Wanted
from yurt.model import layout, workspace
from yurt.model.context import Context
from yurt.model.files import Ended, KeepItem, Limits, LogPosition, Pick
from yurt.model.growth import Growing
from yurt.model.run import Resources, Run, RunRef, Status
from yurt.model.site_words import NodeName, SitePath, UserName
from yurt.model.state import next_status
from yurt.model.storage import TierPlace
from yurt.model.where import Ask, Question
from yurt.services import status as services
from yurt.services.views import service
from yurt.services.way import Way
from yurt.store import Entry, Found
from yurt.tracking import labels
from yurt.tracking.followed import Followed
from yurt.tracking.mlflow import wanted as mlflow
from yurt.transport import tar
from yurt.transport.base import Answer
from yurt.transport.ssh import SshHost

RUN, SWEEP, MARK = "1nfkaf7-c1w10", "s1nfkaf7-c1w10", "yurt-mark"
BASE = "/scratch/alice/yurt"
FOLDER, SWEEP_FOLDER = f"{BASE}/projects/p-0000/runs/{RUN}", f"{BASE}/projects/p-0000/sweeps/{SWEEP}"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG"
TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
CONTEXT = Context(name="alpha", type="slurm", slurm_url="alice@login.invalid")
RECORD = Run(
    id=RUN,
    context="alpha",
    context_type="slurm",
    project="p-0000",
    source="/home/alice/p",
    created=1.0,
    command=["python", "train.py"],
    folder=FOLDER,
    name="first",
    params={"lr": 0.1},
    tags=["t"],
    user="alice",
    host="here",
)


class Output:
    """The output of a script as it comes: see `yurt.transport.stream.Stream`."""

    def __init__(self, content: bytes) -> None:
        self._content, self.code, self.err = content, 0, b""

    def __iter__(self) -> Iterator[bytes]:
        middle = len(self._content) // 2
        yield from (part for part in (self._content[:middle], self._content[middle:]) if part)


class Site(SshHost):
    """A login node that answers every script with the same text, in which MARK is the mark of the script."""

    def __init__(self, folder: Path, content: bytes) -> None:
        super().__init__("alpha", "alice@login.invalid")
        self.folder, self._content = folder, content

    def _answer(self, arguments: Sequence[str]) -> bytes:
        mark = next((each for each in arguments if each.startswith(("yurt-", "yurt."))), MARK)
        return self._content.replace(MARK.encode(), mark.encode())

    def run(self, script: str, *arguments: str, **_more: Any) -> Answer:
        del script
        return Answer(0, self._answer(arguments), b"")

    @contextlib.contextmanager
    def stream(self, script: str, *arguments: str, **_more: Any) -> Iterator[Any]:
        del script
        yield Output(self._answer(arguments))

    @contextlib.contextmanager
    def session(self, deadline: float) -> Iterator[None]:
        del deadline
        yield

    @property
    def backend(self) -> SlurmBackend:
        return SlurmBackend(self, lambda: True)


@contextlib.contextmanager
def user(folder: Path) -> Iterator[None]:
    """Make a user with a context `alpha` in a folder, who knows the host keys of its nodes and has an ssh key."""
    names = ("HOME", "YURT_CONFIG_HOME", "YURT_DATA_HOME", "YURT_RUNTIME_DIR", "TMPDIR")
    with mock.patch.dict(os.environ, {name: str(folder) for name in names}), contextlib.chdir(folder):
        paths.write_private(
            folder / "contexts.yaml",
            b"current_context: alpha\ncontexts:\n  alpha:\n    type: slurm\n    slurm_url: alice@login.invalid\n",
        )
        (folder / "dev").mkdir(mode=0o700)
        for name in ("id_ed25519", "id_ed25519.pub"):
            (folder / "dev" / name).write_text(f"{HOST_KEY} alice\n")
        settings = {"user": "alice", "hostname": "login.invalid"}
        with mock.patch("yurt.transport.master.Master.settings", lambda _master: settings):
            yield


class Recorded:
    """An answer, its fields, and what yurt does with it. With `json`, the fields are the values of a JSON text."""

    def __init__(self, name: str, content: str | bytes | dict[str, Any], use: Callable[[Site], object]) -> None:
        self.name, self.use = name, use
        self.json = isinstance(content, dict)
        self._value = content
        self._text = "" if self.json else content.decode() if isinstance(content, bytes) else str(content)
        self._places = list(_leaves(content)) if isinstance(content, dict) else []
        self._words = [(at.start(), at.end()) for at in re.finditer(r"[^\s|=:,.]+", self._text) if at[0] != MARK]
        self.fields = len(self._places) if self.json else len(self._words)

    @property
    def content(self) -> bytes:
        return json.dumps(self._value).encode() if self.json else self._text.encode()

    def changed(self, field: int, word: object) -> bytes:
        """Return the answer with another value of a field."""
        if not self.json:
            start, end = self._words[field]
            return os.fsencode(f"{self._text[:start]}{word}{self._text[end:]}")
        value = json.loads(json.dumps(self._value))
        at = value
        *above, last = self._places[field]
        for key in above:
            at = at[key]
        at[last] = word
        return json.dumps(value).encode()


def _leaves(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from _leaves(each, *path, key)


def _kept(status: Status) -> None:
    """Do what every status goes through: the index, the tables, and what is recorded elsewhere."""
    entry = Entry(RECORD, status)
    msgspec.json.decode(msgspec.json.encode(status), type=Status)
    labels.labels([entry])
    list(mlflow.of(entry, {}))
    for each in (status.submitted, status.started, status.ended):
        time.strftime("%c", time.localtime(each))
    NodeName.read(status.node)


def _poll(site: Site) -> None:
    refs = [RunRef(RUN, FOLDER, 0.0), RunRef(SWEEP, SWEEP_FOLDER, 0.0, open="0-3", begun="0-3")]
    seen = site.backend.observe(refs)
    for each in seen.runs.values():
        for before in (
            Status(state="queued", submitted=1.0, job="12"),
            Status(state="running", submitted=1.0, job="12"),
        ):
            _kept(next_status(before, each, time.time()))


def _probe(site: Site) -> None:
    with mock.patch.object(facts, "host_of", lambda _context: site):
        found = facts.ask(CONTEXT)
    assert recorded_facts.load(CONTEXT) is not None
    for path in ("~/x", "$SCRATCH/x"):
        with contextlib.suppress(KeyError):
            found.expand(path)


def _import(name: str) -> Callable[[Site], object]:
    def use(site: Site) -> None:
        files = {layout.RUN: msgspec.json.encode(RECORD), layout.WINNER: b"abcd.12\n", name: site._content}
        archive = _tar({f"{FOLDER}/{each}": content for each, content in files.items()})
        _gather(Site(site.folder, archive))

    return use


def _gather(site: Site) -> None:
    gathered, _count = ShellFiles(site).gather([FOLDER])
    for folder, each in gathered.items():
        found = import_._Reader(CONTEXT).read(folder, each)
        if not isinstance(found, Found):
            continue
        assert not found.plan or Path(found.plan.store).parent == site.folder / "code"
        assert code_folder(found.run.project).parent == site.folder / "code"
        assert Wanted().target(found.run).parent == Path("results")
        msgspec.json.encode(found)  # for the index
        _kept(found.status)


def _tar(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


class Archiver(Site):
    """A login node without rsync: it lists files, and sends an archive, which a JSON text describes."""

    def __init__(self, site: Site) -> None:
        value = json.loads(site._content)
        self._list = "".join(f"{facts}\0{name}\0" for facts, name in value["list"])
        super().__init__(site.folder, b"".join(map(_member, value["members"])) + bytes(1024))
        self.one = str(value["one"])

    def run(self, script: str, *_arguments: str, **_more: Any) -> Answer:
        return Answer(0, os.fsencode(self.one if script == tar.FILE else self._list), b"")

    def get(self, source: str, target: Path, **_more: Any) -> None:
        del source
        target.write_bytes(b"x")


def _member(fields: dict[str, Any]) -> bytes:
    """Return a member of an archive, with its content; nothing if tar has no way to write it."""
    member = tarfile.TarInfo()
    try:
        for name, value in fields.items():
            setattr(member, name, value.encode()[:1] if name == "type" and isinstance(value, str) else value)
        return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape") + b"content\n".ljust(512, b"\0")
    except Exception:  # whatever tarfile raises about this value
        return b""


def _fetch_archive(site: Site) -> None:
    before = set(os.listdir(site.folder))  # noqa: PTH208
    target = site.folder / "fetched" / "here"
    shutil.rmtree(target.parent, ignore_errors=True)
    target.mkdir(parents=True)
    try:
        made = Archiver(site)
    except (AttributeError, KeyError, TypeError, ValueError):
        return  # not what such a site can send
    try:
        tar.bring(made, FOLDER, target, Pick(only=("a*",)), lambda _done, _total: None)
        tar.bring_file(made, f"{FOLDER}/x", target / "x", lambda _done, _total: None)
    finally:
        assert set(os.listdir(site.folder)) <= {*before, "fetched"}  # noqa: PTH208
        assert [*target.parent.iterdir()] == [target]
        assert {each.name for each in target.iterdir()} <= {"a", "ab", "x", ".yurt-partial"}


def _listed(site: Site) -> None:
    for folder in ShellFiles(site).list_runs(BASE) or []:
        import_._Reader(CONTEXT).read(folder, None)


def _grow(site: Site) -> None:
    followed = Followed("run")

    class Reader:
        def begin(self, _at: int, path: str, seen: str, start: int) -> None:
            followed.begin(path, seen, start)

        def more(self, part: bytes) -> None:
            followed.more(part)

        def end(self) -> None:
            followed.end()

    with mock.patch.object(followed, "folder", site.folder / "followed" / "run"):
        ShellFiles(site).grow([Growing(folder=FOLDER)], ["events"], Reader())
        followed.save()


def _logs(count: int) -> Callable[[Site], object]:
    def use(site: Site) -> None:
        logs = [LogPosition(RUN, FOLDER), LogPosition(SWEEP, SWEEP_FOLDER)][:count]
        ShellFiles(site).tail(logs, lambda _log, _which, _part: None, seconds=count - 1)

    return use


def _dev(site: Site) -> None:
    """What a site says on the way to a dev node becomes arguments of ssh and VS Code, and lines of a configuration."""
    said = json.loads(site._content)
    info = {key: said[key] for key in ("sshd", "host_key", "folder", "workspace")}
    entry = Entry(
        msgspec.structs.replace(RECORD, purpose="dev", name=str(said["name"])),
        Status(state="running", job=str(said["job"]), node=str(said["node"])),
    )
    backend = mock.Mock(exec=site.backend.exec)
    backend.exec.ask = lambda *_arguments: mock.Mock(out=f"{said['keys']}\n".encode(errors="replace"))
    started: list[list[str]] = []

    def start(argv: list[str], **_more: object) -> Any:
        started.append(argv)
        alias = argv[-1]
        return mock.Mock(returncode=0, stdout=f"user {user}\nhostkeyalias {alias}\n".encode(), stderr=b"")

    user = str(said["user"])
    with (
        mock.patch.object(connect, "ask", lambda *_arguments: info),
        mock.patch("subprocess.run", start),
        mock.patch("yurt.contexts.connect.named_backend", lambda _name: backend),
        mock.patch.object(dev_ssh, "running", lambda *_arguments: desks.Desk("default", entry)),
        mock.patch.object(dev_ssh, "facts_of", lambda _context: mock.Mock(user=user)),
    ):
        for file in (site.folder / "dev").glob("link-*"):
            file.unlink()
        ssh_config.file().unlink(missing_ok=True)
        (site.folder / "dev" / "names.json").unlink(missing_ok=True)
        try:
            started.append(dev_ssh.command("default", ["true"], terminal=False))
            started.append(connect.argv(entry, connect.link(entry, "default"), "default"))
            started.append(dev_ssh.editor("default").data.command)
        finally:
            for argv in started:
                _check_arguments(argv, {str(each) for each in said.values()})
            lines = ssh_config.file().read_text().splitlines() if ssh_config.file().exists() else []
            assert all(CONFIGURED.fullmatch(line) for line in lines), lines


OPTIONS = ("ssh", "code")

CONFIGURED = re.compile(r'(#.*|Host \S+|  \w+ ("[^"]*"|[^"]*))?')
"""A line of yurt's ssh configuration."""


def _check_arguments(argv: Sequence[str], said: set[str]) -> None:
    """Check that no word of the site is where a program reads an option."""
    assert argv[0] in OPTIONS, argv
    assert not [word for word in argv[1:] if word.startswith("-") and word in said and word not in ("-", "--")], argv
    for word in argv:
        assert "\0" not in word, argv


def _status_of_dev(site: Site) -> None:
    found = holder.read(site._content)
    run = msgspec.structs.replace(RECORD, purpose="dev", name="default")
    msgspec.json.encode(views.of(desks.Desk("default", Entry(run, Status(state="running"))), found))
    if found is not None:
        holder.phase_text(found)
        SitePath.read(found.workspace)


def _service(site: Site) -> None:
    found = services.read(site._content)
    entry = Entry(RECORD, Status(state="running"))
    msgspec.json.encode(service(entry, found))
    if found is not None:
        with mock.patch.object(Way, "_may_use_ssh", lambda _way: True), mock.patch.object(Way, "_ask"):
            Way(entry, found, site.folder)


def _home(site: Site) -> None:
    place = Place(CONTEXT.name, Homes())
    with mock.patch.object(Place, "host", site):
        assert place.root.startswith("/")


@contextlib.contextmanager
def _homes(site: Site) -> Iterator[list[Place]]:
    place = Place(CONTEXT.name, Homes())
    with mock.patch.object(Place, "host", site), mock.patch.object(Place, "root", "/home/alice"):
        yield [place]


def _home_versions(site: Site) -> None:
    with _homes(Site(site.folder, site._content.replace(b"\n", b"\0"))) as places:
        found, errors = versions.look(places, {CONTEXT.name: ["a", "b"]})
    assert errors or len(found[CONTEXT.name]) == 2
    assert all(re.fullmatch("[0-7]{0,3}", each.mode) for each in found[CONTEXT.name].values())


def _home_backups(site: Site) -> None:
    with _homes(site) as places:
        for each in backups.listed(places).backups:
            render.moment(each.modified)


def _home_sizes(site: Site) -> None:
    with _homes(site) as places:
        guard.survey(places, "")


def _version(site: Site) -> None:
    line = f"folder\nversion v1 {site._content.decode(errors='surrogateescape')}\n"
    for each in workspace.read(line)[0].versions:
        dev_find.clock(each.time)
        render.moment(each.time)


def _words(site: Site) -> None:
    text = site._content.decode(errors="surrogateescape")
    for kind in (NodeName, UserName, SitePath):
        found = kind.read(text)
        assert found is None or not found.startswith("-")
    node = NodeName.read(text)
    if node is not None:
        assert node_keys.known_hosts(node, f"{HOST_KEY}\n".encode()).count(b"\n") == 1
        assert "--" in site.hop(node, site.folder / "known_hosts", "true", prompt=False)


def _files(use: Callable[[ShellFiles], object]) -> Callable[[Site], object]:
    return lambda site: use(ShellFiles(site))


LIMITS = Limits(trip=1 << 20, seconds=10, log=100, metrics=100, metrics_head=100, files=10)
QUESTION = Question(resources=Resources(cpus=1), asks=[Ask(partition="main")], folder="/home/alice", paths=["/data"])
NODE = "|16|12|64000|32000|main,gpu|MIXED|gpu:a100:4|gpu:a100:1"
LIVE = f"""
{MARK} who
login1
alice
{MARK} groups
alice users
{MARK} ping
Slurmctld(primary/backup) at ctl1/ctl2 are UP/DOWN
{MARK} config
AccountingStorageType = accounting_storage/slurmdbd
{MARK} partitions
PartitionName=main AllowGroups=ALL AllowAccounts=lab AllowQos=ALL Default=YES DefaultTime=01:00:00 GraceTime=5
{MARK} nodes
group|3{NODE}
bad|n9|DOWN|main|broken disk [root@1794864000]
{MARK} priority
12|1000|0.5|0.1|0.2|0.3|0.4
{MARK} queue
total|3|RUNNING
count|3|PENDING|main
own|2
owned|1|PENDING
mine|PENDING|main|100|1|2|12_[0-3]|1794864000|Priority
{MARK} fair-share
Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
lab|alice|1|0.5|10|0.1|0.9
{MARK} reservations
ReservationName=r1 StartTime=1794864000 EndTime=1794865000 Nodes=n[1-2] NodeCnt=2 Flags=MAINT Users=alice State=ACTIVE
{MARK} job
JobId=12 JobName=yurt-x
JobState=PENDING Reason=QOSMaxCpu Partition=main Account=lab QOS=normal TimeLimit=1-00:00:00 ReqTRES=cpu=2,mem=50M
EligibleTime=1794864000 ReqNodeList=n1 Licenses=a:1 Features=gpu AdminComment=hello
{MARK} limits
QOS=normal(1)
  MaxTRESPerUser=cpu=4(2),mem=100G(50M)
User Limits
  alice(1000)
    MaxJobsPU=5(2) MaxWallPJ=60
{MARK} where
now 1794975712 2026-11-18T04:21:52
there 0
reply 0 0 sbatch: Job 12 to start at 1794976070 using 4 processors on nodes n1 in partition main
"""
ENDING = {
    "code": 1,
    "signal": 9,
    "cause": "timeout",
    "started": 1.0,
    "ended": 9.5,
    "seconds": 8.5,
    "node": "n1",
    "job": "12",
    "restarts": 1,
    "why": "no module",
    "unstaged": "",
    "kb": 5,
    "files": 2,
    "usage": {"seconds": 8.0, "cpu_seconds": 2.0, "memory_mb": 100, "gpu_percent": 5.0, "gpu_memory_mb": 7, "nodes": 1},
}
VERDICT = {
    "state": "failed",
    "reason": "exit code 1",
    "native": "FAILED",
    "job": "12",
    "node": "n1",
    "started": 1.0,
    "ended": 9.5,
    "exit_code": 1,
    "signal": 9,
    "restarts": 1,
    "seconds": 8.5,
    "result_bytes": 100,
    "result_files": 3,
}
RECORDED_RUN = {**msgspec.to_builtins(RECORD), "code": {"tree": TREE, "commit": TREE, "branch": "main"}}
PLAN = {
    "run": RECORDED_RUN,
    "project_folder": f"{BASE}/projects/p-0000",
    "store": "/home/alice/.local/share/yurt/code/p.git",
    "words": ["dHJ1ZQ=="],
    "variables": {"A": "eA=="},
    "place": "",
    "sources": ["src"],
    "native_options": {"qos": "x"},
}
POLL = (
    f"= queue\n12|RUNNING|None|2026-11-18T04:21:52|n1|yurt-{RUN}\n"
    f"13_2|RUNNING|None|2026-11-18T04:21:52|n1|yurt-{SWEEP}+0\n"
    f"13_[3]|PENDING|Priority|||yurt-{SWEEP}+0\n= folders\n"
    f'{SWEEP}.1|abcd.13_1|1|abcd.13_1|timeout|1 done 5 9|{{"code":0,"started":1.0,"ended":2.0,"node":"n1"}}\n'
    f'@{SWEEP}.1|{{"loss":0.5,"step":3}}\n= controller\n2026-11-18T04:21:52\n2026-11-18T05:21:52\n= records\n'
    f"13_0|CANCELLED by 7|2026-11-18T04:21:52|2026-11-18T05:21:52|n2|yurt-{SWEEP}+0\n"
)
ENDED = (
    f"= folders\n{RUN}|abcd.12|1|abcd.12|timeout|1 done 5 9|\n= controller\n2026-11-18T04:21:52\n2026-11-18T05:21:52\n"
    f"= records\n12|FAILED|2026-11-18T04:21:52|2026-11-18T05:21:52|n2|yurt-{RUN}\n"
)
PROBE = f"""{MARK} who
alice
login1
/bin/bash
{MARK} config
SLURM_VERSION = 24.11.5
ClusterName = alpha
AccountingStorageType = accounting_storage/slurmdbd
MaxArraySize = 1001
MinJobAge = 300
KillWait = 30
{MARK} nodes
main|3|16|64000|gpu:a100:4(S:0-1)|avx,fast
{MARK} partitions
PartitionName=main AllowAccounts=lab,phys Default=YES DefaultTime=01:00:00 MaxTime=1-00:00:00 MaxNodes=4 State=UP
{MARK} associations
lab|main|normal,long|normal|10
{MARK} default-account
lab
{MARK} qos
normal|10|5|1-00:00:00
{MARK} variables
HOME=/home/alice
SCRATCH=/scratch/alice
USER=alice
{MARK} marks
CC_CLUSTER=alpha
{MARK} tiers
SCRATCH 1 1000000 500000 /scratch/alice
{MARK} modules
lmod /usr/share/lmod
{MARK} pythons
Python 3.11.2
{MARK} tools
rsync 3.2.7
"""
DEV = {
    "name": "default",
    "job": "12",
    "node": "n1",
    "user": "alice",
    "sshd": "exec /usr/sbin/sshd -i",
    "host_key": HOST_KEY,
    "folder": "/tmp/yurt-dev",
    "workspace": "/tmp/work",
    "keys": HOST_KEY,
}
HOLDER = {
    "phase": "restoring",
    "note": "n",
    "name": "default",
    "run": RUN,
    "node": "n1",
    "workspace": "/tmp/w",
    "folder": "/tmp/f",
    "socket": "/tmp/s",
    "end": 5.0,
    "progress": {"phase": "p", "done": 1, "total": 2},
    "version": 3,
    "backup": {"number": 3, "time": 1.0, "reason": "down", "size": 5},
    "next": 9.0,
    "warnings": ["w"],
    "written": 1.0,
}
SERVICE = {
    "phase": "ready",
    "node": "n1",
    "program": "jupyter",
    "way": "socket",
    "socket": "/tmp/s",
    "port": 8080,
    "token": "/tmp/t",
    "note": "",
    "end": 9.0,
    "start": 1.0,
    "restarts": 0,
}
STATE = (
    f"= ready {BASE}/envs/abc\nsize 10 2000\ninstalled 5\npack 100\nphase done\n"
    "ready 17.5\nused 18.5\nlacking x\nlock a==1\n"
)
TOOLS = (
    f"{MARK} modules\n{MARK} platform\nx86_64\nglibc 2.36\n55\n{MARK} pythons\n3.11.2 system /usr/bin/python3\n"
    f"{MARK} tools\nuv 0.5\n"
)
STORAGE = (
    f"{MARK} tier scratch\nthere\nwritable\n{MARK} df scratch\n/dev/sda1 1000 500 500 50% /scratch\n"
    f"{MARK} type scratch\nlustre\n"
    f"{MARK} quota\nDisk quotas for user alice (uid 1000):\n  /dev/sda1 100* 50 60 6days 10 20 30\n"
    f"{MARK} own\nruns 10 5\n"
)
FILE = b"0 17.5 " + f"{FOLDER}/outputs/events.out.tfevents.1".encode()
ARCHIVE: dict[str, Any] = {
    "list": [["8 17.5", "./a"], ["8 17.5", "./ab"]],
    "members": [
        {"name": "./a", "type": "0", "size": 8, "mtime": 17.5, "mode": 0o755, "uid": 1, "uname": "al", "linkname": ""},
        {"name": "./ab", "type": "1", "linkname": "./a", "mtime": 17, "gid": 1, "pax_headers": {"comment": "c"}},
    ],
    "one": "1 17.5 644\0",
}

ANSWERS = [
    Recorded("poll", POLL, _poll),
    Recorded("poll of an ended run", ENDED, _poll),
    Recorded("probe", PROBE, _probe),
    Recorded("cluster", LIVE, lambda site: site.backend.look([])),
    Recorded("job", LIVE, lambda site: site.backend.look_at("12", [])),
    Recorded("forecast", LIVE, lambda site: site.backend.forecast([], QUESTION)),
    Recorded(
        "nodes",
        "node|n1|main,gpu|MIXED|16|12|64000|32000|gpu:a100:4|gpu:a100:1|9.50\n",
        lambda site: site.backend.nodes(),
    ),
    Recorded(
        "an ended job",
        f"{MARK} node\nbad|n9|DOWN|main|broken [root@17]\n{MARK} comments\nadmin|x|\n{MARK} memory\n50M\n",
        lambda site: site.backend.look_back("12", "n9"),
    ),
    Recorded("run.json", RECORDED_RUN, _import(layout.RUN)),
    Recorded("plan.json", PLAN, _import(layout.PLAN)),
    Recorded("status.json", VERDICT, _import(layout.STATUS)),
    Recorded("exit.json", ENDING, _import(layout.EXIT)),
    Recorded("gen.1", "abcd.12 n1 17\n", _import(f"{layout.START}1")),
    Recorded("runs", f"p-0000/runs/{RUN}\n", _listed),
    Recorded("an archive", ARCHIVE, _fetch_archive),
    Recorded("grow", FILE + f"\nbytes\n{MARK}\n".encode(), _grow),
    Recorded("one log", "out 5\nhelloskip-err 7\nerr 2\nhimore 0\n", _logs(1)),
    Recorded("logs", "1 out 5\nhello2 skip-err 7\n2 gone 0\n1 end 0\n", _logs(2)),
    Recorded(
        "contents", f"rsync\nended\n3:100:17.5 {FOLDER}/outputs\n", _files(lambda files: files.contents([FOLDER]))
    ),
    Recorded(
        "survey",
        f"= sizes\n10\t{FOLDER}\n= runs\nthere\n+1 1:2:3 0:0:0 0:0:0\n= measures\n3:100:17.5 {FOLDER}/outputs\n= end\n",
        _files(lambda files: files.survey([FOLDER])),
    ),
    Recorded(
        "holdings",
        f"= sizes\n10\t{FOLDER}\n= runs\nended {FOLDER}\n= measures\n3:100:17.5 {FOLDER}/outputs\n= end\n",
        _files(lambda files: files.holdings(BASE)),
    ),
    Recorded("removed", f"gone {RUN}\nleft {RUN}\n", _files(lambda files: files.remove([FOLDER]))),
    Recorded(
        "kept files",
        "= 1\nout 5 5\nhelloexit.json 3 3\nabc.\n",
        _files(lambda files: files.collect([Ended(FOLDER, "{}")], LIMITS, content=True, timeout=9)),
    ),
    Recorded(
        "results of calls", '= 1\nresult 12 12\n{"ok":true}\n.\n', _files(lambda files: files.call_results([FOLDER]))
    ),
    Recorded("submitted groups", f"= {FOLDER}\n12 1:0:0-3\n", _files(lambda files: files.submitted_groups([FOLDER]))),
    Recorded(
        "keep",
        f"{MARK} item 0\nthere\n3:100:17.5\n" + STORAGE,
        _files(
            lambda files: files.keep_look(
                [KeepItem(source=FOLDER, target="p/r")], [TierPlace(name="scratch", path="/scratch")]
            )
        ),
    ),
    Recorded(
        "tasks",
        f"= {SWEEP_FOLDER}\n1/exit.json:{{}}\n2/gen.1.d/text:abcd.12_2\n==> 1/metrics.jsonl <==\n{{}}\n",
        _files(lambda files: files.gather_tasks([SWEEP_FOLDER])),
    ),
    Recorded("storage", STORAGE, lambda site: site.backend.storage([TierPlace(name="scratch", path="/scratch")])),
    Recorded(
        "workspaces",
        'folder\nholder {"run":"r","job":"1","node":"n1"}\nversion v1 {"version":{"number":1,"time":1.0},'
        '"index":"i1","packs":[["p1",1]]}\nsize 10\n',
        lambda site: ShellWorkspaces(site).look(["/w"]),
    ),
    Recorded(
        "a version of a workspace",
        {"version": {"number": 1, "time": 1.0, "size": 5, "note": "x"}, "index": "i1", "packs": [["p1", 1]]},
        _version,
    ),
    Recorded("home versions", "f\n5\n17.5\n644\n\nabc\n\nd\n5\n17.5\n755\n\n\n3\n", _home_versions),
    Recorded("home backups", "f 5 17.5 20261117T035512Z-k3x/a/b\n", _home_backups),
    Recorded("home sizes", f"3 100 7 folder\n{MARK} blocks\nh\n/dev/x 9 1 8 1% /\n", _home_sizes),
    Recorded("holders", "0.1 a-run\n0.1.dead me\n1.1 b-run\n", lambda site: ShellClaims(site).holders("/races/r")),
    Recorded("wants", "0 - word 3 run\n0 1 word 3 run\n", lambda site: ShellClaims(site).wants([FOLDER])),
    Recorded("environments", STATE, lambda site: ShellEnvs(site).look([f"{BASE}/envs/abc"])),
    Recorded("tools", TOOLS, lambda site: ShellEnvs(site).ask(BASE, "", [])),
    Recorded("unused", "wheels 5 100\nenv abc 5 100 17.5 {}\n", lambda site: ShellEnvs(site).prune("/r", BASE, 60, [])),
    Recorded("dev node", DEV, _dev),
    Recorded("dev.json", HOLDER, _status_of_dev),
    Recorded("service.json", SERVICE, _service),
    Recorded("word", "n1", _words),
    Recorded("home", "/home/alice\n", _home),
]
