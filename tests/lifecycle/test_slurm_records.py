"""What Slurm's records show other users about a run: trust.md lists all of it."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

ANY_USER = "squeue -a -j {job} -o %all; scontrol show job -dd {job}; scontrol show step {job}"
ACCOUNTING = "; sacct -a -P -o ALL -j {job}; sacct -a -P -B -j {job}; sacct -a -P --env-vars -j {job}"


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_other_users_see_no_words_of_the_user(laptop: Laptop, lab: Lab, cluster: str) -> None:
    """The folder, with the project's name, is visible; the script, parameters, names, tags and variables are not."""
    script = laptop.project / "hidden-script.sh"
    script.write_text(f"{PATIENT}\n")
    words = ["--name", "hidden-name", "--tag", "hidden-tag", "--note", "hidden note", "--var", "HIDDEN=hidden-variable"]
    made = laptop.run(cluster, *words, "sh", script.name, "--", "--hidden-parameter", "hidden-value")
    laptop.starts(made["run"]["id"])
    commands = (ANY_USER + (ACCOUNTING if cluster == "alpha" else "")).format(job=made["status"]["job"])
    ssh = Ssh(lab)
    if cluster == "alpha":  # the accounting has the line that submitted the job a little later
        eventually(lambda: "sbatch " in ssh.ask(cluster, commands, user="bob").out)
    seen = ssh.ask(cluster, commands, user="bob").out
    assert f"WorkDir={made['run']['folder']}" in seen and laptop.project.name in made["run"]["folder"]
    assert f"yurt-{made['run']['id']}" in seen
    assert "hidden" not in seen.lower()
    assert laptop.quick("cancel", made["run"]["id"]).code == 0
