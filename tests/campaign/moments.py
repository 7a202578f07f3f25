"""What a fault consists of: the run that is submitted, and the moment at which the fault is injected."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.campaign.site import Site

Draw = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """A kind of fault. `share` is its percentage of all runs, `each` the number of runs per episode."""

    share: int
    draw: Callable[[Random], Draw]
    perform: Callable[[Site, str, Draw], None]
    each: int = 1
    clusters: tuple[str, ...] = ("alpha", "beta")


def work(random: Random, longest: float = 1.5) -> Draw:
    return {"rest": round(random.uniform(0.2, longest), 2), "snapshot": random.random() < 0.25}


def start(site: Site, label: str, draw: Draw) -> subprocess.Popen[bytes]:
    if draw.get("snapshot"):
        (site.client.project / "salt").write_text(label)  # change the code, so that it is uploaded
    arguments = site.arguments(label, rest=draw["rest"], snapshot=draw.get("snapshot", False))
    program = draw.get("victim") == "session"  # yurt itself is the session otherwise
    return site.client.start(*arguments, "x" * draw.get("filler", 0), program=program)


def reach(site: Site, label: str, process: subprocess.Popen[bytes], draw: Mapping[str, Any]) -> None:
    """Wait for the chosen moment: a step of the script on the login host, or some seconds."""
    if "step" in draw:
        site.until(lambda: site.steps.wait_paused(0.05) or process.poll() is not None, 30, pause=0)
        if not site.steps.fired():
            site.missed.append(label)
    else:
        time.sleep(draw["seconds"])


def moment(random: Random) -> Draw:
    """Choose the moment of the fault: a step of the submission on the login host, or after some time."""
    dice = random.random()
    if dice < 0.4:
        return {"step": random.randint(1, 16), "program": "any", "when": random.choice(["before", "after"])}
    if dice < 0.7:
        return {"step": 1, "program": "sbatch", "when": random.choice(["before", "after"])}
    return {"seconds": round(random.uniform(0.05, 0.9), 3)}


def arm(site: Site, draw: Mapping[str, Any]) -> None:
    if "step" in draw:
        site.steps.arm(draw["step"], draw["when"], "pause", program=draw.get("program", "any"))


def delay(random: Random) -> Draw:
    """Choose what happens before the paused script continues: another attempt to submit, or a delay."""
    return {"overtaken": True} if random.random() < 0.4 else {"linger": round(random.uniform(0, 0.6), 2)}


def pass_time(site: Site, draw: Draw) -> None:
    if draw.get("overtaken"):
        site.client.once()
    else:
        time.sleep(draw["linger"])
