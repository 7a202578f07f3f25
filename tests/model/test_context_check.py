"""Keys of a context: the notations of their values, their aliases, and a message for every fault."""

from __future__ import annotations

from typing import Any

import pytest

from yurt.config import yaml_text
from yurt.model.context import Context, ContextResources
from yurt.model.context_check import check_body, check_file
from yurt.model.context_keys import ALIASES, EXAMPLES, KEYS, RESOURCES, is_name


def read(body: dict[str, Any]) -> Context:
    found, faults = check_file({"contexts": {"big": {"type": "local", **body}}})
    assert not faults
    return found.contexts["big"]


def faults_of(body: Any) -> list[str]:
    return [fault.sentence for fault in check_file({"contexts": {"big": body}})[1]]


def test_every_key_has_a_valid_example() -> None:
    assert set(EXAMPLES) == {*KEYS, *(f"resources.{key}" for key in RESOURCES)}
    for key in KEYS:
        body = yaml_text.parse(f"{key}: {EXAMPLES[key]}")
        assert not check_body(body, KEYS, "a context")[1], key
    assert set(ALIASES.values()) <= set(EXAMPLES) and not set(ALIASES) & set(KEYS)


@pytest.mark.parametrize(
    ("key", "written", "kept"),
    [
        ("ssh_options", "-J 'my gate'", ("-J", "my gate")),
        ("ssh_options", ["-J", "my gate"], ("-J", "my gate")),
        ("ssh_command", "gcloud compute ssh", ("gcloud", "compute", "ssh")),
        ("modules_to_load", "python/3.6.0  ffmpeg/3.2.2", ("python/3.6.0", "ffmpeg/3.2.2")),
        ("tags", ["a", 3], ("a", "3")),
        ("exclude", "", ()),
        ("track", "no", False),
        ("track", "Off", False),
        ("track", True, True),
        ("ntasks", "4", 4),
        ("time", "90", 90),
        ("time", "1-12:00:00", "1-12:00:00"),
        ("account", 42, "42"),
        ("partition", None, None),
        ("variables", {"A": 1, "B": True, "C": "x", "D": 1.5}, {"A": "1", "B": "true", "C": "x", "D": "1.5"}),
        ("variables", "A=1 B='x y'", {"A": "1", "B": "x y"}),
        ("sbatch_options", {"--constraint": "a", "exclusive": None}, {"constraint": "a", "exclusive": None}),
        ("sbatch_options", ["--constraint=a=b", "--exclusive"], {"constraint": "a=b", "exclusive": None}),
        ("sbatch_options", "--constraint=a nice=3", {"constraint": "a", "nice": "3"}),
        ("resources", {"cpu": "4", "gpu": "a100:2", "mem": 4096}, ContextResources(cpu=4, gpu="a100:2", mem="4096")),
        ("resources", {"gpu": "2", "mem": None}, ContextResources(gpu=2)),
        ("resources", "cpu=4 mem=8G", ContextResources(cpu=4, mem="8G")),
    ],
)
def test_notations(key: str, written: Any, kept: Any) -> None:
    assert getattr(read({key: written}), key) == kept


def test_aliases() -> None:
    given = {
        "context_name": "big",
        "scratch_subdir": "mrunner",
        "storage": "/s",
        "neptune": "false",
        "singularity_container": "a.sif",
        "env": {"A": 1},
        "cpu": 2,
        "mem": "5G",
        "resources": {"gpu": 1},
    }
    wanted = Context(
        name="big",
        type="local",
        scratch_dir="mrunner",
        storage_dir="/s",
        track=False,
        container="a.sif",
        variables={"A": "1"},
        resources=ContextResources(cpu=2, gpu=1, mem="5G"),
    )
    assert read(given) == wanted
    assert read({"env": "torch"}).env == "torch" and read({"singularity": "x"}).container == "x"
    assert read({"neptune": "yes", "track": True}).track


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"type": "local", "partitoin": "x"},
            "contexts.big.partitoin is not a key of a context; did you mean 'partition'? (example: `partition: main`)",
        ),
        (
            {"type": "local", "neptun": "x"},
            "contexts.big.neptun is not a key of a context; did you mean 'neptune'? (example: `neptune: true`)",
        ),
        ({"type": "local", "zzz": "x"}, f"contexts.big.zzz is not a key of a context; valid keys: {', '.join(KEYS)}"),
        (
            {"type": "cloud"},
            "contexts.big.type must be local, slurm or kubernetes, not 'cloud' (example: `type: slurm`)",
        ),
        (
            {"backend_type": "cloud"},
            "contexts.big.backend_type must be local, slurm or kubernetes, not 'cloud' "
            "(example: `backend_type: slurm`)",
        ),
        ({}, "contexts.big.type is missing (example: `type: slurm`)"),
        ({"type": None}, "contexts.big.type is missing (example: `type: slurm`)"),
        (None, "contexts.big must be a mapping of keys to values, not an empty value (example: `type: slurm`)"),
        (["type"], "contexts.big must be a mapping of keys to values, not a list (example: `type: slurm`)"),
        ({"type": "slurm"}, "contexts.big.slurm_url is missing (example: `slurm_url: alice@login.big.example`)"),
        (
            {"type": "local", "partition": ["a"]},
            "contexts.big.partition must be text, not a list (example: `partition: main`)",
        ),
        (
            {"type": "local", "ntasks": "many"},
            "contexts.big.ntasks must be a positive integer, not 'many' (example: `ntasks: 4`)",
        ),
        (
            {"type": "local", "ntasks": 0},
            "contexts.big.ntasks must be a positive integer, not '0' (example: `ntasks: 4`)",
        ),
        (
            {"type": "local", "track": "maybe"},
            "contexts.big.track must be true or false, not 'maybe' (example: `track: true`)",
        ),
        (
            {"type": "local", "time": "x" * 99},
            "contexts.big.time must be a positive duration such as 90 (minutes), 2h, 1d, 12:00:00 or 1-12:00:00, "
            f"not '{'x' * 57}…' (example: `time: 2h`)",
        ),
        (
            {"type": "local", "time": ["2h"]},
            "contexts.big.time must be a positive duration such as 90 (minutes), 2h, 1d, 12:00:00 or 1-12:00:00, "
            "not a list (example: `time: 2h`)",
        ),
        (
            {"type": "local", "tags": {"a": "b"}},
            "contexts.big.tags must be a list of strings, not a mapping (example: `tags: [baseline, paper]`)",
        ),
        (
            {"type": "local", "ssh_options": "-o 'x"},
            "contexts.big.ssh_options must be a list of strings with closed quotes, not '-o 'x' "
            '(example: `ssh_options: ["-J", "gateway"]`)',
        ),
        (
            {"type": "local", "variables": {"A": ["x"]}},
            "contexts.big.variables must be a mapping of names to text, not a mapping "
            '(example: `variables: {OMP_NUM_THREADS: "4"}`)',
        ),
        (
            {"type": "local", "sbatch_options": {"a": {}}},
            "contexts.big.sbatch_options must be a mapping of options to text or null, not a mapping "
            "(example: `sbatch_options: {constraint: a100, exclusive: null}`)",
        ),
        (
            {"type": "local", "cmd_type": "qsub"},
            "contexts.big.cmd_type must be sbatch or srun, not 'qsub' (example: `cmd_type: sbatch`)",
        ),
        (
            {"type": "local", "resources": [4]},
            "contexts.big.resources must be a mapping of cpu, gpu and mem to amounts, not a list "
            "(example: `resources: {cpu: 4, gpu: 1, mem: 8G}`)",
        ),
        (
            {"type": "local", "resources": {"gpus": 1}},
            "contexts.big.resources.gpus is not a key of resources; did you mean 'gpu'? (example: `gpu: a100:2`)",
        ),
        (
            {"type": "local", "resources": {"mem": "lots"}},
            "contexts.big.resources.mem must be a memory size such as 4096 (MB), 512M, 8G or 1T, not 'lots' "
            "(example: `mem: 8G`)",
        ),
        (
            {"type": "local", "nodes": "two"},
            "contexts.big.nodes must be a number such as 2, or a range such as 2-4, not 'two' (example: `nodes: 2`)",
        ),
        (
            {"type": "local", "nodes": "2-0"},
            "contexts.big.nodes must be a number such as 2, or a range such as 2-4, not '2-0' (example: `nodes: 2`)",
        ),
        (
            {"type": "local", "name": "small"},
            "contexts.big.name is 'small', but the context is named 'big'; remove the key",
        ),
        (
            {"type": "local", "track": True, "neptune": False},
            "contexts.big.neptune conflicts with another name of the same key, track; keep one of them",
        ),
    ],
)
def test_a_message_for_every_fault(body: Any, message: str) -> None:
    assert faults_of(body) == [message]


def test_all_faults_are_reported() -> None:
    assert len(faults_of({"type": "slurm", "ntasks": "x", "resources": {"cpu": "y", "mem": "z", "gpus": 1}})) == 5


def test_keys_of_mrunner_that_yurt_does_not_use() -> None:
    body = {
        "type": "local",
        "google_project_id": "sandbox-1",
        "registry_url": "registry.example",
        "registry_username": "alice",
        "tpu": "v2",
        "resources": "cpu=2 tpu=1",
        "context_name": "small",
    }
    found, faults = check_file({"contexts": {"big": body}, "current_context": ""})
    assert not faults and found.current_context is None
    assert found.unused == {
        "big": ("google_project_id", "registry_username", "tpu", "context_name", "resources.tpu"),
    }
    assert found.contexts["big"].registry_url == "registry.example"
    assert found.contexts["big"].resources == ContextResources(cpu=2)
    assert check_file({"contexts": {"big": {"type": "local", "name": "big"}}})[0].unused == {}


@pytest.mark.parametrize("name", ["big", "0", "plgrid.plggluna.sandbox", "a_b-C.9"])
def test_valid_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", None, 3])
def test_invalid_names(name: object) -> None:
    assert not is_name(name)
    faults = check_file({"contexts": {name: {"type": "local"}}})[1]
    assert [fault.sentence for fault in faults] == [
        f"contexts.{name} is not a valid context name: use letters, digits, '.', '_' and '-', starting with a letter "
        "or a digit (example: `big-gpu: {type: slurm, slurm_url: alice@big.example}`)"
    ]
