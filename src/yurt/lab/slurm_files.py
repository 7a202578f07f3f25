"""Generates each cluster's Slurm configuration from its specification. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from yurt.lab.cgroups import Limits
from yurt.lab.topology import ClusterSpec

CPUS = 8
MEMORY_MB = 8000

_COMMON = """\
# Written by `yurt lab up`, which overwrites changes. Change settings with `yurt lab set`.
ClusterName={name}
SlurmctldHost=ctl({ctl})
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=10
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=256
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0,bf_continue
PriorityType=priority/multifactor
KillWait=5
UnkillableStepTimeout=60
CompleteWait=0
MaxJobCount=50000
SlurmctldTimeout=30
SlurmdTimeout=30
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
JobCompType=jobcomp/none
Prolog=/etc/slurm/prolog.sh
TaskProlog=/etc/slurm/task_prolog.sh
Epilog=/etc/slurm/epilog.sh
"""

_ALPHA = """\
PrologFlags=Contain
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=ctl
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment,job_script,job_env
AccountingStorageEnforce=associations,limits,qos
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
JobRequeue=1
EnforcePartLimits=ALL
MaxArraySize=10001
MinJobAge=60
PartitionName=main Default=YES Nodes=ALL MaxTime=1-00:00:00 DefaultTime=01:00:00 PriorityTier=10 PreemptMode=OFF
PartitionName=short Nodes=ALL MaxTime=00:02:00 DefaultTime=00:01:00 PriorityTier=20 PreemptMode=OFF
PartitionName=scavenge Nodes=ALL MaxTime=1-00:00:00 DefaultTime=01:00:00 PriorityTier=1 PreemptMode=REQUEUE GraceTime=0
PartitionName=spot Nodes=ALL MaxTime=1-00:00:00 DefaultTime=01:00:00 PriorityTier=1 PreemptMode=REQUEUE GraceTime=20
"""

_BETA = """\
AccountingStorageType=accounting_storage/none
JobSubmitPlugins=lua
JobRequeue=0
EnforcePartLimits=NO
MaxArraySize=101
MinJobAge=10
PartitionName=main Default=YES Nodes=ALL MaxTime=1-00:00:00 DefaultTime=01:00:00
PartitionName=short Nodes=ALL MaxTime=00:02:00 DefaultTime=00:01:00 PriorityTier=20
"""

_LIMITS: dict[Limits, tuple[str, str]] = {
    "v1": (
        "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n",
        "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n"
        "ConstrainSwapSpace=yes\nAllowedSwapSpace=0\nConstrainCores=no\nConstrainDevices=no\n",
    ),
    "v2": (
        "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n",
        "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainRAMSpace=yes\nConstrainCores=no\nConstrainDevices=no\n",
    ),
    # Without cgroups Slurm samples memory periodically and kills jobs over their limit.
    "none": (
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherParams=OverMemoryKill\n",
        "CgroupPlugin=cgroup/v1\n",  # without cgroups, autodetection makes slurmd exit
    ),
}


def slurm_conf(spec: ClusterSpec, limits: Limits, settings: Mapping[str, str] | None = None) -> str:
    """Return the text of slurm.conf; `settings` replace or add cluster-wide settings."""
    ctl = spec.address(spec.of_role("ctl")[0])
    nodes = "".join(
        f"NodeName={node.name} NodeAddr={spec.address(node)} CPUs={CPUS} RealMemory={MEMORY_MB} TmpDisk=1000"
        + (f" Gres=gpu:a100:{node.gpus} Feature=gpu" if node.gpus else " Feature=cpuonly")
        + " State=UNKNOWN\n"
        for node in spec.of_role("node")
    )
    own = _ALPHA if spec.accounting else _BETA
    own_settings, _, partitions = own.partition("PartitionName=")
    common = _COMMON.format(name=spec.name, ctl=ctl) + _LIMITS[limits][0] + own_settings
    return _changed(common, settings or {}) + nodes + "PartitionName=" + partitions


def _changed(text: str, settings: Mapping[str, str]) -> str:
    names = {name.lower() for name in settings}
    kept = [line for line in text.splitlines() if line.partition("=")[0].lower() not in names]
    return "\n".join([*kept, *(f"{name}={value}" for name, value in settings.items())]) + "\n"


def cgroup_conf(limits: Limits) -> str:
    return _LIMITS[limits][1]


def gres_conf(spec: ClusterSpec) -> str:
    return "".join(
        f"NodeName={node.name} Name=gpu Type=a100 File=/dev/nvidia[0-{node.gpus - 1}]\n"
        for node in spec.of_role("node")
        if node.gpus
    )


def slurmdbd_conf(spec: ClusterSpec) -> str:
    return f"""\
AuthType=auth/munge
DbdHost=ctl
DbdAddr={spec.address(spec.of_role("ctl")[0])}
SlurmUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
CommitDelay=0
"""
