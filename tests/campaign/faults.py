"""The kinds of faults: their random parameters and how they are injected. Parameters are plain values for the log."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.campaign.moments import Draw, Fault, arm, delay, moment, pass_time, reach, start, work
from tests.campaign.site import Site, processes_in
from tests.campaign.transport_faults import draw_transport, perform_transport
from yurt.lab.relay import Rules

ANSWER = 200
"""The end of the answer to a submission is within this many of the last bytes down."""

SAVED = 6.0
"""Seconds after which slurmctld has saved its state."""

LEASE = 6
"""Seconds of a lease; job.sh divides it by six. An episode can set a longer one."""


# The link is cut at a byte: anywhere, or inside the script


def draw_cut(random: Random) -> Draw:
    found = work(random)
    found |= {"direction": random.choice(["up", "up", "down"]), "greeting": random.random() < 0.15}
    found |= {"fraction": round(random.random(), 4), "connections": random.choice([1, 1, 0])}
    found |= {"filler": random.choice([0, 0, 40000])}
    return found | _ending(random)


def draw_truncate(random: Random) -> Draw:
    """ssh sends large packets, so cutting the link truncates the script at few places; half are cut on the host."""
    if random.random() < 0.5:
        return work(random) | {"head": random.randint(1, 5), "percent": random.randint(0, 99)}
    found = work(random) | {"direction": "up", "greeting": False, "fraction": round(random.random(), 4)}
    found |= {"connections": 1, "rate": random.choice([0, 0, 60000]), "filler": random.choice([0, 40000])}
    return found | _ending(random)


def _ending(random: Random) -> Draw:
    """Choose how the connection ends: after a reset ssh's master exits; a stall lasts until a process is killed."""
    if random.random() < 0.6:
        return {"ending": "reset"}
    victims = ["master", "session", "master session", "yurt"]
    return {"ending": "stall", "victim": random.choice(victims), "patience": round(random.uniform(0.7, 1.6), 2)}


def perform_cut(site: Site, label: str, draw: Draw) -> None:
    site.measure()
    site.client.disconnect()
    site.set_link_faults(
        Rules(
            cut_at=_byte(site, draw),
            direction=draw["direction"],
            ending=draw["ending"],
            connections=draw["connections"],
            rate=draw.get("rate", 0),
        )
    )
    process = start(site, label, draw)
    if draw["ending"] == "stall":
        _kill_what_hangs(site, label, process, draw)
    site.client.end(process, seconds=20 if draw["ending"] == "reset" else 6)
    site.client.disconnect()
    if draw["ending"] == "reset" and not site.was_cut():
        site.missed.append(label)


def perform_truncate(site: Site, label: str, draw: Draw) -> None:
    if "head" not in draw:
        perform_cut(site, label, draw)
        return
    site.steps.arm(draw["head"], "before", "short", program="head", amount=draw["percent"])
    site.client.end(start(site, label, draw))
    if not site.steps.fired():
        site.missed.append(label)


def _byte(site: Site, draw: Draw) -> int:
    """Map a fraction to a byte. Down, only the last bytes are the answer, so half of the cuts are there."""
    if draw["direction"] == "down":
        answer, fraction = 3 * ANSWER, draw["fraction"]
        if fraction < 0.5:
            return int((site.down - answer) * 2 * fraction)
        return site.down - answer + int(answer * (2 * fraction - 1))
    if draw["greeting"]:
        return int(site.greeting * draw["fraction"])
    return site.greeting + int((site.up - site.greeting + draw.get("filler", 0)) * draw["fraction"])


def _kill_what_hangs(site: Site, label: str, process: subprocess.Popen[bytes], draw: Draw) -> None:
    deadline = time.monotonic() + draw["patience"] + (2 if draw.get("rate") else 0)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    if process.poll() is not None:
        site.missed.append(label)
    elif draw["victim"] == "yurt":
        process.kill()
    else:
        site.client.kill_ssh(*draw["victim"].split())
        site.set_link_faults()


# The login host refuses the key for a while, as if it could not read the home folder


def draw_denied(random: Random) -> Draw:
    return work(random) | {"lost": random.random() < 0.6}


def perform_denied(site: Site, label: str, draw: Draw) -> None:
    if draw["lost"]:
        site.measure()
    site.client.disconnect()
    answer = Rules(cut_at=site.down - ANSWER, direction="down", connections=1)
    site.set_link_faults(answer if draw["lost"] else Rules(cut_at=0))
    site.client.end(start(site, label, draw))
    site.client.disconnect()
    site.set_link_faults()
    keys = site.steps.root / "home" / "alice" / ".ssh" / "authorized_keys"
    keys.rename(keys.with_name("aside"))
    try:
        site.client.once()
    finally:
        keys.with_name("aside").rename(keys)


# ssh's processes on this machine, or yurt itself


def draw_ssh(random: Random) -> Draw:
    victim = random.choice(["master", "session", "master session"])
    return work(random) | moment(random) | {"victim": victim} | delay(random)


def perform_ssh(site: Site, label: str, draw: Draw) -> None:
    arm(site, draw)
    process = start(site, label, draw)
    reach(site, label, process, draw)
    if not site.client.kill_ssh(*draw["victim"].split()):
        site.missed.append(label)
    pass_time(site, draw)
    site.steps.release()
    site.client.end(process)


def draw_client(random: Random) -> Draw:
    return work(random) | moment(random) | delay(random)


def perform_client(site: Site, label: str, draw: Draw) -> None:
    arm(site, draw)
    process = start(site, label, draw)
    reach(site, label, process, draw)
    process.kill()
    pass_time(site, draw)
    site.steps.release()
    site.client.end(process)


# The shell on the login host


def draw_shell(random: Random) -> Draw:
    if random.random() < 0.3:  # sbatch is the most interesting step to kill
        how = random.choice(["inner", "all", "self"])
        found = {"step": 1, "program": "sbatch", "what": how, "seconds": round(random.uniform(0.005, 0.08), 3)}
    else:
        found = {"step": random.randint(1, 16), "program": "any", "what": random.choice(["inner", "all"])}
    return work(random) | found | {"when": random.choice(["before", "after"])}


def perform_shell(site: Site, label: str, draw: Draw) -> None:
    site.steps.arm(draw["step"], draw["when"], draw["what"], program=draw["program"], amount=draw.get("seconds", 0))
    site.client.end(start(site, label, draw))
    if not site.steps.fired():
        site.missed.append(label)


# The controller: not responding for a while, or killed before it saved the job


def draw_silence(random: Random) -> Draw:
    found = {"mode": random.choice(["stop", "freeze"]), "seconds": round(random.uniform(2, 14), 1)}
    return work(random) | found | {"at_sbatch": random.random() < 0.7}


def perform_silence(site: Site, label: str, draw: Draw) -> None:
    if draw["at_sbatch"]:
        site.steps.arm(1, "before", "pause", program="sbatch")
        first = start(site, label, draw)
        site.until(lambda: site.steps.wait_paused(0.05) or first.poll() is not None, 30, pause=0)
        _silence(site, draw)
        site.steps.release()
    else:
        _silence(site, draw)
        first = start(site, label, draw)
    second = start(site, label, draw)
    time.sleep(draw["seconds"])
    if draw["mode"] == "freeze":
        site.signal_in("ctl", "slurmctld", signal.SIGCONT)
    else:
        site.start_ctld()
    for process in (first, second):
        site.client.end(process)


def _silence(site: Site, draw: Draw) -> None:
    if draw["mode"] == "freeze":
        assert site.signal_in("ctl", "slurmctld", signal.SIGSTOP)
    else:
        site.lab.faults.stop_ctld(site.name)


def draw_crash(random: Random) -> Draw:
    """`calm`: the controller has saved all earlier jobs, so that it loses only the next one."""
    found = {"startable": random.random() < 0.5, "late": round(random.choice([0, 0, random.uniform(0, 0.3)]), 3)}
    return work(random, 4.0) | found | {"calm": random.random() < 0.4}


def perform_crash(site: Site, label: str, draw: Draw) -> None:
    if draw["calm"]:
        site.until(lambda: not site.queue(), 20, pause=0.5)
        time.sleep(SAVED)
    if not draw["startable"]:
        site.partition("DOWN")
    site.steps.arm(1, "after", "pause", program="sbatch")
    process = start(site, label, draw)
    site.until(lambda: site.steps.wait_paused(0.05) or process.poll() is not None, 30, pause=0)
    time.sleep(draw["late"])
    site.lab.faults.kill_ctld(site.name)
    site.crashes.append(time.time())
    site.steps.release()
    site.client.end(process)
    site.start_ctld()
    site.client.end(start(site, label, draw))
    site.partition("UP")


# Two clients with the same outbox


def draw_twins(random: Random) -> Draw:
    found = {"mode": random.choice(["same", "copy", "copy"]), "held": random.random() < 0.6}
    return work(random) | found | {"together": random.random() < 0.4}


def perform_twins(site: Site, label: str, draw: Draw) -> None:
    site.client.disconnect()
    site.set_link_faults(Rules(cut_at=0))
    for _each in range(3):
        site.client.end(start(site, label, draw))
    site.set_link_faults()
    other = site.client
    if draw["mode"] == "copy":
        other = site.client.copy(f"{site.name}-{label}")
        site.copies.append(other)
    if draw["together"]:
        site.partition("DOWN")
    held = draw["held"] and draw["mode"] == "copy"
    if held:
        site.steps.arm(1, "before", "pause", program="sbatch")
    first = site.client.start("agent", "once")
    if held:
        site.until(lambda: site.steps.wait_paused(0.05) or first.poll() is not None, 30, pause=0)
    second = other.start("agent", "once")
    if held:
        other.end(second)
        site.steps.release()
        site.client.end(first)
    else:
        site.client.end(first)
        other.end(second)
    if draw["together"]:
        site.partition("UP")


# A node is disconnected and its job is requeued to another node


def draw_node(random: Random) -> Draw:
    """`hangs`: the heartbeat process of the job is stopped too, as if the disk did not respond."""
    found = {"administrator": random.random() < 0.5, "hangs": random.random() < 0.6}
    return found | {"seconds": round(random.choice([0, random.uniform(0, 4)]), 2), "rest": 150}


def perform_node(site: Site, label: str, draw: Draw) -> None:
    finish(site)
    command = site.command(rest=draw["rest"], pace="0.5")
    options = ("--no-snapshot", "--requeue", "--max-requeues", "3", "--name", label)
    clocks = f"lease={draw.get('lease', LEASE)}"
    process = site.client.start("--context", site.name, "run", *options, *command, clocks=clocks)
    site.client.end(process)
    site.settle()
    run = site.newest(label)
    if not site.until(lambda: [each for each in site.starts() if each.run == run], 60):
        site.missed.append(label)
        return
    time.sleep(draw["seconds"])
    node = next(each.host for each in site.starts() if each.run == run)
    site.set_node_link(node, up=False)
    stopped = _stop_heartbeat(site, run, node) if draw["hangs"] else 0
    if draw["hangs"] and not stopped:
        site.missed.append(label)
    site.log(f"{label}: {run} on {node}, now disconnected" + (", heartbeat stopped" if stopped else ""))
    if draw["administrator"]:
        site.on_ctl("scontrol", "update", f"nodename={node}", "state=down", "reason=campaign")

    def restarted() -> bool:
        return any(each.generation and each.ended for each in site.starts() if each.run == run)

    def heal() -> None:
        if not site.until(restarted, 60 if draw["administrator"] else 150, pause=0.5):
            site.missed.append(label)
        site.set_node_link(node, up=True)
        if stopped:
            with suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGCONT)
        site.resume_nodes()

    site.over, site.after = restarted, heal


def finish(site: Site) -> None:
    """Wait for and complete an episode that is still open."""
    after, site.after = site.after, None
    if after is not None:
        after()


def _stop_heartbeat(site: Site, run: str, node: str) -> int:
    """Stop the heartbeat process of a job; return its pid, or 0 if it was not found."""
    own = f"/{run}/job.sh\0heartbeat\0".encode()

    def beats(pid: int) -> bool:
        with suppress(OSError):
            return own in Path(f"/proc/{pid}/cmdline").read_bytes()
        return False

    found: list[int] = []

    def seen() -> bool:
        found.extend(pid for pid in processes_in(site.cluster.pid(node), "sh") if beats(pid))
        return bool(found)

    if not site.until(seen, 30):
        return 0
    os.kill(found[0], signal.SIGSTOP)
    return found[0]


# The user cancels the run


def draw_cancel(random: Random) -> Draw:
    how = random.choice(["step", "step", "lost", "later", "waiting"])
    found: Draw = {"how": how}
    if how == "step":
        found |= {"step": random.randint(1, 16), "when": random.choice(["before", "after"])}
    if how == "lost":
        found |= {"by": random.choice(["yurt", "shell", "answer"]), "when": random.choice(["before", "after"])}
    if how == "later":
        found |= {"seconds": round(random.uniform(0, 2.5), 2)}
    rest = {"rest": 20} if random.random() < 0.4 else {}
    dice = random.random()
    if dice < 0.3:
        found |= {"cut": round(random.random(), 3), "direction": random.choice(["up", "down"])}
    elif dice < 0.55 and how != "step":
        found |= {"kill": random.randint(1, 10), "what": random.choice(["inner", "all"])}
    return work(random, 2.5) | found | rest


def perform_cancel(site: Site, label: str, draw: Draw) -> None:
    if "cut" in draw or draw.get("by") == "answer":
        site.measure()
    process = _begin_cancelled(site, label, draw)
    run = site.newest(label)
    if not run:
        site.missed.append(label)
    else:
        if "cut" in draw and draw["how"] != "waiting":
            site.client.disconnect()
            most = site.down if draw["direction"] == "down" else site.greeting * 2
            site.set_link_faults(Rules(cut_at=int(most * draw["cut"]), direction=draw["direction"], connections=1))
        if "kill" in draw:
            site.steps.arm(draw["kill"], "after", draw["what"])
        site.cancel(run)
    site.steps.release()
    if process is not None:
        site.client.end(process)
    if draw["how"] == "waiting":
        site.client.disconnect()


def _begin_cancelled(site: Site, label: str, draw: Draw) -> subprocess.Popen[bytes] | None:
    """Submit until the moment at which the user cancels; return the yurt process if it still runs."""
    how = draw["how"]
    if how == "step":
        arm(site, draw)
        process = start(site, label, draw)
        reach(site, label, process, draw)
        return process
    if how == "waiting":
        site.client.disconnect()
        site.set_link_faults(Rules(cut_at=0))
    elif how == "lost" and draw["by"] == "answer":
        site.client.disconnect()
        site.set_link_faults(Rules(cut_at=site.down - ANSWER, direction="down", connections=1))
    elif how == "lost":
        what = "all" if draw["by"] == "shell" else "pause"
        site.steps.arm(1, draw["when"], what, program="sbatch")
    process = start(site, label, draw)
    if how == "lost" and draw["by"] == "yurt":
        site.until(lambda: site.steps.wait_paused(0.05) or process.poll() is not None, 30, pause=0)
        process.kill()
    site.client.end(process)
    if how == "later":
        time.sleep(draw["seconds"])
    return None


FAULTS: dict[str, Fault] = {
    "cut": Fault(18, draw_cut, perform_cut),
    "ssh": Fault(12, draw_ssh, perform_ssh),
    "client": Fault(12, draw_client, perform_client),
    "shell": Fault(16, draw_shell, perform_shell),
    "truncate": Fault(9, draw_truncate, perform_truncate),
    "silence": Fault(4, draw_silence, perform_silence, each=2),
    "twins": Fault(9, draw_twins, perform_twins, each=3),
    "crash": Fault(5, draw_crash, perform_crash, each=2),
    "node": Fault(1, draw_node, perform_node, clusters=("alpha",)),
    "denied": Fault(4, draw_denied, perform_denied),
    "cancel": Fault(12, draw_cancel, perform_cancel),
    "transport": Fault(12, draw_transport, perform_transport),
}
"""All kinds, in the order of the table."""

DESCRIPTIONS = {
    "cut": "link cut at a byte",
    "ssh": "ssh or its master killed",
    "client": "yurt killed",
    "shell": "shell on the login host killed",
    "truncate": "script truncated",
    "silence": "slurmctld stopped or frozen",
    "twins": "two clients, one outbox",
    "crash": "slurmctld killed after its answer",
    "node": "node cut off, job requeued",
    "denied": "ssh key refused for a while",
    "cancel": "cancelled at any moment",
    "transport": "shared connection, kept scripts",
}
