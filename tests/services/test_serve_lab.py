"""Services on the lab's clusters: queues, time limits, other machines of the user, and faults of links and hosts."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pexpect
import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.services.serving import APP, COMMAND, client, end_runs, link_cut, processes, services
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

ALPHA = ("--context", "alpha", "--no-browser")


@pytest.fixture(autouse=True)
def runs_end(laptop: Laptop) -> Iterator[None]:
    """A test that fails leaves no jobs."""
    yield
    end_runs(laptop)


@pytest.fixture
def ssh(lab: Lab) -> Iterator[Ssh]:
    made = Ssh(lab)
    yield made
    made.end_jobs()


def left_on(lab: Lab, name: str, run: str) -> str:
    """Return the processes and folders of a service on the nodes of a cluster."""
    found = ""
    for host, pid in lab.cluster(name).pids().items():
        if host.startswith("n"):
            script = (
                f"grep -lsz YURT_RUN_ID={run} /proc/[0-9]*/environ; "
                "ls -d /tmp/yurt-service-* /dev/shm/yurt-service-* 2> /dev/null; :"
            )
            found += subprocess.run(
                inside(pid, ["sh", "-c", script]), capture_output=True, text=True, check=True
            ).stdout
    return found


def stopped(laptop: Laptop, lab: Lab, name: str, run: str) -> None:
    """End a service, and check that nothing is left of it here and on the nodes."""
    assert laptop.quick("serve", "stop", run).code == 0
    eventually(lambda: services(laptop) == [])
    eventually(lambda: left_on(lab, name, run) == "")
    eventually(lambda: processes(laptop) == {})


@pytest.mark.slow
def test_ctrl_c_while_it_is_queued(laptop: Laptop, ssh: Ssh) -> None:
    """The reason of the queue is shown. Nothing is open yet, so the exit code is 130."""
    (laptop.project / "app.py").write_text(APP)
    ssh.submit("alpha", "sleep 600", "--exclusive --nodes 3")
    terminal = laptop.spawn("serve", *ALPHA, *COMMAND, columns=120, cwd=laptop.project)
    try:
        terminal.expect(r"job \d+ on alpha\S* is queued: ")
        terminal.expect("(?i)resources|priority|wait")
        terminal.sendintr()
        terminal.expect(r"keep service 'app' on alpha\? \[Y/n\]: ")
        terminal.send("n\r")
        terminal.expect("interrupted; service 'app' is being stopped")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    finally:
        terminal.close(force=True)
    assert terminal.exitstatus == 130
    eventually(lambda: services(laptop) == [])


def test_another_machine_of_the_user(laptop: Laptop, second_laptop: Laptop, lab: Lab) -> None:
    """It imports the service and reaches it. A client that is killed leaves no ssh and no process on the node."""
    with client(laptop, *ALPHA, *COMMAND) as first:
        run = first.get().split()[1]
        assert second_laptop.quick("import", "alpha").code == 0
        with client(second_laptop, "open", "app") as second:
            assert second.get() == first.get()
            second.end(signal.SIGKILL)
        eventually(lambda: processes(second_laptop) == {})
        assert first.answers()
        first.end(signal.SIGKILL)
        eventually(lambda: processes(laptop) == {})
    stopped(laptop, lab, "alpha", run)


@pytest.mark.slow
def test_a_time_limit(laptop: Laptop, lab: Lab) -> None:
    """The user gets a notice before it; the end is one sentence with the end of the log."""
    clocks = laptop.environment["YURT_CLOCKS"] + " service=3 notice=600"
    with client(laptop, *ALPHA, "--time", "1m", *COMMAND, YURT_CLOCKS=clocks) as made:
        run = made.get().split()[1]
        eventually(lambda: "service 'app' ends in 1 minute, at its time limit" in made.err)
        assert made.process.wait(180) == 5
        assert "service 'app' ended: timeout" in made.err and "Traceback" not in made.err
    eventually(lambda: left_on(lab, "alpha", run) == "")
    assert processes(laptop) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_a_link_that_is_cut_for_long(laptop: Laptop, lab: Lab, name: str) -> None:
    with client(laptop, "--context", name, "--no-browser", *COMMAND) as made:
        before = made.get()
        with link_cut(lab, name):
            eventually(lambda: "the connection to the node is lost" in made.err)
            assert not made.answers(seconds=3)
        eventually(made.answers)
        assert made.get() == before and "the connection to the node is open again" in made.err
        assert made.err.count("is lost") == 1 and made.end() == 0
    stopped(laptop, lab, name, before.split()[1])


@pytest.mark.slow
def test_ctrl_c_while_the_link_is_cut(laptop: Laptop, lab: Lab) -> None:
    """The service is ended by the next command that reaches the site."""
    with client(laptop, *ALPHA, "--on-exit", "stop", *COMMAND) as made:
        run = made.get().split()[1]
        with link_cut(lab, "alpha"):
            assert made.end() == 0
            assert "the next yurt command that reaches alpha will end service 'app'" in made.err
            assert "Loop" not in made.err and "Traceback" not in made.err
    eventually(lambda: services(laptop) == [])
    eventually(lambda: left_on(lab, "alpha", run) == "")


@pytest.mark.slow
def test_a_login_node_that_is_killed(laptop: Laptop, lab: Lab) -> None:
    with client(laptop, *ALPHA, *COMMAND) as made:
        before = made.get()
        lab.faults.kill_node("alpha:login")
        try:
            eventually(lambda: "the connection to the node is lost" in made.err)
        finally:
            lab.faults.start_node("alpha:login")
        eventually(made.answers)
        assert made.get() == before
    stopped(laptop, lab, "alpha", before.split()[1])


@pytest.mark.slow
def test_a_node_that_is_killed(laptop: Laptop, lab: Lab) -> None:
    clocks = laptop.environment["YURT_CLOCKS"] + " service=3"
    with client(laptop, *ALPHA, *COMMAND, YURT_CLOCKS=clocks) as made:
        (found,) = services(laptop)
        lab.faults.kill_node(f"alpha:{found['node']}")
        try:
            assert made.process.wait(300) == 5
            assert "service 'app' ended: " in made.err and "Traceback" not in made.err
        finally:
            lab.faults.start_node(f"alpha:{found['node']}")
    assert services(laptop) == []
    eventually(lambda: processes(laptop) == {})


@pytest.mark.slow
def test_kills_of_the_client_on_a_cluster(laptop: Laptop, lab: Lab) -> None:
    """At any moment: at most one job exists, and the same command reaches it."""
    for seconds in (0.5, 1, 1.5, 2, 3, 4, 6):
        with client(laptop, *ALPHA, *COMMAND, opens=False) as made:
            try:
                made.process.wait(seconds)
            except subprocess.TimeoutExpired:
                made.end(signal.SIGKILL)
        assert len(services(laptop)) <= 1
        eventually(lambda: processes(laptop) == {})
    with client(laptop, *ALPHA, *COMMAND) as made:
        run = made.get().split()[1]
        assert [each["run"] for each in services(laptop)] == [run]
    stopped(laptop, lab, "alpha", run)
