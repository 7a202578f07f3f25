"""The recorded answers about homes, data, dev nodes and the health of a site, for `tests.campaign.hostile`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec

from tests.campaign.hostile_answers import BASE, CONTEXT, MARK, RECORD, Recorded, Site
from yurt.backends.answers import Asked
from yurt.backends.shell.envs import ShellEnvs
from yurt.backends.shell.workspaces import ShellWorkspaces
from yurt.contexts.doctor import contexts as doctor
from yurt.dev import backup as dev_backup
from yurt.dev import down as dev_down
from yurt.dev import extend as dev_extend
from yurt.dev import restore as dev_restore
from yurt.dev.desks import Desk
from yurt.errors import RefusedError, YurtError
from yurt.homes import backups, deletions, guard, install, output, profile, versions
from yurt.homes.config import Homes, PlaceSettings
from yurt.homes.places import Pair, Place
from yurt.model.env import SitePython
from yurt.model.facts import Facts
from yurt.model.files import unreported
from yurt.model.result import Result
from yurt.model.run import Status
from yurt.storage import contents, transfer
from yurt.storage.spots import Spot
from yurt.store import Entry
from yurt.transport import tar_copy
from yurt.transport.side import Side

HOMES = Homes(hub="alpha", places={"beta": PlaceSettings(address="bob@beta.invalid")})
FACTS = Facts(probed_at=1.0, user="alice", host="login1", variables={"HOME": "/home/alice"})


class Hub(Place):
    """The home on a login node that gives this answer to each request."""

    def __init__(self, site: Site) -> None:
        super().__init__("alpha", HOMES)
        self.host, self.root = site, "/home/alice"


class Datum(Spot, frozen=True, dict=True):
    """A folder on such a login node."""

    @classmethod
    def on(cls, site: Site, path: str = "/data/x") -> Datum:
        found = cls(CONTEXT, FACTS, path, inside=False)
        found.__dict__["host"] = site
        return found


def _homes(use: Callable[[Hub], object]) -> Callable[[Site], object]:
    def on(site: Site) -> None:
        found = use(Hub(site))
        if isinstance(found, msgspec.Struct):
            msgspec.json.encode(found)

    return on


def _looked(hub: Hub) -> None:
    found, _errors = versions.look([hub], {"alpha": ["a", "b"]})
    for each in found["alpha"].values():
        assert isinstance(each.same(each), bool)


def _backups(hub: Hub) -> None:
    found = backups.listed([hub])
    msgspec.json.encode(_plain(msgspec.to_builtins(found.backups)))


def _counted(hub: Hub) -> None:
    rest = Place("beta", HOMES)
    kept = [output.Kept("a/b", by_server=False), output.Kept("c", by_server=False)]
    decided = deletions.decide(Pair(hub, rest), kept, deletions.Guard("", deletions.refused))
    deletions.hint(decided.deletions)
    for each in decided.deletions:
        deletions.text(each)


def _synced(hub: Hub) -> None:
    out, _split, err = hub.run("").out.partition(b"\n--\n")
    found = output.read(out, err, "token")
    assert found.transferred < 1 << 62 and output.percent(out) in (None, *range(101))


def _listed(site: Site) -> None:
    _kind, entries = contents.listed(Datum.on(site))
    json.dumps([msgspec.structs.asdict(each) for each in entries])


def _removed(site: Site) -> None:
    places = [Datum.on(site, "/data/a"), Datum.on(site, "/data/b")]
    measured = contents.measured(places)
    assert len(measured) == len(places)
    contents.remove(places, {"alpha:/data/a": 3})


def _not_removed(site: Site) -> None:
    with contextlib.suppress(RefusedError):
        _removed(site)


def _between(site: Site) -> None:
    side = Side(site, "/data/x")
    with mock.patch("yurt.transport.tar_copy._send"):
        tar_copy.between(side, side, unreported, folder=True)


def _looked_at(site: Site) -> None:
    place = Datum.on(site)
    assert transfer.look(place)[0] in ("file", "folder")
    transfer.has_folder(Side(site, place.path))


def _asked(*verbs: Callable[[], Result[Any]]) -> Callable[[Site], object]:
    """Let a dev node answer each request with this."""

    def on(site: Site) -> None:
        desk = Desk("default", Entry(msgspec.structs.replace(RECORD, purpose="dev", name="default"), DEV_RUNS))
        answer = Asked(0, b"a line of a profile\n" + site._content.replace(b"\n", b" ") + b"\n", b"")
        backend = mock.Mock()

        def ask(*_arguments: object, on_line: Callable[[bytes], None], **_more: object) -> Asked:
            for line in answer.out.splitlines():
                on_line(line)
            return answer

        backend.exec.ask, backend.files.read = ask, lambda *_arguments: None
        with (
            mock.patch("yurt.contexts.connect.named_backend", lambda _name: backend),
            mock.patch("yurt.dev.find.running", lambda *_arguments: desk),
            mock.patch("yurt.dev.restore.find", lambda *_arguments, **_more: (None, mock.Mock(number=3))),
            mock.patch("yurt.dev.down.find", lambda *_arguments: desk),
            mock.patch("yurt.dev.down.until_ended", lambda *_arguments, **_more: [DEV_ENDED]),
        ):
            for verb in verbs:
                with contextlib.suppress(YurtError):
                    msgspec.json.encode(_plain(msgspec.to_builtins(verb().data)))

    return on


def _back_up() -> Result[Any]:
    return dev_backup.backup("default", check=True)


def _extend() -> Result[Any]:
    return dev_extend.extend("default")


def _restore() -> Result[Any]:
    return dev_restore.on_node("default", "", ["a"])


def _end() -> Result[Any]:
    return dev_down.down("default")


def _plain(value: Any) -> Any:
    """Return what `--json` prints: names of files may be any bytes."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="backslashreplace")
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _examined(site: Site) -> None:
    with (
        mock.patch.object(doctor, "host_of", lambda _context: site),
        mock.patch.object(doctor, "facts_if_probed", lambda _context: FACTS),
        mock.patch.object(doctor, "_before", lambda *_arguments: iter(())),
    ):
        msgspec.json.encode(doctor.examine(CONTEXT))


def _uploaded(site: Site) -> None:
    file = site.folder / "pack"
    file.write_bytes(b"x" * 100)
    ShellWorkspaces(site).send(f"{BASE}/workspaces/w", "p1", file, lambda _done: None)


DEV_RUNS = Status(state="running", job="12", node="n1")
DEV_ENDED = Entry(RECORD, Status(state="completed", job="12", node="n1"))
PYTHON = SitePython("3.11.2", "/usr/bin/python3", venv=True)

VERSION = {"number": 3, "time": 1.0, "reason": "asked", "host": "n1", "run": "r", "size": 5, "files": 2, "seconds": 0.5}
HELD = {
    "ok": True,
    "progress": {"phase": "saving", "done": 1, "total": 2},
    "version": VERSION,
    "changed": True,
    "damaged": [1],
    "end": 9.5,
    "folder": "/tmp/f",
    "aside": "/tmp/a",
    "paths": ["a"],
}
DOWN = {"ok": True, "version": 3, "note": "n", "added": [{"name": "a", "version": "1"}]}
WRONG = {"error": "no such path", "missing": True}

SURVEYED = f"""3 100 5000 data
1 10 90 \n{MARK} blocks
/dev/sda1 1000 500 500 50% /home
{MARK} inodes
/dev/sda1 1000 500 500 50% /home
{MARK} quota
  /dev/sda1 100* 50 60 6days 10 20 30
{MARK} lustre
/home 100 50 60 - 10 20 30 -
"""
UNISON = """new file ---->            a/b  \n         <-?-> deleted    c d  \n[BGN] 55%  00:01 ETA
--

Synchronization incomplete at 10:00:00  (1 item transferred, 1 skipped, 1 failed)
  skipped: c d (conflicting updates)
  failed: a/b
yurt-side token alpha begun 12 waits
"""
EXAMINED = f"""
{MARK} who
alice
login1
/bin/bash
{MARK} begin
1794864000
{MARK} tools
git git version 2.39
rsync rsync 3.2.7
{MARK} profile
code 1
bad line
{MARK} space
home 1000 500 1000 10 /home/alice
{MARK} quota
  /dev/sda1 100* 50 60 6days 10 20 30
{MARK} owner
40 /scratch is open
real /lustre/scratch
{MARK} write
written
{MARK} modules
found
missing cuda/1
{MARK} paths
venv=/x
{MARK} sinfo
partition main up
{MARK} version
slurm 24.11.5
{MARK} accounts
lab
{MARK} submit
sbatch: error: no
{MARK} end
1794864009
"""

PLACES = [
    Recorded("survey of a home", SURVEYED, _homes(lambda hub: guard.survey([hub], ""))),
    Recorded(
        "versions in a home",
        "f\x005\x0017.5\x00644\x00\x00abc  -\x00\x00d\x000\x0017.5\x00755\x00\x00\x003\x00",
        _homes(_looked),
    ),
    Recorded("backups of a home", "f 5 17.5 20261118T042152Z-x/a b\n", _homes(_backups)),
    Recorded("newest backup", "20261118T042152Z-x\n", _homes(lambda hub: backups.newest([hub], "a"))),
    Recorded("restored backup", "3 saved\n", _homes(lambda hub: backups.restore(hub, "20261118T042152Z-x", "a"))),
    Recorded("deleted files", "3 101 500\n", _homes(_counted)),
    Recorded(
        "home_sync",
        "/home/alice/.local/bin/home_sync\n/usr/bin:/bin\nbob@beta\n",
        _homes(lambda hub: install.install(HOMES, hub)),
    ),
    Recorded("profile", "/home/alice/.unison/yurt-homes.prf\nignore = Name x\n", _homes(profile.read)),
    Recorded("output of Unison", UNISON, _homes(_synced)),
    Recorded("files of a folder", "d 0 0 0 /data/x\x00f 1 5 17.5 a b\x00f 1 5 17 .yurt-1-3.yurt-pack\x00", _listed),
    Recorded("removed files", "d 3 100 17.5 /data/a\x00f 1 5  /data/b\x00", _removed),
    Recorded("files that were left", "left 3 0 0 /data/a\x00d 1 0 0 /data/b\x00", _not_removed),
    Recorded("refused removal", "refused 0 0 0 /home/alice\x00", _not_removed),
    Recorded("files to copy", "5 17.5 \x00./a b\x00\x00./c\x00", _between),
    Recorded("a place", "file rsync git\n", _looked_at),
    Recorded("answer of a dev node", HELD, _asked(_back_up, _extend, _restore)),
    Recorded("end of a dev node", DOWN, _asked(_end)),
    Recorded("error of a dev node", WRONG, _asked(_back_up, _end)),
    Recorded("examination", EXAMINED, _examined),
    Recorded(
        "wheelhouse",
        f'{MARK} {{"asked":["a"],"wheels":[["/w/a.whl","x"]],"missing":[]}}\n',
        lambda site: ShellEnvs(site).wheelhouse(PYTHON, "", [], ["/w"], ["a"]),
    ),
    Recorded("uploaded backup", "5\n", _uploaded),
]
