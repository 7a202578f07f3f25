"""Waits for CPU and GPU slots of this machine, then runs a run. Standard library only: each run has such a process.

Every local run of a user has one such process until it starts. Tickets in a shared folder record which runs wait or
run, and their CPUs and GPUs; a ticket is valid while its process is alive. First come, first served. There is no
daemon: a run inherits the environment of the `yurt run` that submitted it.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

from yurt.backends.local.gate import private
from yurt.backends.local.process import boot, born, restore_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Ticket = dict[str, Any]

# The same as in yurt.model.layout, which this script cannot import.
JOB, WINNER, EXIT, CANCEL, OUT_LOG, ERR_LOG = "job.sh", "winner", "exit.json", "cancel", "out.log", "err.log"


def cores() -> int:
    """Return the cores of this machine; YURT_LOCAL_CPUS overrides them."""
    given = os.environ.get("YURT_LOCAL_CPUS", "")
    if given.isdigit():
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> int:
    """Return the GPUs of this machine, which may take a second; YURT_LOCAL_GPUS overrides them."""
    given = os.environ.get("YURT_LOCAL_GPUS", "")
    if given.isdigit():
        return int(given)
    if not os.path.exists("/dev/nvidia0"):
        return 0
    import subprocess

    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return listed.stdout.count(b"GPU ")


def tickets(folder: str, mine: str = "") -> dict[str, Ticket]:
    """Return the tickets of living processes by name, oldest first, without `mine`; remove those of others."""
    found: dict[str, Ticket] = {}
    names = sorted(name for name in os.listdir(folder) if not name.startswith(".") and name != mine)
    if not names:
        return found
    import json  # not at the top: most runs find no other ticket

    here = boot()
    for name in names:
        path = os.path.join(folder, name)
        try:
            with open(path) as file:
                ticket = json.load(file)
            lives = ticket["boot"] == here and born(ticket["pid"]) == ticket["born"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if lives:
            found[name] = ticket
        else:
            try:
                os.unlink(path)
            except OSError:
                continue
    return found


def write(folder: str, name: str, ticket: Ticket) -> None:
    aside = os.path.join(folder, "." + name)
    with open(aside, "w", opener=private) as file:
        file.write("{" + ", ".join(f'"{key}": {_json(value)}' for key, value in ticket.items()) + "}")
    os.replace(aside, os.path.join(folder, name))


def _json(value: Any) -> str:
    """Return the JSON of a value of a ticket. The module json takes longer to import than all else together."""
    if isinstance(value, str):
        if not all(letter.isalnum() or letter in ".-_" for letter in value) or not value.isascii():
            raise ValueError(f"unexpected text in a ticket: {value}")
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def claim(folder: str, name: str, ticket: Ticket) -> int:
    """Claim slots for a run: return 0 if it can start now, else how many runs are ahead of it."""
    with open(os.path.join(folder, ".lock"), "w", opener=private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = tickets(folder, name)
        running = [each for each in there.values() if each["running"]]
        ahead = [other for other, each in there.items() if not each["running"] and not each["follows"] and other < name]
        if ahead:
            return len(ahead)
        free = cores() - sum(each["cpus"] for each in running)
        taken = {device for each in running for device in each["devices"]}
        left = [device for device in range(gpus()) if device not in taken] if taken or ticket["gpus"] else []
        # A run that requests more than the machine has runs alone rather than never.
        if (ticket["cpus"] > free and running) or len(left) < ticket["gpus"]:
            return 1
        ticket["devices"] = left[: ticket["gpus"]]
        # Without --gpus, it sees what no other run holds: all of them, as outside yurt, if none holds any.
        ticket["sees"] = ticket["devices"] if ticket["gpus"] else left if taken else None
        ticket["running"] = True
        write(folder, name, ticket)
        return 0


def over(slots: str, folder: str) -> bool:
    """Return whether the run in a folder has finished, or has no process."""
    if any(os.path.exists(os.path.join(folder, name)) for name in (EXIT, f"{EXIT}.d")):
        return True
    return os.path.basename(folder) not in {ticket["run"] for ticket in tickets(slots).values()}


def follow(slots: str, name: str, ticket: Ticket, before: list[str]) -> int:
    """Return 0 once the runs before it have finished; until then its ticket blocks no other run."""
    if not ticket["follows"]:
        return 0
    if not all(over(slots, each) for each in before):
        return 5
    ticket["follows"] = False
    write(slots, name, ticket)
    return 0


def detached() -> int:
    """Continue in a new process and session. Return the pipe to the caller, which prints what it reads and exits."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        message = os.read(reader, 32)
        sys.stdout.write(message.decode() + "\n")
        sys.stdout.flush()
        os._exit(0 if message else 1)
    os.setsid()
    os.close(reader)
    return writer


def send_pid(writer: int) -> None:
    os.write(writer, str(os.getpid()).encode())
    os.close(writer)


def new_ticket(run: str, pid: int, cpus: int, gpus: int, *, follows: bool) -> Ticket:
    ticket: Ticket = {"run": run, "pid": pid, "born": born(pid), "boot": boot(), "cpus": cpus, "gpus": gpus}
    return ticket | {"devices": [], "running": False, "follows": follows}


def name_of(run: str, nonce: str) -> str:
    """Return the name of a new ticket; names sort by age."""
    return f"{time.time():017.6f}-{run}.{nonce}"


def numbers(text: str) -> list[int]:
    """Return the numbers of a range such as 0-3,7."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def become(
    folder: str,
    name: str,
    ticket: Ticket,
    before: list[str],
    *,
    stops: list[str],
    words: list[str],
    facts: str = "",
) -> int:
    """Wait for the runs before this one and for slots, then execute job.sh; return if one of `stops` exists.

    `facts`: those of an ordinary run, for runner.py.
    """
    while ahead := follow(folder, name, ticket, before) or claim(folder, name, ticket):
        time.sleep(min(0.2 * ahead, 3))
        if any(map(os.path.exists, stops)):
            os.unlink(os.path.join(folder, name))  # cancelled while waiting
            return 0
    if (sees := ticket["sees"]) is not None:
        own = None if ticket["gpus"] else os.environ.get("CUDA_VISIBLE_DEVICES")  # what the user has chosen
        shown = sees if own is None else [each for each in own.split(",") if not each.isdigit() or int(each) in sees]
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, shown))
    restore_signals()
    if facts:
        from yurt.backends.local import runner

        code = runner.run(words[0], facts)
        os.unlink(os.path.join(folder, name))
        return code
    return os.execv("/bin/sh", ["sh", JOB, *words])


def main(folder: str, cpus: int, gpus: int, facts: str, before: list[str], *, run: str, nonce: str, start: str) -> int:
    """Detach, take a ticket, send the process id to the caller, wait, execute job.sh; or run all tasks of a sweep."""
    mask = os.umask(0o077)
    writer = detached()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name, ticket = name_of(run, nonce), new_ticket(run, os.getpid(), cpus, gpus, follows=bool(before))
    if ":" in start:
        ticket |= {"follows": True, "left": ""}  # takes no slot itself
    write(folder, name, ticket)
    logs = ("/dev/null", "/dev/null") if ":" in start else (OUT_LOG, ERR_LOG)
    for number, log in enumerate(logs, 1):
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    if ":" in start:
        tasks = [each for group in start.split() for each in tasks_of(group)]
        ticket["left"] = [number for number, _start in tasks]
        write(folder, name, ticket)
        send_pid(writer)
        return run_tasks(folder, name, ticket, tasks, before, nonce=nonce, most=parallel_of(start), mask=mask)
    send_pid(writer)
    os.umask(mask)
    stops = [CANCEL] if start else [WINNER, f"{WINNER}.d"]
    words = [nonce, *([start] if start else [])]
    return become(folder, name, ticket, before, stops=stops, words=words, facts="" if start else facts)


def tasks_of(group: str) -> list[tuple[int, str]]:
    """Return the tasks of START:OFFSET:TASKS, each with its start."""
    start, offset, text = group.split(":", 2)
    return [(int(offset) + number, "" if start == "1" else start) for number in numbers(text.partition("%")[0])]


def parallel_of(groups: str) -> int:
    limit = groups.partition("%")[2].partition(" ")[0]
    return int(limit) if limit else 1 << 30


def run_tasks(
    folder: str,
    name: str,
    ticket: Ticket,
    tasks: list[tuple[int, str]],
    before: list[str],
    *,
    nonce: str,
    most: int,
    mask: int,
) -> int:
    """Start the tasks of a sweep in order, as many at a time as this machine has slots for."""
    while not all(over(folder, each) for each in before):
        time.sleep(1)
    parallel = max(1, min(most, cores() // max(ticket["cpus"], 1)))
    children: set[int] = set()
    for place, (number, start) in enumerate(tasks):
        while len(children) >= parallel:
            children.discard(os.wait()[0])
        if os.path.exists(CANCEL):
            break
        run = f"{ticket['run']}.{number}"
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(writer)
            os.read(reader, 1)  # wait until the ticket is written
            os.setsid()
            os.umask(mask)
            mine = [own for own, each in tickets(folder).items() if each["pid"] == os.getpid()]
            if not mine:
                os._exit(1)
            own = new_ticket(run, os.getpid(), ticket["cpus"], ticket["gpus"], follows=False)
            os._exit(become(folder, mine[0], own, [], stops=[CANCEL], words=[nonce, start, str(number)]))
        os.close(reader)
        write(folder, name_of(run, nonce), new_ticket(run, child, ticket["cpus"], ticket["gpus"], follows=False))
        ticket["left"] = [each for each, _start in tasks[place + 1 :]]
        write(folder, name, ticket)
        os.close(writer)
        children.add(child)
    while children:
        children.discard(os.wait()[0])
    os.unlink(os.path.join(folder, name))
    return 0


def begin() -> None:
    """Read the arguments, wait, and run."""
    slots, cpus, gpus, facts, *before, run, nonce, start = sys.argv[1:]
    if facts and not start:
        from yurt.backends.local import runner  # noqa: F401 # now: yurt may be updated while this waits
    code = main(slots, int(cpus), int(gpus), facts, before, run=run, nonce=nonce, start=start)
    os._exit(code)  # at once: nothing is buffered
