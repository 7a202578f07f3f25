"""A small backend without ssh or a shared disk, to show that the contract needs neither.

Each run is a pod: a process with its own disk, which is removed with it. Only this backend can access that disk; claims
and code are stored in memory. Sweeps are not supported.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from yurt.backends.answers import CodeParcel, MakeParcel, Observed, Placed, Preview, Uploaded
from yurt.backends.base import Envs, Workspaces
from yurt.errors import RefusedError
from yurt.model import ids
from yurt.model.calls import CallResult
from yurt.model.facts import Account, Facts
from yurt.model.files import (
    NOTHING,
    Brought,
    Contents,
    Ended,
    Gathered,
    Held,
    Holdings,
    KeepItem,
    KeepSource,
    KeptItem,
    Limits,
    LogPosition,
    LogSink,
    Measures,
    Pick,
    Piece,
    Progress,
    Pull,
    Removed,
    Survey,
)
from yurt.model.growth import Growing, Kind, Reader
from yurt.model.live import Live, LiveNode
from yurt.model.run import Plan, Resources, RunRef
from yurt.model.secrets import Shares
from yurt.model.site_words import NodeName
from yurt.model.state import CANCELLED, Ending, Observation
from yurt.model.storage import StorageReport, TierPlace, TierUse
from yurt.model.waiting import EndedJob, WaitingJob
from yurt.model.where import Answer, Forecast, Question
from yurt.testing import pod_parts as pod_growth
from yurt.testing.pod import NODE, Pod
from yurt.testing.pod_parts import PodClaims, PodExec


class Pods:
    """The backend; it implements all capabilities itself."""

    def __init__(self) -> None:
        self.name = "pods"
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}
        self._claims = PodClaims()
        self._written: dict[tuple[str, str], str] = {}
        self._trees: dict[str, bytes] = {}

    def silent_since(self, part: str = "") -> float | None:
        del part
        return None

    def gave_up(self, part: str = "") -> bool:
        del part
        return False

    @property
    def runs(self) -> Pods:
        return self

    files = code = runs

    @property
    def claims(self) -> PodClaims:
        return self._claims

    @property
    def exec(self) -> PodExec:
        return PodExec(self._pods)

    @property
    def forward(self) -> _Ports:
        return _Ports()

    @property
    def envs(self) -> Envs:
        raise RefusedError("pods: environments are not supported", code="site-refused")

    @property
    def workspaces(self) -> Workspaces:
        raise RefusedError("pods: workspaces are not supported", code="site-refused")

    def nodes(self) -> list[LiveNode]:
        return []

    @property
    def site(self) -> Pods:
        return self

    def storage(self, places: Sequence[TierPlace], report: str = "", own: Sequence[str] = ()) -> StorageReport:
        del report, own
        return StorageReport(tiers=[TierUse(name=each.name) for each in places])

    def look(self, accounts: Sequence[Account]) -> Live:
        del accounts
        return Live(at=time.time(), host=NODE)

    def forecast(self, accounts: Sequence[Account], question: Question) -> Forecast:
        answers = [Answer(ask=ask, seconds=0.0) for ask in question.asks if not ask.shaped]
        return Forecast(live=self.look(accounts), answers=answers)

    def look_at(self, job: str, accounts: Sequence[Account]) -> tuple[Live, WaitingJob | None]:
        del job
        return self.look(accounts), None

    def look_back(self, job: str, node: str) -> EndedJob:
        del job, node
        return EndedJob()

    # Runs

    def check(self, resources: Resources, facts: Facts | None, folder: str) -> list[str]:
        del facts, folder
        return ["a pod has no GPUs"] if resources.gpus else []

    def preview(self, plan: Plan) -> Preview:
        return Preview("a pod", {"run.json": msgspec.json.encode(plan.run), "plan.json": msgspec.json.encode(plan)})

    def submit(
        self,
        plan: Plan,
        nonce: str,
        code: CodeParcel,
        *,
        start: int = 1,
        tasks: str = "",
        shares: Shares | None = None,
        calls: bytes = b"",
        building: bool = False,
        room: TierPlace | None = None,
    ) -> Placed:
        del building, room
        if tasks or shares is not None or calls or start > 1:
            raise RefusedError("pods: only single starts of plain runs are supported", code="site-refused")
        with self._lock:
            tree = plan.run.code.tree
            if tree and tree not in self._trees:
                if code.kind != "tar":
                    return Placed(needs=["plain"])
                self._trees[tree] = code.content
            job = f"pod-{plan.run.id}"
            winner = self._written.setdefault((plan.run.folder, "winner"), f"{nonce}.{job}")
            if winner != f"{nonce}.{job}":
                return Placed(winner=winner, job=winner.partition(".")[2])
            self._pods[plan.run.folder] = pod = Pod(plan, job, self._trees.get(tree, b""))
            pod.thread.start()
            return Placed(job=job)

    def observe(self, runs: Sequence[RunRef], since: bytes = b"", running: str = "") -> Observed:
        del since, running
        return Observed({run.id: self._observe(run) for run in runs})

    def _observe(self, run: RunRef) -> Observation:
        winner = self._holder(run.folder, "winner")
        pod = self._pods.get(run.folder)
        if pod is None:
            return Observation(winner=winner, gone=not winner, sure=True)
        content = self.read(run.folder, "exit.json")
        over = content is not None
        return Observation(
            live=None if over else "running",
            native="" if over else "running",
            ending=msgspec.json.decode(content, type=Ending) if content is not None else None,
            job=pod.job,
            node=NODE,
            started=pod.started,
            winner=winner,
            generation=1,
            start=winner,
            sure=over,
        )

    def cancel(self, run: RunRef) -> str:
        winner = self._put(run.folder, "winner", CANCELLED)
        pod = self._pods.get(run.folder)
        if pod is not None and not pod.ended:
            pod.cause = CANCELLED
            threading.Thread(target=pod.stop, daemon=True).start()
        return winner

    def cancel_runs(self, runs: Sequence[RunRef]) -> dict[str, str]:
        return {run.id: self.cancel(run) for run in runs}

    def cancel_tasks(self, sweep: RunRef) -> dict[int, str]:
        raise RefusedError(f"pods: sweep {sweep.id} not found", code="site-refused")

    def hold(self, jobs: Sequence[str]) -> None:
        del jobs

    def release(self, jobs: Sequence[str]) -> None:
        del jobs

    def release_synced(self, jobs: Sequence[str]) -> None:
        del jobs

    def forget_sync(self, jobs: Sequence[str]) -> None:
        del jobs

    def extend(self, job: str, minutes: int) -> None:
        raise RefusedError(f"pods: job {job} cannot run {minutes} minutes longer", code="site-refused")

    def allow_any_node(self, job: str) -> None:
        del job

    def discard(self, run: RunRef) -> None:
        if not self._holder(run.folder, "winner"):
            self.remove([run.folder])

    def drop_shares(self, folders: Sequence[str]) -> None:
        del folders

    def _put(self, folder: str, name: str, text: str) -> str:
        with self._lock:
            return self._written.setdefault((folder, name), text)

    def _holder(self, folder: str, name: str) -> str:
        with self._lock:
            return self._written.get((folder, name), "")

    # Code

    def ensure(self, project_folder: str, tree: str, make: MakeParcel) -> int:
        del project_folder
        if tree in self._trees:
            return 0
        parcel = make(["plain"])
        with self._lock:
            self._trees[tree] = parcel.content
        return len(parcel.content)

    def upload(
        self, project_folder: str, tree: str, parcel: CodeParcel, *, resume: bool, moved: Callable[[int], None]
    ) -> Uploaded:
        del project_folder, resume
        with self._lock:
            self._trees[tree] = parcel.content
        moved(len(parcel.content))
        return "complete"

    # Files

    def _disk(self, folder: str) -> Path | None:
        pod = self._pods.get(folder)
        return None if pod is None else pod.disk

    def read(self, folder: str, name: str, *, longest_line: int | None = None) -> bytes | None:
        del longest_line
        if (held := self._holder(folder, name)) and name != "status.json":
            return f"{held}\n".encode()
        disk = self._disk(folder)
        try:
            return None if disk is None else (disk / name).read_bytes()
        except OSError:
            return None

    def tail(
        self,
        logs: Sequence[LogPosition],
        sink: LogSink,
        *,
        lines: int | None = None,
        follow: bool = False,
        seconds: int = 0,
        on_end: Callable[[LogPosition], None] = lambda _log: None,
    ) -> None:
        until = time.monotonic() + (seconds or 3600 if follow or seconds else 0)
        while True:
            open_ones = [log for log in logs if not log.done and not log.gone]
            for log in open_ones:
                self._tail(log, sink, lines)
                if log.done:
                    on_end(log)
            if time.monotonic() >= until or all(log.done or log.gone for log in logs):
                return
            time.sleep(0.1)

    def _tail(self, log: LogPosition, sink: LogSink, lines: int | None) -> None:
        pod = self._pods.get(log.folder)
        if pod is None:
            log.gone = True
            return
        over = pod.ended
        for which in ("out", "err"):
            text = self.read(log.folder, f"{which}.log") or b""
            at = log.out if which == "out" else log.err
            part = text[at:]
            if lines is not None and not at:
                part = b"".join(part.splitlines(keepends=True)[-lines:])
            if part:
                sink(log, "out" if which == "out" else "err", part)
            setattr(log, which, len(text))
        log.done = over

    def collect(
        self, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool = False, timeout: float
    ) -> dict[int, dict[str, Piece]]:
        del measure, timeout
        found: dict[int, dict[str, Piece]] = {}
        for at, each in enumerate(ended):
            pieces: dict[str, Piece] = {}
            if self._disk(each.folder) is not None:
                verdict = self._put(each.folder, "status.json", each.verdict).encode()
                pieces = {"there": Piece(0, b""), "status.json": Piece(len(verdict), verdict)}
                for name, file in (("out", "out.log"), ("err", "err.log"), ("exit.json", "exit.json")):
                    text = self.read(each.folder, file) or b""
                    if content:
                        pieces[name] = Piece(len(text), text[-limits.log :])
            found[at] = pieces
        return found

    def grow(self, growing: Sequence[Growing], kinds: Sequence[Kind], reader: Reader) -> None:
        pod_growth.grow([self._disk(each.folder) for each in growing], growing, kinds, reader)

    def call_results(self, folders: Sequence[str]) -> list[CallResult]:
        return [CallResult(gone=True) for _folder in folders]

    def submitted_groups(self, folders: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(folders, "")

    def list_runs(self, base: str) -> list[str] | None:
        found = [folder for folder in self._pods if folder.startswith(f"{base}/projects/")]
        return found or None

    def gather(self, folders: Sequence[str]) -> tuple[dict[str, Gathered | None], int]:
        return {folder: self._gathered(folder) for folder in folders}, len(folders)

    def _gathered(self, folder: str) -> Gathered:
        names = ("run.json", "plan.json", "exit.json", "winner", "status.json")
        files = {name: text for name in names if (text := self.read(folder, name)) is not None}
        pod = self._pods.get(folder)
        return Gathered(files if pod is None else {**files, "gen.1": pod.job.encode()}, pod.started if pod else 0)

    def gather_tasks(self, sweeps: Sequence[str]) -> dict[str, dict[int, Gathered]]:
        return {folder: {} for folder in sweeps}

    def contents(self, folders: Sequence[str]) -> dict[str, Contents]:
        disks = {folder: self._disk(folder) for folder in folders}
        return {
            folder: Contents(
                (disk / "exit.json").exists(),
                Measures(_measure(disk / "outputs"), _measure(disk / "checkpoints")),
            )
            for folder, disk in disks.items()
            if disk is not None
        }

    def outputs_at_once(self, folder: str, target: Path, pick: Pick, progress: Progress) -> None:
        """Always leave it to `contents` and `pull`."""

    def pull(
        self, runs: Sequence[Pull], target: Path, pick: Pick, progress: Progress, *, everything: bool
    ) -> tuple[str, Brought]:
        below = {}
        for run in runs:
            disk = self._disk(run.folder)
            if disk is None:
                raise RefusedError(f"pods: folder {run.folder} not found", code="site-refused")
            source = disk if everything else disk / "outputs"
            below[run.name] = _copied(source, target if len(runs) == 1 else target / run.name, pick)
            progress(below[run.name].size, 100)
        if len(runs) == 1:
            return "pods", below[runs[0].name]
        sums = {name: sum(getattr(each, name) for each in below.values()) for name in ("files", "size", "matched")}
        return "pods", Brought(**sums, below=below)

    def keep_look(
        self, items: Sequence[KeepItem], places: Sequence[TierPlace]
    ) -> tuple[list[KeepSource], list[TierUse]]:
        del places
        return [KeepSource(what="gone") for _each in items], []

    def keep(
        self, tier: str, items: Sequence[KeepItem], *, checkpoints: bool, copied: Callable[[int], None]
    ) -> list[KeptItem]:
        del tier, checkpoints, copied
        return [KeptItem(failed="a pod has no other tier") for _each in items]

    def survey(self, folders: Sequence[str]) -> list[Survey]:
        there = self.contents(folders)
        return [Survey("there", 0, there[folder].measures) if folder in there else Survey("gone") for folder in folders]

    def holdings(self, base: str) -> Holdings:
        folders = self.list_runs(base) or []
        surveys = zip(folders, self.survey(folders), strict=True)
        return Holdings([Held(folder, self._pods[folder].ended, each) for folder, each in surveys], {})

    def remove(self, folders: Sequence[str]) -> Removed:
        gone = []
        for folder in folders:
            pod = self._pods.pop(folder, None)
            if pod is not None:
                pod.stop()
                pod.thread.join()
                shutil.rmtree(pod.disk)
            with self._lock:
                self._written = {key: each for key, each in self._written.items() if key[0] != folder}
            gone.append(folder.rpartition("/")[2])
        return Removed([run for run in gone if ids.names_folder(run)])

    def clear(self, base: str, folders: Sequence[str], home: str = "") -> Removed:
        del base, home
        return self.remove(folders)


class _Ports:
    """Port forwarding; pods listen on this machine."""

    @contextlib.contextmanager
    def forward(self, node: NodeName | None, port: int) -> Iterator[int]:
        del node
        yield port


def _measure(folder: Path) -> str:
    stats = [each.stat() for each in folder.rglob("*") if each.is_file()]
    if not stats:
        return NOTHING
    return f"{len(stats)}:{sum(each.st_size for each in stats)}:{max(each.st_mtime for each in stats)}"


def _copied(source: Path, target: Path, pick: Pick) -> Brought:
    files = size = matched = 0
    for each in source.rglob("*"):
        if not each.is_file() or (pick.only and not any(each.match(glob) for glob in pick.only)):
            continue
        matched += 1
        place = target / each.relative_to(source)
        if place.exists() and place.stat().st_size == each.stat().st_size:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(each, place)
        files, size = files + 1, size + each.stat().st_size
    return Brought(files=files, size=size, matched=matched)
