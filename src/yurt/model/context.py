"""A context: a named place to run, as it stands in contexts.yaml."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

ContextType = Literal["local", "slurm", "kubernetes"]
CommandType = Literal["sbatch", "srun"]


def _about(line: str) -> Meta:
    return Meta(description=line)


class ContextResources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one run asks for."""

    cpu: Annotated[int | None, _about("Cores.")] = None
    gpu: Annotated[int | str | None, _about("GPUs, with a type where it matters: 2, a100:2.")] = None
    mem: Annotated[str | None, _about("Memory; a bare number is MB.")] = None


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where and how to run. `name` is the key in the file and need not stand in the body."""

    name: Annotated[str, _about("What the context is called; the key in the file says it already.")]
    type: Annotated[ContextType, _about("What kind of place it is: local, slurm or kubernetes.")]
    slurm_url: Annotated[str | None, _about("user@host of the login node, or an alias ssh knows.")] = None
    ssh_options: Annotated[tuple[str, ...], _about("Further arguments for ssh, such as -J with a gateway.")] = ()
    ssh_command: Annotated[tuple[str, ...], _about("What to run instead of ssh, such as gcloud compute ssh.")] = ()
    storage_dir: Annotated[str | None, _about("Where yurt keeps runs; variables such as $HOME are resolved there.")] = (
        None
    )
    scratch_dir: Annotated[str | None, _about("Folder for short-lived data; a relative one is under $SCRATCH.")] = None
    partition: Annotated[str | None, _about("The partition jobs go to.")] = None
    account: Annotated[str | None, _about("The account jobs are charged to.")] = None
    qos: Annotated[str | None, _about("The quality of service jobs ask for.")] = None
    user_id: Annotated[str | None, _about("Who you are in the records of runs; any word of yours.")] = None
    resources: Annotated[ContextResources, _about("What a run asks for: cpu, gpu and mem.")] = ContextResources()
    time: Annotated[str | int | None, _about("Time limit of a run; a bare number is minutes.")] = None
    ntasks: Annotated[int | None, _about("How many tasks a job starts.")] = None
    nodelist: Annotated[str | None, _about("Nodes a job must have.")] = None
    exclude_nodes: Annotated[str | None, _about("Nodes a job must not have.")] = None
    sbatch_options: Annotated[
        dict[str, str | None], _about("Further options of sbatch; one without a value is null.")
    ] = {}
    cmd_type: Annotated[CommandType | None, _about("sbatch to queue runs, srun to stay with them.")] = None
    track: Annotated[bool, _about("Whether runs are tracked.")] = True
    tags: Annotated[tuple[str, ...], _about("Tags every run gets.")] = ()
    modules_to_load: Annotated[tuple[str, ...], _about("Environment modules a job loads first.")] = ()
    after_module_load_cmd: Annotated[str | None, _about("Shell line a job runs after its modules are loaded.")] = None
    venv: Annotated[str | None, _about("Virtual environment a job activates.")] = None
    conda: Annotated[str | None, _about("Conda environment a job activates.")] = None
    container: Annotated[str | None, _about("Container image a job runs in.")] = None
    env: Annotated[str | None, _about("Environment yurt builds: its name or the file that defines it.")] = None
    requirements_file: Annotated[str | None, _about("Python requirements the environment must hold.")] = None
    variables: Annotated[dict[str, str], _about("Environment variables of a job.")] = {}
    exclude: Annotated[tuple[str, ...], _about("Patterns of files that do not travel.")] = ()
    paths_to_copy: Annotated[tuple[str, ...], _about("Further files and folders that travel with the code.")] = ()
    registry_url: Annotated[str | None, _about("Registry that images are published to (Kubernetes).")] = None
    lab: Annotated[str | None, _about("The lab that made this context, and may renew or remove it.")] = None


class ContextsFile(msgspec.Struct, frozen=True):
    """What contexts.yaml says."""

    contexts: dict[str, Context] = {}
    current_context: str | None = None


LOCAL = Context(name="local", type="local")
"""The context that exists without any file."""
