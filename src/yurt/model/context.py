"""A context: a named place to run, as defined in contexts.yaml. yurt.model.settings describes its keys."""

from typing import Literal

import msgspec

from yurt.model.env import EnvPlace

ContextType = Literal["local", "slurm", "kubernetes"]
CommandType = Literal["sbatch", "srun"]
DevCompression = Literal["auto", "zstd", "lz4", "gzip"]


class ContextResources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The resources that one run requests."""

    cpu: int | None = None
    gpu: int | str | None = None
    mem: str | None = None


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where and how to run. `name` is the key in the file and is optional in the body."""

    name: str
    type: ContextType
    slurm_url: str | None = None
    ssh_options: tuple[str, ...] = ()
    ssh_command: tuple[str, ...] = ()
    storage_dir: str | None = None
    scratch_dir: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    user_id: str | None = None
    resources: ContextResources = ContextResources()
    time: str | int | None = None
    nodes: str | None = None
    ntasks: int | None = None
    nodelist: str | None = None
    exclude_nodes: str | None = None
    sbatch_options: dict[str, str | None] = {}
    cmd_type: CommandType | None = None
    track: bool = False
    mlflow_uri: str | None = None
    login_profile: bool = True
    advice: bool = True
    tags: tuple[str, ...] = ()
    modules_to_load: tuple[str, ...] = ()
    after_module_load_cmd: str | None = None
    venv: str | None = None
    conda: str | None = None
    container: str | None = None
    env: str | None = None
    requirements_file: str | None = None
    env_python: str | None = None
    env_place: EnvPlace | None = None
    wheelhouse: tuple[str, ...] = ()
    env_cuda: str | None = None
    conda_installer: str | None = None
    variables: dict[str, str] = {}
    exclude: tuple[str, ...] = ()
    paths_to_copy: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    registry_url: str | None = None
    profile: str | None = None
    dev_workspace: str | None = None
    dev_interval: str | None = None
    dev_compression: DevCompression | None = None
    dev_tier: str | None = None
    dev_keep: dict[str, str] = {}
    dev_limit: str | None = None
    dev_idle: str | None = None
    dev_idle_release: bool = False
    dev_sshd: bool = False
    tiers: dict[str, str] = {}
    tier_purge: dict[str, str] = {}
    tier_quota: dict[str, str] = {}
    output_size: str | None = None
    storage_report: str | None = None
    home_sync: bool = False
    race_address: str | None = None
    race_keys: bool = False
    race_wait: str | None = None
    lab: str | None = None


class ContextsFile(msgspec.Struct, frozen=True):
    """The content of contexts.yaml."""

    contexts: dict[str, Context] = {}
    current_context: str | None = None
    invalid: frozenset[str] = frozenset()
    """Contexts with faults; they are not in `contexts`."""
    unused: dict[str, tuple[str, ...]] = {}
    """Keys of contexts that yurt accepts because mrunner has them, and does not use."""


LOCAL = Context(name="local", type="local")
"""The built-in context."""
