"""The faults of the campaign of homes: each disturbs a sync. Returns whether that was still running."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

from tests.campaign.home_site import HomeSite
from yurt.lab.relay import Rules

Draw = dict[str, Any]
MOMENTS = ("time", "begun", "arriving", "backup", "saving")
RATE = 150_000
"""Bytes per second of a slow link."""


def start(site: HomeSite, draw: Draw) -> subprocess.Popen[bytes]:
    """Start a sync, over a slow link in some rounds."""
    if draw["slow"]:
        site.client.disconnect()
        site.slow(draw["site"], Rules(rate=RATE))
    return site.start("home", "sync", "--yes")


def wait(site: HomeSite, process: subprocess.Popen[bytes], draw: Draw) -> bool:
    """Wait for the moment of the fault; return whether the sync is still running."""
    backups = {place.name: len(place.dated()) for place in site.places}
    reached: dict[str, Callable[[], bool]] = {
        "time": lambda: True,
        "begun": lambda: bool(site.unisons()),
        "arriving": lambda: any(place.arriving() for place in site.places),
        "backup": lambda: any(len(place.dated()) > backups[place.name] for place in site.places),
        "saving": lambda: any(place.saving() for place in site.places),
    }
    while process.poll() is None and not reached[draw["moment"]]():
        time.sleep(0.003)
    deadline = time.monotonic() + draw["delay"] * (2.5 if draw["moment"] == "time" else 0.2)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.003)
    return process.poll() is None


def none(site: HomeSite, draw: Draw) -> bool:
    """No fault."""
    site.end(start(site, draw))
    return True


def yurt(site: HomeSite, draw: Draw) -> bool:
    """SIGKILL of yurt."""
    process = start(site, draw)
    hit = wait(site, process, draw)
    process.kill()
    site.end(process)
    return hit


def here(site: HomeSite, draw: Draw) -> bool:
    """SIGKILL of Unison on the client side."""
    return _unison(site, draw, site.hub)


def server(site: HomeSite, draw: Draw) -> bool:
    """SIGKILL of Unison on a login host."""
    return _unison(site, draw, "alpha", "beta")


def _unison(site: HomeSite, draw: Draw, *names: str) -> bool:
    process = start(site, draw)
    wait(site, process, draw)
    hit = False
    while not hit and process.poll() is None:  # between two pairs there is none
        hit = site.kill_unison(*names) > 0
    site.end(process)
    return hit


def power(site: HomeSite, draw: Draw) -> bool:
    """Everything on this machine is killed at once, and the connections with it."""
    process = start(site, draw)
    hit = wait(site, process, draw)
    process.kill()
    site.kill_unison("local")
    site.client.disconnect()
    site.end(process)
    return hit


def ssh(site: HomeSite, draw: Draw) -> bool:
    """SIGKILL of the ssh processes of this machine."""
    process = start(site, draw)
    hit = wait(site, process, draw)
    killed = site.client.kill_ssh(*(("master", "session") if draw["fraction"] < 0.5 else ("session",)))
    site.end(process)
    return hit and killed > 0


def cut(site: HomeSite, draw: Draw) -> bool:
    """The link to a login host is down for some seconds; half of the time it stays down until yurt gives up."""
    process = start(site, draw)
    hit = wait(site, process, draw)
    site.lab.faults.cut(draw["site"])
    try:
        if draw["fraction"] < 0.5:
            time.sleep(draw["fraction"] * 4)
        else:
            site.end(process)
    finally:
        site.lab.faults.heal(draw["site"])
    if draw["fraction"] < 0.5:
        site.end(process)
    return hit


def reset(site: HomeSite, draw: Draw) -> bool:
    """The connection to a login host is reset after some bytes."""
    site.client.disconnect()
    direction = "up" if draw["delay"] < 0.25 else "down"
    size = 8_000 + int(draw["fraction"] ** 2 * 200_000)
    site.slow(draw["site"], Rules(cut_at=size, direction=direction, connections=1))
    answer = site.end(site.start("home", "sync", "--yes"))
    site.client.disconnect()  # a connection that was not reset yet would be reset in a later round
    return answer.code not in (0, 1)


def twins(site: HomeSite, draw: Draw) -> bool:
    """Two syncs at once; in some rounds the first is killed."""
    first = start(site, draw)
    hit = wait(site, first, draw)
    second = site.start("home", "sync", "--yes")
    if draw["kill"]:
        first.kill()
    answers = [site.end(first), site.end(second)]
    if all(each.code == 5 for each in answers):
        site.wrong.append("two syncs at once refused each other")
    return hit


def full(site: HomeSite, draw: Draw) -> bool:
    """The disk with the home of a login host is full."""
    site.lab.faults.full(f"{draw['site']}:home")
    try:
        answer = site.end(start(site, draw))
    finally:
        site.lab.faults.free(f"{draw['site']}:home")
    return answer.code != 0


FAULTS: dict[str, Callable[[HomeSite, Draw], bool]] = {
    "none": none,
    "yurt": yurt,
    "here": here,
    "server": server,
    "power": power,
    "ssh": ssh,
    "cut": cut,
    "reset": reset,
    "twins": twins,
    "full": full,
}
