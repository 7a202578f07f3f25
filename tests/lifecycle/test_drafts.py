"""First runs on a site that is unreachable and was never probed: they are saved, and checked when it responds."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.laptop import Laptop
from yurt.model.facts import Facts

pytestmark = pytest.mark.lab


class Newcomer(Laptop):
    """A user with contexts for both clusters, none of which was ever probed or can be reached yet."""

    def __init__(self, home: Path, config: Path) -> None:
        super().__init__(home, config)
        shutil.rmtree(home / "config/facts")
        self.contexts = home / "config/contexts.yaml"
        self.right = self.contexts.read_text()
        self.contexts.write_text(re.sub(r"slurm_url: .*", "slurm_url: nobody@nowhere.invalid", self.right))

    def lose_index(self) -> None:
        """Damage the index, and move it away as the hint of the error says."""
        index = self.home / "data" / "yurt.db"
        for other in ("-wal", "-shm"):
            Path(f"{index}{other}").unlink(missing_ok=True)
        index.write_bytes(b"this is no database" * 1000)
        assert f"mv {index} {index}.damaged" in self("ps").err
        index.rename(f"{index}.damaged")

    def arrive(self) -> None:
        """Correct the addresses: the clusters respond from now on."""
        self.contexts.write_text(self.right)


@pytest.fixture
def newcomer(tmp_path: Path, probed: Path) -> Iterator[Newcomer]:
    with Newcomer(tmp_path / "laptop", probed) as made:
        yield made


def shown(laptop: Laptop, run: str) -> dict[str, Any]:
    data: dict[str, Any] = laptop("show", run, "--json").json["data"]
    return data


@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_all_kinds_of_runs_are_kept_and_submitted_later(newcomer: Newcomer, context: str) -> None:
    (newcomer.project / "train.py").write_text("print('as it was')\n")
    made = newcomer.run(context, "--name", "first", "--var", "SEED=7", "sh", "-c", "cat train.py; echo $SEED $PWD")
    assert made["status"]["state"] == "waiting" and made["run"]["folder"] == ""
    (warning,) = made["warnings"]
    assert warning.endswith(
        f"is saved and will be checked and submitted by the next yurt command that reaches {context}"
    )
    sweep = newcomer.run(context, "--grid", "n=1,2", "--time", "5m", "sh", "-c", "echo {n}")["run"]["id"]
    after = newcomer.run(context, "--after", "first", "sh", "-c", "echo after")["run"]["id"]
    bad = newcomer.run(context, "sh", "-c", "sleep 2; exit 3")["run"]["id"]
    never = newcomer.run(context, "--after", bad, "sh", "-c", "echo never")["run"]["id"]
    (newcomer.project / "train.py").write_text("print('changed since')\n")
    newcomer.lose_index()
    for verb in ("ps", "ps --cached", f"show {sweep}", "show first"):
        assert newcomer(*verb.split()).code == 0, verb
    assert "waiting" in newcomer("show", "first").out and "\nfolder" not in newcomer("show", "first").out
    newcomer.arrive()
    assert newcomer("ps").code == 0
    one, last = newcomer.ended(made["run"]["id"]), newcomer.ended(after)
    assert (one["state"], last["state"], newcomer.ended(sweep)["state"]) == ("completed",) * 3
    assert one["folder"].endswith(one["id"]) and newcomer.ended(never)["state"] == "cancelled"
    text = newcomer("logs", "first").out
    assert text.startswith("print('as it was')\n7 /") and newcomer("logs", f"{sweep}.1").out == "2\n"
    assert newcomer("fetch", "first", "--to", str(newcomer.home / "there")).code == 0
    again = newcomer("--json", "retry", "first").json["data"][0]["run"]["id"]
    assert newcomer.ended(again)["state"] == "completed"


def test_a_run_that_the_site_rejects_when_it_responds(newcomer: Newcomer) -> None:
    wrong = newcomer.run("alpha", "--partition", "nowhere", "true")["run"]["id"]
    good = newcomer.run("alpha", "true")["run"]["id"]
    newcomer.arrive()
    looked = newcomer("ps")
    assert looked.code == 0 and f"run {wrong} was rejected: alpha: partition 'nowhere' not found" in looked.err, looked
    assert newcomer.ended(good)["state"] == "completed"
    found = shown(newcomer, wrong)["status"]
    assert found["state"] == "failed" and "nowhere" in found["reason"]
    refused = newcomer("retry", wrong)
    assert refused.code == 5 and "nowhere" in refused.err


def test_a_run_that_is_cancelled_before_the_site_responds(newcomer: Newcomer) -> None:
    run = newcomer.run("alpha", "echo", "hello")["run"]["id"]
    assert newcomer("cancel", run).code == 0
    assert newcomer("retry", run).code == 4, "nothing is known of the site"
    for verb in ("show", "logs", "fetch"):
        done = newcomer(verb, run)
        assert done.code in (0, 3) and "Traceback" not in done.err, done
    newcomer.arrive()
    newcomer("ps")
    assert shown(newcomer, run)["status"]["state"] == "cancelled"
    again = newcomer("--json", "retry", run).json["data"][0]["run"]["id"]
    assert newcomer.ended(again)["state"] == "completed" and newcomer("logs", again).out == "hello\n"
    assert newcomer("prune", run, "--yes").code in (0, 3)


def test_mistakes_are_still_reported_at_once(newcomer: Newcomer) -> None:
    for words, code, said in (
        (("--time", "soon", "true"), 2, "--time"),
        (("--requeue", "--time", "1m", "--signal-before", "2m", "true"), 2, "--signal-before (120 s)"),
        (("--dry-run", "true"), 4, "alpha"),
    ):
        done = newcomer("--context", "alpha", "run", *words)
        assert done.code == code and said in done.err, done
    assert newcomer("ps", "--cached", "--json").json["data"] == []


def test_paths_of_the_site_and_its_default_time_limit(newcomer: Newcomer) -> None:
    """The plan is the one that a probed site would have given."""
    words = ("--requeue", "--venv", "~/env", "--nodes", "2", "sh", "-c", "true")
    saved = newcomer.run("alpha", "--hold", *words)["run"]["id"]
    newcomer.arrive()
    newcomer("ps")
    late = shown(newcomer, saved)["run"]
    newcomer("cancel", saved)
    early = newcomer.run("alpha", "--hold", *words)["run"]
    newcomer("cancel", early["id"])
    same = ("resources", "restart_policy", "settings", "project", "command", "context_type")
    for run in (late, early):
        run["settings"] = [each for each in run["settings"] if each["key"] != "slurm_url"]
    assert {key: late[key] for key in same} == {key: early[key] for key in same}
    assert late["folder"].rpartition("/")[0] == early["folder"].rpartition("/")[0]
    assert late["restart_policy"]["signal_before"] > 0


def test_the_index_has_the_draft_or_the_complete_plan(newcomer: Newcomer) -> None:
    from yurt.lifecycle.plan.settle import Draft, settle
    from yurt.store import Store

    run = newcomer.run("alpha", "true")["run"]["id"]
    with Store(str(newcomer.home / "data/yurt.db")) as store:
        draft = msgspec.json.decode(store.draft(run), type=Draft)
        facts = Facts(probed_at=0, user="alice", host="alpha", variables={"HOME": "/home/alice"})
        plan = settle(draft, facts, store).plan
        assert plan.run.folder.endswith(run) and store.draft(run)
        store.settle(plan)
        assert not store.draft(run)
        found = store.get(run)
        assert found is not None and found.run == plan.run and store.plan(run) == plan
        store.remove(run)
        assert store.plan(run) is None
