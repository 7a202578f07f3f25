"""live.sh and its parser: recorded outputs of several versions of Slurm, a large cluster, hostile words."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from yurt.backends.local import live as local
from yurt.backends.local import waiter
from yurt.backends.slurm import live
from yurt.backends.slurm.access import Person, reservation_is_open, why_not
from yurt.backends.slurm.live import state_of
from yurt.model.context import Context
from yurt.model.facts import Account
from yurt.model.live import Live, LiveNodes, LivePartition, NodeTrouble, Reservation
from yurt.model.maintenance import time_limit, warnings_of

CONFIG = "AccountingStorageType   = accounting_storage/slurmdbd"
PARTITION = (
    "PartitionName={name} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default={default} DefaultTime=01:00:00 "
    "GraceTime=0 MaxNodes=UNLIMITED MaxTime=1-00:00:00 RootOnly=NO ReqResv=NO PreemptMode=OFF State=UP TotalNodes=3"
)
ACCOUNTS = [Account(name="lab", qos=["normal"])]

NODE_20_11 = (
    "NodeName=a1 Arch=x86_64 CoresPerSocket=16  CPUAlloc=4 CPUTot=32 CPULoad=1.10 AvailableFeatures=(null) "
    "ActiveFeatures=(null) Gres=gpu:4(S:0-1) GresDrain=N/A GresUsed=gpu:(null):1(IDX:0) NodeAddr=a1 "
    "OS=Linux 3.10.0 #1 SMP  RealMemory=128000 AllocMem=28000 FreeMem=9 Sockets=2 Boards=1 "
    "MemSpecLimit=2 State=MIXED ThreadsPerCore=1 Partitions=main  BootTime=1 CfgTRES=cpu=32 AllocTRES=cpu=4"
)
NODE_22_05 = (
    "NodeName=n3 Arch=aarch64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.97 AvailableFeatures=gpu "
    "ActiveFeatures=gpu Gres=gpu:a100:2 GresDrain=N/A GresUsed=gpu:a100:0(IDX:N/A) NodeAddr=10.77.1.11 Version=22.05.8 "
    "OS=Linux 6.18 #1 SMP  RealMemory=8000 AllocMem=0 FreeMem=18225 State=IDLE+DRAIN ThreadsPerCore=1 "
    "Partitions=main,short  BootTime=1 CfgTRES=cpu=8 AllocTRES= ExtSensorsTemp=n/s "
    "Reason=disk|full State=IDLE \x1b]0;owned\x07 [root@1794864000]"
)
NODE_24_11 = (
    "NodeName=c1 Arch=x86_64 CoresPerSocket=8  CPUAlloc=0 CPUEfctv=16 CPUTot=16 CPULoad=0.01 AvailableFeatures=(null) "
    "ActiveFeatures=(null) Gres=gpu:h100:2(S:0),gpu:l4:1,shard:8 GresDrain=N/A "
    "GresUsed=gpu:h100:1(IDX:0,1),gpu:l4:0(IDX:N/A),shard:0 NodeAddr=c1 Version=24.11.5 OS=Linux 6.1  RealMemory=64000 "
    "AllocMem=0 FreeMem=1 State=IDLE+CLOUD+POWERED_DOWN ThreadsPerCore=1 Partitions=main  BootTime=None"
)


def site(folder: Path, **outputs: str) -> dict[str, str]:
    """Make programs that print these outputs instead of Slurm's; return the environment to use them."""
    for name in ("scontrol", "squeue", "sshare", "sprio"):
        (folder / name).write_text(
            '#!/bin/sh\nfor last; do [ "$last" = node ] || [ "$last" = partition ] || [ "$last" = reservation ] ||'
            ' [ "$last" = ping ] || [ "$last" = config ] || continue; break; done\n'
            f'case ${{0##*/}} in scontrol) cat "{folder}/$last.txt" ;; *) cat "{folder}/${{0##*/}}.txt" ;; esac\n'
        )
        (folder / name).chmod(0o700)
    defaults = {"ping": "Slurmctld(primary) at ctl is UP", "config": CONFIG, "partition": "", "node": "", "squeue": ""}
    for name, text in {**defaults, "reservation": "No reservations in the system", **outputs}.items():
        (folder / f"{name}.txt").write_text(text + "\n")
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def looked(environment: dict[str, str]) -> tuple[Live, str]:
    """Run live.sh; return what it says and its output."""
    words = ["sh", "-c", live.script(), "sh", "MARK"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return live.read("MARK", done.stdout, ACCOUNTS, now=1794864000.0), done.stdout


def me() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


def test_nodes_of_several_versions(tmp_path: Path) -> None:
    partitions = "\n".join([PARTITION.format(name="main", default="YES"), PARTITION.format(name="short", default="NO")])
    nodes = "\n".join([NODE_20_11, NODE_22_05, NODE_24_11, "NodeName=broken", "garbage"])
    found, _text = looked(site(tmp_path, partition=partitions, node=nodes))
    assert found.nodes.states == {"mixed": 1, "drained": 1, "powered down": 1, "unknown": 1}
    main, short = found.partitions
    assert (main.default, short.default, main.max_minutes, main.default_minutes) == (True, False, 1440, 60)
    assert (main.nodes.cpus, main.nodes.free_cpus) == (32 + 8 + 16, 28 + 0 + 16)
    assert (main.nodes.memory_mb, main.nodes.free_memory_mb) == (200000, 164000)
    assert [(gpu.type, gpu.total, gpu.free) for gpu in main.nodes.gpus] == [
        ("", 4, 3), ("a100", 2, 0), ("h100", 2, 1), ("l4", 1, 1),
    ]  # fmt: skip
    assert short.nodes.states == {"drained": 1}
    assert (
        NodeTrouble(
            node="n3",
            state="drained",
            reason="disk|full State=IDLE \x1b]0;owned\x07",
            since=1794864000,
            partitions=["main", "short"],
        )
        in found.troubles
    )


def test_a_large_cluster_is_summarized_on_the_login_node(tmp_path: Path) -> None:
    nodes = [
        f"NodeName=n{at} CPUAlloc={at % 65} CPUEfctv=64 CPUTot=64 Gres=gpu:a100:4(S:0-1) "
        f"GresUsed=gpu:a100:{at % 5}(IDX:0-{at % 5}) RealMemory=512000 AllocMem=0 "
        f"State={'IDLE' if at % 65 == 0 else 'ALLOCATED' if at % 65 == 64 else 'MIXED'} "
        f"Partitions=p{at % 4},all {'x' * 600}"
        for at in range(2000)
    ]
    jobs = [f"PENDING|all|user{at % 300}|{100_000 - at}|{at}|N/A|Priority" for at in range(25_000)]
    jobs += [f"PENDING|p1,all|{me()}|900|70000_[1-9:2,12%3]|1794900000|Resources"]
    jobs += [f"PENDING|p1|{me()}|0|70001|N/A|JobHeldUser", "PENDING|short"]
    jobs += [f"RUNNING|p{at % 4}|user{at % 300}|1|{at}|1794860000|None" for at in range(25_000)]
    partitions = [PARTITION.format(name=name, default="NO") for name in ("all", "p0", "p1", "p2", "p3")]
    found, text = looked(
        site(tmp_path, node="\n".join(nodes), squeue="\n".join(jobs), partition="\n".join(partitions), sprio="")
    )
    assert len(text) < 16_000, "the size depends on the kinds of nodes, not on their number"
    assert found.nodes.count == 2000 and found.nodes.cpus == 128_000
    assert (found.queue.running, found.queue.pending) == (25_000, 25_000 + 6 + 1)
    assert {each.name: (each.running, each.pending) for each in found.partitions}["p1"] == (6250, 7)
    sweep, held = found.queue.mine
    assert (sweep.job, sweep.tasks, sweep.place, sweep.starts_at) == ("70000_[1-9:2,12%3]", 6, 1, 1794900000)
    assert (held.place, held.reason, found.queue.mine_total) == (None, "JobHeldUser", 2)
    assert found.queue.mine_states == {"pending": 7}


def test_all_your_jobs_are_counted(tmp_path: Path) -> None:
    jobs = [f"PENDING|main|{me()}|0|{at}_[0-9]|N/A|JobHeldUser" for at in range(300)]
    jobs += [f"RUNNING|main|{me()}|1|{at}|1794860000|None" for at in range(5)]
    partition = PARTITION.format(name="main", default="YES")
    queue = looked(site(tmp_path, squeue="\n".join(jobs), partition=partition, sprio=""))[0].queue
    assert (len(queue.mine), queue.mine_total) == (200, 305)
    assert queue.mine_states == {"pending": 3000, "running": 5}


def test_place_fair_share_and_priority(tmp_path: Path) -> None:
    jobs = ["PENDING|main|other|50|1_[1-4]|N/A|Priority", f"PENDING|main|{me()}|40|7|N/A|Resources"]
    shares = " Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare\nlab||1|1|0|0|\n"
    shares = shares.lstrip() + " lab|alice|1|0.250000|17|1.000000|0.200000\n lab|alice|parent|x|y||nan"
    found, _text = looked(
        site(
            tmp_path,
            partition=PARTITION.format(name="main", default="YES"),
            squeue="\n".join(jobs),
            sshare=shares,
            sprio="   7|      40|   10|   30|    0|    0|   0",
        )
    )
    (job,) = found.queue.mine
    assert (job.place, job.priority, job.reason, job.factors) == (5, 40, "Resources", {"age": 10, "fairshare": 30})
    assert (found.fair_share[0].factor, found.fair_share[0].shares, found.fair_share[0].usage) == (0.2, 0.25, 1)
    assert found.fair_share[1].factor is None and not found.accounting_silent


def test_silence(tmp_path: Path) -> None:
    down, text = looked(site(tmp_path, ping="Slurmctld(primary/backup) at ctl1/ctl2 are DOWN/DOWN"))
    assert down.silent and [each.up for each in down.controllers] == [False, False] and "MARK queue" not in text
    environment = site(tmp_path, partition=PARTITION.format(name="main", default="YES"))
    (tmp_path / "sshare").write_text("#!/bin/sh\necho 'sshare: error: slurmdbd: Connection refused' >&2\nexit 1\n")
    (tmp_path / "sprio").unlink()
    found, _text = looked(environment)
    assert not found.silent and found.accounting_silent and found.fair_share == []
    for code, how in ((124, "does not respond"), (1, "failed")):
        (tmp_path / "squeue").write_text(f"#!/bin/sh\nexit {code}\n")
        found, _text = looked(environment)
        assert found.problem == f"`squeue` {how}" and found.controllers[0].up, "the controller responded"
    assert down.problem.startswith("its controller does not respond (")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("IDLE", "idle"), ("MIXED+PLANNED", "mixed"), ("ALLOCATED+COMPLETING", "allocated"),
        ("COMPLETING", "completing"),
        ("IDLE*", "down"), ("DOWN*+DRAIN", "down"), ("MIXED+DRAIN", "drained"), ("IDLE+NOT_RESPONDING", "down"),
        ("MAINT", "maintenance"), ("IDLE+MAINTENANCE", "maintenance"), ("IDLE+RESERVED", "reserved"),
        ("idle~", "powered down"), ("IDLE+CLOUD+POWERING_UP", "idle"), ("FUTURE", "unknown"), ("", "unknown"),
    ],
)  # fmt: skip
def test_states_of_nodes(words: str, state: str) -> None:
    assert state_of(words) == state


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        ({}, ""),
        ({"AllowAccounts": "lab,other"}, ""),
        ({"AllowAccounts": "other"}, "only for account other"),
        ({"DenyAccounts": "lab"}, "closed to account lab"),
        ({"AllowGroups": "wheel,vip"}, "only for group vip or wheel"),
        ({"AllowQos": "a,b,c,d,e"}, "only for QOS a, b, c or 2 others"),
        ({"State": "DOWN"}, "it is down: jobs stay pending"),
        ({"State": "NEW_WORD", "AllowQos": "normal"}, ""),
        ({"RootOnly": "YES"}, "only root may use it"),
        ({"ReqResv": "YES"}, "it requires a reservation"),
    ],
)
def test_partitions_that_you_may_use(partition: dict[str, str], reason: str) -> None:
    assert why_not(partition, Person("alice", ["alice", "staff"], ACCOUNTS)) == reason


def test_without_accounting_lists_of_accounts_do_not_count() -> None:
    assert why_not({"AllowAccounts": "other"}, Person("alice", ["alice"], [])) == ""


def test_partitions_of_some_login_nodes() -> None:
    here = Person("alice", [], [], "login1.big.example")
    assert why_not({"AllocNodes": "ctl"}, here) == "only for jobs that are submitted on ctl"
    assert not any(why_not({"AllocNodes": each}, here) for each in ("ALL", "ctl,login1", "login[1-2]"))


@pytest.mark.parametrize(
    ("reservation", "usable"),
    [({"Users": "bob,alice"}, True), ({"Users": "root"}, False), ({"Accounts": "lab"}, True),
     ({"Users": "-alice"}, False), ({"Users": "-bob"}, True), ({"Groups": "staff", "Users": "(null)"}, True)],
)  # fmt: skip
def test_reservations_that_you_may_use(reservation: dict[str, str], usable: bool) -> None:
    assert reservation_is_open(reservation, Person("alice", ["staff"], ACCOUNTS)) == usable


def test_maintenance_within_the_time_limit(tmp_path: Path) -> None:
    line = (
        "ReservationName=maint StartTime=1794871200 EndTime=1794878400 Duration=02:00:00 Nodes=n[1-2] NodeCnt=2 "
        "Flags=MAINT,IGNORE_JOBS Users=admin Groups=(null) Accounts=(null) State=INACTIVE"
    )
    found, _text = looked(site(tmp_path, partition=PARTITION.format(name="main", default="YES"), reservation=line))
    (each,) = found.reservations
    assert (each.name, each.starts_at, each.node_count, each.nodes) == ("maint", 1794871200, 2, "n[1-2]")
    assert each.maintenance and not each.usable and not each.active
    context = Context(name="x", type="slurm", slurm_url="x")
    assert time_limit(context, found) == 60 and warnings_of(found, 60) == []
    (text,) = warnings_of(found, 180)
    assert text.startswith("maintenance 'maint' of 2 nodes begins in 2 h")
    over = Live(at=2e9, host="h", reservations=[each])
    assert warnings_of(over, None) == []
    now = Live(at=1794871201.0, host="h", reservations=[Reservation(name="m", maintenance=True, starts_at=1.0)])
    assert "is under way" in warnings_of(now, 1)[0]


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_LOCAL_CPUS", "4")
    monkeypatch.setenv("YURT_LOCAL_GPUS", "2")
    pid = os.getpid()
    first = waiter.new_ticket("r1", pid, 3, 1, follows=False) | {"running": True, "devices": [0]}
    waiter.write(str(tmp_path), "1", first)
    waiter.write(str(tmp_path), "2", waiter.new_ticket("r2", pid, 2, 0, follows=False))
    waiter.write(str(tmp_path), "3", waiter.new_ticket("s", pid, 1, 0, follows=True) | {"left": [3, 4]})
    found = local.look(tmp_path, now=1.0)
    assert (found.nodes.states, found.nodes.cpus, found.nodes.free_cpus) == ({"mixed": 1}, 4, 1)
    assert [(gpu.total, gpu.free) for gpu in found.nodes.gpus] == [(2, 1)]
    assert (found.queue.running, found.queue.pending, found.queue.mine_total) == (1, 3, 4)
    assert found.queue.mine_states == {"running": 1, "pending": 3}
    assert [(job.run, job.state, job.place) for job in found.queue.mine] == [
        ("r1", "running", None),
        ("r2", "pending", 1),
    ]
    assert found.load is not None and found.nodes.memory_mb and found.nodes.free_memory_mb


def test_the_free_memory_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the unit of all memory, and in a container no more than that."""
    monkeypatch.setenv("YURT_LOCAL_GPUS", "0")
    monkeypatch.setattr(Path, "open", lambda _path: io.StringIO("MemTotal: 9 kB\nMemAvailable:   3145728 kB\n"))
    for total, free in ((4096, 3072), (2048, 2048)):
        monkeypatch.setattr("yurt.backends.local.check.memory_mb", lambda total=total: total)
        nodes = local.look(tmp_path, now=1.0).nodes
        assert (nodes.memory_mb, nodes.free_memory_mb) == (total, free)


def test_this_machine_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_words: object) -> int:
        raise OSError

    monkeypatch.setattr(Path, "open", missing)
    monkeypatch.setattr(os, "sysconf", missing)
    monkeypatch.setattr(os, "getloadavg", missing)
    found = local.look(tmp_path / "none", now=1.0)
    assert (found.nodes.memory_mb, found.nodes.free_memory_mb, found.load) == (None, None, None)
    assert found.nodes.states == {"idle": 1} and LivePartition(name="x").nodes == LiveNodes()
