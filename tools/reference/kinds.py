"""The kinds of JSON envelopes: the command that prints each, and the type of its data."""

from __future__ import annotations

from typing import Any

from yurt.agent.agent import Round
from yurt.agent.start_stop import AgentStatus
from yurt.config.contexts import Merged
from yurt.config.trust import Trusted
from yurt.contexts import context
from yurt.contexts import list_profiles as context_profiles
from yurt.contexts.add import Added
from yurt.contexts.cluster import Cluster
from yurt.contexts.doctor.doctor import Diagnosis
from yurt.contexts.login import LoggedIn
from yurt.contexts.profiles import Known
from yurt.contexts.secret import Secret
from yurt.dev.backup import BackedUp
from yurt.dev.backups import BackupList
from yurt.dev.down import Down
from yurt.dev.extend import Extended
from yurt.dev.restore import Restored
from yurt.dev.ssh import Editor
from yurt.dev.views import DevNode
from yurt.envs.env import EnvShown, EnvsRemoved, EnvView
from yurt.homes.backups import HomeRestored
from yurt.homes.change_profile import HomeProfile
from yurt.homes.install import Installed
from yurt.homes.list_backups import HomeBackups
from yurt.homes.list_conflicts import HomeConflicts
from yurt.homes.outcomes import Outcome
from yurt.homes.status import HomeStatus
from yurt.lab import Started
from yurt.lab.manage import Command, FaultSet, Indexed, LabStatus, Settings, Stopped
from yurt.lifecycle.cancel import Cancelled
from yurt.lifecycle.diff import Difference
from yurt.lifecycle.files.transfer import Fetched
from yurt.lifecycle.hold import Held
from yurt.lifecycle.import_ import Imported
from yurt.lifecycle.logs import LogLine
from yurt.lifecycle.prune import Pruned
from yurt.lifecycle.prune_all import Cleared
from yurt.lifecycle.ps import RunRow
from yurt.lifecycle.race import Released
from yurt.lifecycle.retry import RetryCandidate
from yurt.lifecycle.run import PlanView
from yurt.lifecycle.shell import Session
from yurt.lifecycle.show import Shown
from yurt.lifecycle.tasks import SweepShown
from yurt.lifecycle.why import Explanation
from yurt.model.facts import Facts
from yurt.services.forward import Forwarded
from yurt.services.views import Service
from yurt.storage.data_ls import DataListed
from yurt.storage.data_put import DataCopied
from yurt.storage.data_rm import DataRemoved
from yurt.storage.keep import Kept
from yurt.storage.storage import ContextStorage
from yurt.store import Entry
from yurt.tracking.metrics import RunMetrics
from yurt.tracking.mlflow.mlflow import InMlflow
from yurt.tracking.tensorboard.tensorboard import TensorboardPage
from yurt.tracking.wandb import WandbSynced
from yurt.where.where import Where

KINDS: dict[str, tuple[str, Any]] = {
    "run": ("yurt run", Entry),
    "plan": ("yurt run --dry-run", PlanView),
    "runs": ("yurt ps", list[RunRow]),
    "shell": ("yurt shell", Session),
    "forwarded": ("yurt forward", Forwarded),
    "service": ("yurt serve", Service),
    "storage": ("yurt storage show", list[ContextStorage]),
    "results-kept": ("yurt storage keep", list[Kept]),
    "why": ("yurt why", Explanation),
    "where": ("yurt where", Where),
    "data-copied": ("yurt data put, yurt data get", DataCopied),
    "data-listed": ("yurt data ls", DataListed),
    "data-removed": ("yurt data rm", DataRemoved),
    "services": ("yurt serve list", list[Service]),
    "run-shown": ("yurt show", Shown),
    "sweep-shown": ("yurt show SWEEP", SweepShown),
    "log": ("yurt logs", LogLine),
    "metrics": ("yurt metrics", list[RunMetrics]),
    "tensorboard": ("yurt tensorboard", TensorboardPage),
    "runs-finished": ("yurt wait", list[Entry]),
    "race-released": ("yurt race release", Released),
    "runs-cancelled": ("yurt cancel", list[Cancelled]),
    "runs-held": ("yurt hold", list[Held]),
    "runs-released": ("yurt release", list[Held]),
    "runs-retried": ("yurt retry", list[Entry]),
    "retry-candidates": ("yurt retry --dry-run", list[RetryCandidate]),
    "runs-fetched": ("yurt fetch", list[Fetched]),
    "wandb-synced": ("yurt wandb sync", WandbSynced),
    "mlflow": ("yurt mlflow", InMlflow),
    "runs-pruned": ("yurt prune", Pruned),
    "context-cleared": ("yurt prune --all", Cleared),
    "diff": ("yurt diff", Difference),
    "runs-imported": ("yurt import", Imported),
    "agent-round": ("yurt agent once", Round),
    "agent-status": ("yurt agent status", AgentStatus),
    "contexts": ("yurt context list", context.Contexts),
    "context": ("yurt context show", context.ContextShown),
    "context-resolved": ("yurt context show --resolved", context.Resolved),
    "context-edited": ("yurt context edit", context.Edited),
    "context-copied": ("yurt context copy", context.Copied),
    "context-used": ("yurt context use", context.Used),
    "contexts-removed": ("yurt context remove", context.Removed),
    "contexts-imported": ("yurt context import", Merged),
    "context-added": ("yurt context add", Added),
    "profiles": ("yurt context profiles", list[context_profiles.ProfileListed]),
    "profile": ("yurt context profiles NAME", Known),
    "facts": ("yurt context probe", Facts),
    "clusters": ("yurt cluster", list[Cluster]),
    "env": ("yurt env build", EnvView),
    "envs": ("yurt env list", list[EnvView]),
    "env-shown": ("yurt env show", EnvShown),
    "envs-removed": ("yurt env remove", EnvsRemoved),
    "dev-node": ("yurt dev up", DevNode),
    "dev-nodes": ("yurt dev status", list[DevNode]),
    "dev-code": ("yurt dev code", Editor),
    "dev-backup": ("yurt dev backup", BackedUp),
    "dev-backups": ("yurt dev backups", BackupList),
    "dev-restored": ("yurt dev restore", Restored),
    "dev-extended": ("yurt dev extend", Extended),
    "dev-down": ("yurt dev down", Down),
    "home-sync": ("yurt home sync", list[Outcome]),
    "home-status": ("yurt home status", HomeStatus),
    "home-profile": ("yurt home profile", HomeProfile),
    "home-conflicts": ("yurt home conflicts", HomeConflicts),
    "home-backups": ("yurt home backups", HomeBackups),
    "home-restored": ("yurt home restore", HomeRestored),
    "home-installed": ("yurt home install", Installed),
    "login": ("yurt login", list[LoggedIn]),
    "doctor": ("yurt doctor", Diagnosis),
    "trusted": ("yurt trust", Trusted),
    "secret-set": ("yurt secret set", Secret),
    "secrets": ("yurt secret list", list[Secret]),
    "secret-removed": ("yurt secret remove", Secret),
    "lab-started": ("yurt lab up", Started),
    "lab-stopped": ("yurt lab down", Stopped),
    "lab-settings": ("yurt lab set", Settings),
    "lab-index": ("yurt lab index", Indexed),
    "lab-status": ("yurt lab status", LabStatus),
    "lab-fault": ("yurt lab fault …", FaultSet),
    "command": ("yurt lab shell", Command),
    "completion": ("yurt completion", dict[str, str]),
}
