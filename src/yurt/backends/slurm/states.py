"""Slurm's words and reasons in yurt's states and in sentences. Pure; a word nobody knows is `unknown`."""

from __future__ import annotations

from yurt.model.run import State

LIVE: dict[str, State] = {
    "PENDING": "queued",
    "REQUEUED": "requeued",
    "REQUEUE_FED": "requeued",
    "REQUEUE_HOLD": "held",
    "SPECIAL_EXIT": "held",
    "RESV_DEL_HOLD": "held",
    "CONFIGURING": "starting",
    "RUNNING": "running",
    "SUSPENDED": "running",
    "STOPPED": "running",
    "COMPLETING": "running",
    "STAGE_OUT": "running",
    "SIGNALING": "running",
    "RESIZING": "running",
}

ENDED: dict[str, State] = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "OUT_OF_MEMORY": "out_of_memory",
    "CANCELLED": "cancelled",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
    "NODE_FAIL": "node_failed",
    "BOOT_FAIL": "node_failed",
}

ENDED_IN_WORDS = {
    "TIMEOUT": "it reached its time limit",
    "DEADLINE": "it reached its deadline",
    "OUT_OF_MEMORY": "it used more memory than it had asked for",
    "CANCELLED": "cancelled on the cluster",
    "PREEMPTED": "preempted: another job needed its node",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not boot",
    "FAILED": "its job failed and left no ending of its own",
}

BY_ROOT = "CANCELLED by 0"
"""What records say of a job that could not be launched, and was not to be requeued."""

CANCELLED, PREEMPTED = "CANCELLED", "PREEMPTED"

UNLAUNCHED = "launch failed requeued held"
"""Why a job is held whose node failed it; its owner may let it go again."""

HELD = ("JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", UNLAUNCHED)

REASONS = {
    "Priority": "other jobs are ahead of it",
    "Resources": "it waits for nodes to become free",
    "BeginTime": "it is not to start before a set time",
    "Dependency": "it waits for another job to end",
    "DependencyNeverSatisfied": "the job it waits for ended in a way that never lets it start",
    "JobHeldUser": "held by you: scontrol release lets it go",
    "JobHeldAdmin": "held by an administrator",
    "JobHoldMaxRequeue": "held: it was requeued too often",
    UNLAUNCHED: "held: it could not be launched on its node",
    "PartitionTimeLimit": "it asks for more time than its partition allows, and will not start",
    "PartitionNodeLimit": "it asks for more nodes than its partition allows, and will not start",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is not active",
    "PartitionConfig": "its partition cannot give what it asks for",
    "BadConstraints": "no node can give what it asks for",
    "ReqNodeNotAvail": "a node it needs is down, drained or reserved",
    "NodeDown": "a node it needs is down",
    "Licenses": "it waits for a licence",
    "Reservation": "it waits for its reservation",
    "Cleaning": "its earlier start is being cleaned up",
    "None": "it was submitted just now",
    "AssociationJobLimit": "your account runs as many jobs as it may",
    "AssocMaxJobsLimit": "your account runs as many jobs as it may",
    "AssocGrpCPUMinutesLimit": "your account has used up its CPU time",
    "AssocGrpGRES": "your account uses as many GPUs as it may",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its QOS is not valid",
}

LIMITED = (
    ("QOSMaxJobs", "you run as many jobs as the QOS allows"),
    ("QOSMaxGRES", "you use as many GPUs as the QOS allows"),
    ("QOSMaxWall", "it asks for more time than its QOS allows"),
    ("QOSMax", "you use as much as the QOS allows"),
    ("QOSGrp", "all users of the QOS together use as much as it allows"),
    ("QOSMin", "it asks for less than its QOS demands"),
    ("AssocGrp", "your account uses as much as it may"),
    ("AssocMax", "you use as much as your account allows"),
    ("MaxMemPerLimit", "it asks for more memory than is allowed"),
    ("ReqNodeNotAvail", "a node it needs is down, drained or reserved"),
)


def word(text: str) -> str:
    """The state in a column of squeue or sacct: CANCELLED of `CANCELLED by 1000`, COMPLETED of `COMPLETED+`."""
    return text.split(" ", maxsplit=1)[0].rstrip("+").upper() if text else ""


def live(text: str, reason: str) -> State | None:
    """The state of a job that the queue holds; None if it has ended."""
    name = word(text)
    if name in ENDED:
        return None
    if name == "PENDING" and reason in HELD:
        return "held"
    return LIVE.get(name, "unknown")


def ended(text: str) -> State | None:
    """The final state a word stands for; None if it is none."""
    return ENDED.get(word(text))


def in_words(text: str, reason: str) -> str:
    """Why a job stands as it does; empty where there is nothing to say."""
    name = word(text)
    if name == "PENDING":
        plain = reason.split(",", maxsplit=1)[0].strip("()") if reason not in REASONS else reason
        known = REASONS.get(plain) or next((line for prefix, line in LIMITED if plain.startswith(prefix)), "")
        return known or (f"Slurm says: {reason}" if reason else "")
    if name == "SUSPENDED":
        return "suspended on its node"
    return ENDED_IN_WORDS.get(name, "" if name in (*LIVE, "COMPLETED") else f"Slurm says: {text}")
