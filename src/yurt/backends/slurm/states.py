"""Translates Slurm's job states and reasons into yurt's states and sentences. Pure; a new state is `unknown`."""

from __future__ import annotations

from yurt.model.run import State
from yurt.model.state import OUT_OF_MEMORY, WAITS_FOR_SYNC, Ending

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

FINAL_REASONS = {
    "TIMEOUT": "it reached its time limit",
    "DEADLINE": "it reached its deadline",
    "OUT_OF_MEMORY": OUT_OF_MEMORY,
    "CANCELLED": "cancelled outside yurt",
    "PREEMPTED": "preempted by another job",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not boot",
    "FAILED": "its job failed and recorded no exit code",
}

BY_ROOT = "CANCELLED by 0"
"""The accounting state of a job that failed to launch and is not requeued."""

CANCELLED, PREEMPTED = "CANCELLED", "PREEMPTED"

UNLAUNCHED = "launch failed requeued held"
"""The reason of a job that is held because its launch failed; its owner can release it."""

UNSYNCED = "JobHeldUser home_sync"
"""What poll.sh prints as the reason of a job that is held until a home sync."""

UNANSWERED = "JobHeldUser race_wait"
"""What it prints for a job of a race that is held after several starts without an answer: see job/race.sh."""

HELD = ("JobHeldUser", UNSYNCED, UNANSWERED, "JobHeldAdmin", "JobHoldMaxRequeue", UNLAUNCHED)

REASONS = {
    "Priority": "other jobs have higher priority",
    "Resources": "waiting for free nodes",
    "BeginTime": "waiting for its earliest start time",
    "Dependency": "waiting for another job to finish",
    "DependencyNeverSatisfied": "its dependency can never be satisfied; it will not start",
    "JobHeldUser": "held; release it with `yurt release`",
    UNSYNCED: WAITS_FOR_SYNC,
    UNANSWERED: "no yurt command told its job who was first; run `yurt agent start`, then `yurt release`",
    "JobHeldAdmin": "waiting for an administrator to release it",
    "JobHoldMaxRequeue": "it was requeued too often",
    UNLAUNCHED: "its launch on the node failed",
    "JobArrayTaskLimit": "as many of its tasks are running as may run at a time",
    "PartitionTimeLimit": "it requests more time than its partition allows; it will not start",
    "PartitionNodeLimit": "it requests more nodes than its partition allows; it will not start",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionConfig": "its partition cannot provide the requested resources",
    "BadConstraints": "no node provides the requested resources",
    "Constraints": "no free node provides the requested features",
    "ReqNodeNotAvail": "a required node is down, drained or reserved",
    "Nodes required for job are DOWN": "its nodes are down, drained or reserved for jobs of other partitions",
    "NodeDown": "a required node is down",
    "FrontEndDown": "the front end of the site is down",
    "Licenses": "waiting for a license",
    "Reservation": "waiting for its reservation",
    "ReservationDeleted": "its reservation was deleted; it will not start",
    "ReservationInvalid": "its reservation is invalid; it will not start",
    "Cleaning": "Slurm is cleaning up its previous start",
    "None": "just submitted",
    "Prolog": "its node is being prepared (prolog)",
    "SchedDefer": "Slurm starts jobs only in its next scheduling cycle",
    "SystemFailure": "a failure of Slurm or of a node stopped it",
    "JobLaunchFailure": "its launch on the node failed",
    "NonZeroExitCode": "its last start ended with an error",
    "RaisedSignal": "its last start was stopped by a signal",
    "OutOfMemory": "its last start used more memory than its limit",
    "TimeLimit": "its last start reached its time limit",
    "InactiveLimit": "it was inactive for too long",
    "DeadLine": "it cannot finish before its deadline",
    "BurstBufferResources": "waiting for space in the burst buffer",
    "BurstBufferStageIn": "its files are being copied to the burst buffer",
    "BurstBufferOperation": "an operation of the burst buffer failed",
    "PowerNotAvail": "the site has not enough power for it now",
    "PowerReserved": "the power that it needs is reserved",
    "MaxPoweredUpNodes": "as many nodes are powered up as the site allows",
    "MpiPortsBusy": "the ports for MPI on its nodes are in use",
    "BlockFreeAction": "its nodes are being freed",
    "BlockMaxError": "its nodes failed too often",
    "FedJobLock": "another cluster of the federation may start it",
    "AccountingPolicy": "a limit of your account or QOS prevents its start",
    "AssociationJobLimit": "your account has reached its job limit",
    "AssociationResourceLimit": "your account has reached a limit of resources",
    "AssociationTimeLimit": "your account has used up its time",
    "AccountNotAllowed": "your account may not use its partition",
    "QOSNotAllowed": "its QOS is not allowed for its account or its partition",
    "QOSJobLimit": "its QOS has reached its job limit",
    "QOSResourceLimit": "its QOS has reached a limit of resources",
    "QOSTimeLimit": "its QOS has used up its time",
    "QOSUsageThreshold": "your usage is above the threshold of its QOS",
    "InvalidAccount": "its account is invalid",
    "InvalidQOS": "its QOS is invalid",
    "MaxMemPerLimit": "it requests more memory than is allowed",
}
"""Reasons as sentences. Those that name a limit of a QOS or an account are in limits.py."""


NATIVES = {
    "cancelled": "CANCELLED",
    "stopped": "CANCELLED",
    "preempted": "PREEMPTED",
    "timeout": "TIMEOUT",
    "requeues": "TIMEOUT",
    "idle": "TIMEOUT",
    "out_of_memory": "OUT_OF_MEMORY",
    "node_failed": "NODE_FAIL",
    "raced": "NODE_FAIL",
}
"""Slurm's state by the cause in exit.json."""


def word(text: str) -> str:
    """Return the state in a column of squeue or sacct: CANCELLED of `CANCELLED by 1000`, COMPLETED of `COMPLETED+`."""
    return text.split(" ", maxsplit=1)[0].rstrip("+").upper() if text else ""


def live(text: str, reason: str) -> State | None:
    """Return the state of a job in the queue; None if it has finished."""
    name = word(text)
    if name in ENDED:
        return None
    if name == "PENDING" and reason in HELD:
        return "held"
    return LIVE.get(name, "unknown")


def ended(text: str) -> State | None:
    """Return the final state for a column of squeue or sacct; None if the state is not final."""
    return ENDED.get(word(text))


def native_of(ending: Ending) -> str:
    """Return the final state that Slurm gives to a job with this end."""
    return "COMPLETED" if ending.code == 0 else NATIVES.get(ending.cause, "FAILED")


def describe(text: str, reason: str) -> str:
    """Return the reason for the state of a job as a sentence; empty if there is none."""
    name = word(text)
    if name == "PENDING":
        plain = reason.split(",", maxsplit=1)[0].strip("()") if reason not in REASONS else reason
        return REASONS.get(plain) or _limit(plain) or (f"Slurm reports {reason}" if reason else "")
    if name == "SUSPENDED":
        return "suspended on its node"
    return FINAL_REASONS.get(name, "" if name in (*LIVE, "COMPLETED") else f"Slurm reports {text}")


def _limit(reason: str) -> str:
    if "Grp" not in reason and "Max" not in reason and "Min" not in reason:
        return ""
    from yurt.backends.slurm import limits

    return limits.words(reason)
