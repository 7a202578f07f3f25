"""The arbiter of a race is a site that responds; candidates whose sites do not are saved with the same arbiter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from yurt.backends.answers import Want
from yurt.contexts import connect
from yurt.errors import UnreachableError
from yurt.lifecycle.plan.request import Planned, Unsettled
from yurt.lifecycle.plan.scheduling import Needs
from yurt.lifecycle.plan.settle import Draft
from yurt.lifecycle.race import first_cost
from yurt.lifecycle.races import candidates, submit
from yurt.model.context import Context
from yurt.model.progress import Watch
from yurt.model.run import Plan, Resources, Run
from yurt.store import Entry, Store
from yurt.testing.pod_claims import PodClaims

ALPHA, BETA = (Context(name=name, type="slurm", slurm_url=f"me@{name}") for name in ("alpha", "beta"))


class Site(PodClaims):
    """The claims on a cluster that can be cut off."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.cut = ""
        """What it does not respond to any more; "all": anything."""

    def check(self, what: str) -> None:
        if self.cut in (what, "all"):
            raise UnreachableError(f"{self.name} did not respond", code="timed-out")

    def wants(self, folders: Sequence[str]) -> list[Want]:
        self.check("wants")
        return super().wants(folders)

    def open(self, folder: str) -> None:
        self.check("open")
        super().open(folder)

    def close(self, folder: str) -> None:
        self.check("close")
        super().close(folder)


@pytest.fixture
def sites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Site]:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    found = {name: Site(name) for name in ("alpha", "beta")}

    def responding(name: str) -> SimpleNamespace:
        found[name].check("all")
        return SimpleNamespace(claims=found[name])

    def send(store: Store, names: list[str], watch: Watch) -> candidates.Sent:
        return candidates.Sent()

    monkeypatch.setattr(connect, "backend", lambda place: SimpleNamespace(claims=found[place.name]))
    monkeypatch.setattr(connect, "check_responds", lambda _place, _backend: None)
    monkeypatch.setattr(connect, "responding_backend", responding)
    monkeypatch.setattr(submit, "send", send)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "yurt.db")) as index:
        yield index


def planned(place: Context) -> Planned:
    run = Run(
        id=f"run-{place.name}",
        context=place.name,
        context_type="slurm",
        project="p",
        source="/p",
        created=1.0,
        command=["true"],
        folder=f"/{place.name}/yurt/projects/p/runs/run-{place.name}",
    )
    plan = Plan(run=run, project_folder=f"/{place.name}/yurt/projects/p", store="", words=[b"true"])
    return Planned(plan, [])


def race(store: Store, *plans: Planned) -> tuple[Entry, list[str]]:
    return submit.submit(store, [ALPHA, BETA], plans or [planned(ALPHA), planned(BETA)], None)


def arbiters(store: Store, entry: Entry) -> list[tuple[str, str, str]]:
    """Return the arbiter of the race and of its candidates, with their folders and how these know who was first."""
    plans = [store.plan(run) for run in (entry.run.id, *store.candidates(entry.run.id))]
    races = [plan.race for plan in plans if plan is not None and plan.race is not None]
    return [(each.arbiter, each.folder.split("/")[1], "reads" if each.here else "waits") for each in races]


def test_a_silent_site_is_not_the_arbiter_and_its_candidate_is_saved(store: Store, sites: dict[str, Site]) -> None:
    sites["alpha"].cut = "all"
    entry, warnings = race(store)
    assert arbiters(store, entry)[1:] == [("beta", "beta", "waits"), ("beta", "beta", "reads")]
    said = "alpha did not respond; the candidate on alpha is saved and will be submitted by the next yurt command that"
    assert [each.startswith(said) for each in warnings] == [True]
    waiting = store.get("run-alpha")
    assert waiting is not None and (waiting.status.state, waiting.status.reason) == ("waiting", "alpha did not respond")


def test_an_arbiter_that_is_cut_off_while_it_is_prepared_is_replaced(store: Store, sites: dict[str, Site]) -> None:
    sites["alpha"].cut = "open"
    entry, _warnings = race(store)
    assert {each[:2] for each in arbiters(store, entry)} == {("beta", "beta")}
    whole = store.plan(entry.run.id)
    assert whole is not None and whole.race is not None
    assert whole.race.keys == [("alpha", f"/alpha/yurt/races/{entry.run.id}")], (
        "what may be there is removed at the end"
    )


def test_nothing_is_kept_if_no_site_responds(store: Store, sites: dict[str, Site]) -> None:
    for each in sites.values():
        each.cut = "all"
    with pytest.raises(
        UnreachableError, match="no site of this race responds, and nothing was submitted: alpha did not"
    ):
        race(store)
    assert (list(store.newest()), store.open_races()) == ([], [])


def test_a_site_that_was_never_reached_takes_part_later(store: Store, sites: dict[str, Site]) -> None:
    late = planned(ALPHA)
    bare = msgspec.structs.replace(late.plan, run=msgspec.structs.replace(late.plan.run, folder=""), project_folder="")
    draft = msgspec.json.encode(Draft(bare, ALPHA, Needs(resources=Resources(), options={}, script=None)))
    error = UnreachableError("alpha did not respond", code="timed-out")
    entry, _warnings = race(store, Planned(bare, [], Unsettled(draft, error)), planned(BETA))
    assert arbiters(store, entry)[1:] == [("beta", "beta", "waits"), ("beta", "beta", "reads")]
    saved = msgspec.json.decode(store.draft("run-alpha"), type=Draft).plan
    assert saved.race is not None and (saved.race.arbiter, saved.run.race) == ("beta", entry.run.id)


def test_the_cost_of_waiting_is_said_once(store: Store, sites: dict[str, Site]) -> None:
    entry, _warnings = race(store)
    (text,) = first_cost(store, entry.run.id)
    assert text.startswith("a job on beta holds its node without work for up to 120 s") and "yurt agent start" in text
    assert first_cost(store, entry.run.id) == []
