"""Jobs that wait for a home sync: real Slurm, real ssh, real Unison."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.wheels import download
from yurt.lab import Lab
from yurt.model.state import WAITS_FOR_SYNC
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


SCRATCH = "/lustre/scratch/alice"

SLOW_UNISON = """\
#!/bin/sh
case $1 in -version) exec unison -version ;; esac
: > "$HOME/{0}/started"
until [ -e "$HOME/{0}/go" ]; do sleep 0.1; done
exec unison "$@"
"""


class Homes:
    """The homes of a laptop and the clusters of the lab: folders of their own in the homes there."""

    def __init__(self, laptop: Laptop, ssh: Ssh) -> None:
        self.laptop, self.ssh = laptop, ssh
        self.here = laptop.home / "homes"
        self.here.mkdir(mode=0o700)
        self.there = f"homes-{laptop.home.parent.name}"
        laptop.environment["UNISON"] = str(laptop.home / "unison")

    def write(self, *places: str, settings: str = "", more: str = "") -> None:
        """Write homes.yaml."""
        rows = "".join(f"  {place}: {{root: {self.there}{settings}}}\n" for place in places)
        text = f"folder: {self.here}\n{more}places:\n{rows}"
        for place in places:
            self.ssh(place, f"mkdir -p -m 700 {self.there}")
        file = self.laptop.home / "config/homes.yaml"
        file.write_text(text)
        file.chmod(0o600)

    def conflict(self, place: str) -> None:
        (self.here / "notes").write_text("mine\n")
        self.ssh(place, f"echo theirs > {self.there}/notes")

    def resolve(self, place: str) -> None:
        self.ssh(place, f"echo kept > {self.there}/kept; rm {self.there}/notes")  # an empty home is refused

    def submit(self, place: str, options: str = "--hold --comment home_sync") -> str:
        return self.ssh.submit(place, "true", options)

    def held(self, place: str, job: str) -> bool:
        return "JobHeldUser" in self.ssh(place, f"squeue -h -t all -j {job} -o %r")


@pytest.fixture
def homes(laptop: Laptop, lab: Lab) -> Iterator[Homes]:
    ssh = Ssh(lab)
    made = Homes(laptop, ssh)
    yield made
    for place in ("alpha", "beta"):
        ssh.ask(place, f"scancel -u alice -t PENDING; rm -rf {made.there} .unison")


def test_a_failed_sync_of_one_cluster_does_not_keep_the_jobs_of_another(homes: Homes) -> None:
    laptop = homes.laptop
    homes.write("alpha", "beta")
    homes.conflict("alpha")
    on_alpha = laptop.run("alpha", "--sync", "train.py")
    assert on_alpha["status"]["state"] == "held"
    assert "the home sync of alpha failed: 1 conflict" in on_alpha["warnings"][0]
    on_beta = laptop.run("beta", "--sync", "train.py")
    assert "alpha was not synced completely, so some of its changes may be missing" in on_beta["warnings"][0]
    assert laptop.ended(on_beta["run"]["id"])["state"] == "completed"
    row = laptop.row(on_alpha["run"]["id"])
    failed = "the last sync failed: 1 conflict (see `yurt home conflicts`)"
    assert (row["state"], row["reason"]) == ("held", f"{WAITS_FOR_SYNC}; {failed}")
    assert f"held: {row['reason']}" in laptop.quick("show", row["id"]).out
    homes.resolve("alpha")
    plain, other = homes.submit("alpha"), homes.submit("alpha", "--hold --comment mine")
    array = homes.submit("alpha", "--hold --comment home_sync --array=0-2")
    done = laptop.quick("home", "sync", "alpha", "--yes")
    for job in (on_alpha["status"]["job"], plain, array):
        assert f"released job alpha:{job}\n" in done.out, done
    assert homes.held("alpha", other)
    assert laptop.ended(on_alpha["run"]["id"])["state"] == "completed"


def test_a_sync_under_way_does_not_release_a_job(homes: Homes) -> None:
    """The job may have started from files that this sync did not look at."""
    laptop, there = homes.laptop, homes.there
    homes.write("alpha", settings=f", unison: /home/alice/{there}.bin/unison")
    program = SLOW_UNISON.format(f"{there}.bin")
    homes.ssh(
        "alpha", f"mkdir -p {there}.bin && cat > {there}.bin/unison <<'end'\n{program}end\nchmod 755 {there}.bin/*"
    )
    before = homes.submit("alpha")
    environment = {**os.environ, **laptop.environment}
    command = [YURT, "home", "sync", "--yes"]
    with subprocess.Popen(command, cwd=laptop.project, env=environment, stdout=subprocess.PIPE, text=True) as syncing:
        eventually(lambda: homes.ssh.ask("alpha", f"test -e {there}.bin/started").code == 0)
        during = homes.submit("alpha")
        homes.ssh("alpha", f"touch {there}.bin/go")
        out, _err = syncing.communicate()
    assert syncing.returncode == 0 and f"released job alpha:{before}" in out, out
    assert homes.held("alpha", during) and during not in out
    assert f"released job alpha:{during}" in laptop.quick("home", "sync").out
    homes.ssh("alpha", f"rm -r {there}.bin")


def test_a_held_run_says_which_path_keeps_it(homes: Homes) -> None:
    """A large deletion that is not confirmed, and a file that cannot be read."""
    laptop = homes.laptop
    homes.write("alpha")
    (homes.here / "data").mkdir()
    for number in range(101):
        (homes.here / "data" / str(number)).touch()
    (homes.here / "note").write_text("x")
    assert laptop.quick("home", "sync", "--yes").code == 0
    homes.ssh("alpha", f"rm -r {homes.there}/data")
    made = laptop.run("alpha", "--sync", "train.py")
    run, large = made["run"]["id"], "large deletion on alpha not copied to local: 101 files in 'data'"
    assert f"the home sync of alpha failed: {large}; run {run} is held" in made["warnings"][0]
    assert laptop.row(run)["reason"] == f"{WAITS_FOR_SYNC}; the last sync failed: {large}"
    assert large in " ".join(laptop.quick("why", run).out.split())
    homes.ssh("alpha", f"echo y > {homes.there}/secret; chmod 0 {homes.there}/secret")
    done = laptop.quick("home", "sync", "--yes")
    assert done.code == 1 and not (homes.here / "data").exists(), done
    unread = "'secret' was not synced: cannot be read on alpha: permission denied"
    assert laptop.row(run)["reason"].endswith(unread) and unread in " ".join(laptop.quick("why", run).out.split())
    assert laptop.quick("home", "profile", "--skip-unreadable").code == 0
    done = laptop.quick("home", "sync")
    assert done.code == 0 and "skipped 'secret': it cannot be read on alpha" in done.err, done
    assert laptop.ended(run)["state"] == "completed"


def test_the_user_decides(homes: Homes) -> None:
    """release starts a run without a sync; hold keeps it held after one; cancel and hints work as ever."""
    laptop = homes.laptop
    runs = [laptop.run("alpha", "--sync", "train.py") for _count in range(3)]
    assert "not set up here; run `yurt home sync alpha`" in runs[0]["warnings"][0]
    released, held, cancelled = (each["run"]["id"] for each in runs)
    laptop.quick("release", released)
    laptop.quick("hold", held)
    assert "release it with `yurt release`" in laptop.row(held)["reason"]
    laptop.quick("cancel", cancelled)
    assert laptop.ended(released)["state"] == "completed"
    homes.write("alpha")
    assert laptop.quick("home", "sync", "--yes").code == 0
    assert laptop.row(held)["state"] == "held" and laptop.row(cancelled)["state"] == "cancelled"
    laptop.quick("cancel", held)


def test_sync_needs_a_scheduler_and_no_hold(laptop: Laptop) -> None:
    local = laptop.quick("--context", "local", "run", "--sync", "train.py")
    assert local.code == 2 and "--sync cannot be used on local: it has no scheduler" in local.err
    both = laptop.quick("--context", "alpha", "run", "--sync", "--hold", "train.py")
    assert both.code == 2 and "--hold and --sync cannot be combined" in both.err


@pytest.mark.slow
def test_sweeps_shells_and_the_key_of_a_context(homes: Homes) -> None:
    laptop = homes.laptop
    homes.write("alpha")
    homes.conflict("alpha")
    environment = {"YURT_HOME_SYNC": "true"}
    sweep = laptop("--context", "alpha", "--json", "run", "--grid", "lr=1,2,3", "train.py", **environment).json["data"]
    assert laptop.row(sweep["run"]["id"])["reason"].startswith(WAITS_FOR_SYNC)
    again = laptop("--context", "alpha", "--json", "run", "--no-sync", "train.py", **environment).json["data"]
    assert laptop.ended(again["run"]["id"])["state"] == "completed"
    homes.resolve("alpha")
    assert laptop("--context", "alpha", "shell", "--sync", "--", "echo", "inside").out == "inside\n"
    assert laptop.ended(sweep["run"]["id"])["state"] == "completed"  # that sync has released it, too


@pytest.mark.slow
@pytest.mark.usefixtures("no_environments")
def test_a_run_that_waits_for_its_environment_too(homes: Homes, lab: Lab) -> None:
    """The orders of their steps are in test_gate_order; here are the real builder and the real sync."""
    laptop = homes.laptop
    lab.index.add(download("six==1.17.0", "3.11"))
    (laptop.project / "requirements.txt").write_text("six==1.17.0\n")
    first = laptop.run("alpha", "--sync", "train.py")["run"]
    eventually(lambda: laptop.row(first["id"])["state"] == "held")  # its environment is built
    assert laptop.row(first["id"])["reason"] == WAITS_FOR_SYNC
    homes.write("alpha")
    assert laptop.quick("home", "sync", "--yes").code == 0
    assert laptop.ended(first["id"])["state"] == "completed"
    homes.ssh("alpha", f"rm -r {first['env']['folder']}")
    second = laptop.run("alpha", "--sync", "train.py")  # the sync ends before the build
    assert second["status"]["building"]
    assert laptop.ended(second["run"]["id"])["state"] == "completed"


@pytest.mark.slow
def test_watch_and_agent(homes: Homes) -> None:
    laptop = homes.laptop
    homes.write("alpha", more="interval: 1h\n")
    assert laptop.quick("agent", "once", "--json").json["data"]["synced"] == ["local-alpha"]
    assert laptop.quick("agent", "once", "--json").json["data"]["synced"] == []
    environment = {**os.environ, **laptop.environment}
    command = [YURT, "home", "sync", "--watch", "--interval", "2s"]
    with subprocess.Popen(command, cwd=laptop.project, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None and "alpha: " in watching.stdout.readline()
            run = laptop.run("alpha", "--sync", "train.py")
            assert "`yurt home sync --watch`, which is running" in run["warnings"][0]
            assert laptop.ended(run["run"]["id"])["state"] == "completed"
            plain = homes.submit("alpha")
            eventually(lambda: not homes.held("alpha", plain))
            other = laptop.quick("home", "sync", "--watch")
            assert other.code == 5 and "another `yurt home sync --watch` is running" in other.err
        finally:
            watching.terminate()
    conflict = laptop.run("alpha", "--no-sync", "train.py")
    assert laptop.ended(conflict["run"]["id"])["state"] == "completed"


def test_a_running_agent_does_the_sync(homes: Homes) -> None:
    laptop = homes.laptop
    homes.write("alpha")
    assert laptop.quick("home", "sync", "--yes").code == 0
    assert laptop("agent", "start").code == 0
    try:
        run = laptop.run("alpha", "--sync", "train.py")
        assert "is held until the agent, which is running, has synced alpha" in run["warnings"][0]
        assert laptop.ended(run["run"]["id"])["state"] == "completed"
    finally:
        laptop("agent", "stop")


@pytest.mark.slow
def test_home_sync_on_a_login_host(homes: Homes, lab: Lab) -> None:
    """The installed script syncs two clusters without the laptop, and releases the jobs of both."""
    laptop, ssh = homes.laptop, homes.ssh
    homes.write("alpha", "beta")
    refused = laptop.quick("home", "install", "alpha")
    assert refused.code == 2 and "set `places: {beta: {address: ADDRESS}}` in homes.yaml" in refused.err
    lab.faults.link()
    try:
        ssh("alpha", "ssh -o StrictHostKeyChecking=accept-new beta true")
        homes.write("alpha", "beta", settings=", address: beta")
        done = laptop.quick("home", "install", "alpha")
        assert done.code == 0 and "syncs with beta" in done.out, done
        assert ssh("alpha", "stat -c %a .local/bin/home_sync") == "700"
        ssh("alpha", f"echo one > {homes.there}/one && chmod 711 {homes.there}")  # other modes are no conflict
        jobs = {place: homes.submit(place) for place in ("alpha", "beta")}
        for shell in ("dash", "busybox sh"):
            answer = ssh.ask("alpha", f"{shell} .local/bin/home_sync")
            assert answer.code == 0, answer
        assert ssh("beta", f"cat {homes.there}/one").endswith("one")
        eventually(lambda: not any(homes.held(place, job) for place, job in jobs.items()))
        ssh("alpha", f"echo a > {homes.there}/one")
        ssh("beta", f"echo b > {homes.there}/one")
        late = homes.submit("alpha")
        assert ssh.ask("alpha", ".local/bin/home_sync").code == 1
        assert homes.held("alpha", late)
        assert "Usage: unison" in ssh.ask("alpha", ".local/bin/home_sync -help").out
        assert ssh.ask("alpha", ".local/bin/home_sync -testServer").code == 0
        assert laptop.quick("home", "install", "alpha", "--remove").code == 0
        assert ssh.ask("alpha", "test -e .local/bin/home_sync").code == 1
    finally:
        lab.faults.unlink()
