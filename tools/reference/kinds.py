"""The kinds of JSON envelopes: the command that prints each, and the type of its data."""

from __future__ import annotations

from typing import Any

from yurt.config.contexts import Merged
from yurt.config.trust import Trusted
from yurt.dev.views import DevNode
from yurt.homesync.backups import HomeRestored
from yurt.homesync.outcomes import Outcome
from yurt.lab import Started
from yurt.lab.status import LabStatus
from yurt.lifecycle.files.transfer import Fetched
from yurt.lifecycle.tasks import SweepShown
from yurt.model.facts import Facts
from yurt.profiles import Known
from yurt.services.views import Service
from yurt.store import Entry
from yurt.verbs import context, context_profiles
from yurt.verbs.agent import Round
from yurt.verbs.agent_process import AgentStatus
from yurt.verbs.cancel import Cancelled
from yurt.verbs.cluster import Cluster
from yurt.verbs.context_add import Added
from yurt.verbs.data_ls import DataListed
from yurt.verbs.data_put import DataCopied
from yurt.verbs.data_rm import DataRemoved
from yurt.verbs.dev_backup import BackedUp
from yurt.verbs.dev_backups import BackupList
from yurt.verbs.dev_down import Down
from yurt.verbs.dev_extend import Extended
from yurt.verbs.dev_restore import Restored
from yurt.verbs.dev_ssh import Editor
from yurt.verbs.diff import Difference
from yurt.verbs.doctor import Diagnosis
from yurt.verbs.env import EnvShown, EnvsRemoved, EnvView
from yurt.verbs.forward import Forwarded
from yurt.verbs.hold import Held
from yurt.verbs.home_backups import HomeBackups
from yurt.verbs.home_conflicts import HomeConflicts
from yurt.verbs.home_install import Installed
from yurt.verbs.home_profile import HomeProfile
from yurt.verbs.home_status import HomeStatus
from yurt.verbs.import_ import Imported
from yurt.verbs.lab import Command, FaultSet, Indexed, Settings, Stopped
from yurt.verbs.login import LoggedIn
from yurt.verbs.logs import LogLine
from yurt.verbs.metrics import RunMetrics
from yurt.verbs.mlflow import InMlflow
from yurt.verbs.prune import Pruned
from yurt.verbs.prune_all import Cleared
from yurt.verbs.ps import RunRow
from yurt.verbs.race import Released
from yurt.verbs.retry import RetryCandidate
from yurt.verbs.run import PlanView
from yurt.verbs.secret import Secret
from yurt.verbs.shell import Session
from yurt.verbs.show import Shown
from yurt.verbs.storage import ContextStorage
from yurt.verbs.storage_keep import Kept
from yurt.verbs.tensorboard import TensorboardPage
from yurt.verbs.wandb import WandbSynced
from yurt.verbs.where import Where
from yurt.verbs.why import Explanation

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
