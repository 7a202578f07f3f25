"""Scripts written for sbatch: their working directory, their name and their job arrays, as they expect them."""

from __future__ import annotations

import json

import pytest

from tests.lifecycle.test_run import offline, options, planned
from tests.user import User, said

__all__ = ["offline"]  # a fixture

EVERYWHERE = pytest.mark.parametrize(
    "context",
    ["local", pytest.param("alpha", marks=pytest.mark.lab), pytest.param("beta", marks=pytest.mark.lab)],
)


@pytest.fixture
def person(request: pytest.FixtureRequest, context: str) -> User:
    found: User = request.getfixturevalue("user" if context == "local" else "laptop")
    return found


ARRAY = """\
#!/bin/bash
#SBATCH --job-name=fit
#SBATCH --time=5 --array=5-65:5%3
set -eu
cd /
cd $SLURM_SUBMIT_DIR
cat sub/data.txt
echo "$1 $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX" \\
  "$SLURM_ARRAY_TASK_STEP $SLURM_JOB_NAME"
echo "${SLURM_JOB_ID:-0} $SLURM_ARRAY_JOB_ID" > "$YURT_OUTPUTS/job"
"""


@EVERYWHERE
@pytest.mark.slow("beta")
def test_a_job_array(person: User, context: str) -> None:
    """A sweep over its indices; on beta in two arrays, as if an array could have at most ten tasks."""
    if context == "beta":
        file = person.home / "config" / "facts" / "beta.json"
        kept = json.loads(file.read_text())
        file.write_text(json.dumps({**kept, "facts": {**kept["facts"], "max_array": 11}}))
    (person.project / "sub").mkdir()
    (person.project / "sub" / "data.txt").write_text("of the project\n")
    (person.project / "job.sbatch").write_text(ARRAY)
    done = person("--context", context, "--json", "run", "--wait", "job.sbatch", "a b")
    assert done.code == 0 and done.json["warnings"] == [], done
    run = done.json["data"]["run"]
    assert run["name"] == "fit" and run["tasks"] == 13
    for number, index in ((0, 5), (1, 10), (12, 65)):
        logs = person("logs", f"{run['id']}.{number}")
        assert logs.out.splitlines() == ["of the project", f"a b {index} 13 5 65 5 fit"], logs
    fetched = person("fetch", "--json", run["id"])
    assert fetched.code == 0, fetched
    jobs = [file.read_text().split() for file in sorted(person.project.glob("results/**/job"))]
    arrays = {array for _job, array in jobs}
    assert len(jobs) == 13 and len(arrays) == {"local": 1, "alpha": 1, "beta": 2}[context]
    # One task again: it is still the same task of the same array.
    again = person("--json", "retry", "--wait", f"{run['id']}.12")
    assert again.code == 0, again
    assert person("logs", "@last").out.splitlines()[-1] == "0 | a b 65 13 5 65 5 fit"


@EVERYWHERE
def test_the_folder_of_a_script(person: User, context: str) -> None:
    """SLURM_SUBMIT_DIR is the folder where the user typed the command, below the working directory of the run."""
    (person.project / "sub").mkdir()
    (person.project / "yurt.yaml").write_text("{}")
    (person.project / "sub" / "data.txt").write_text("of the project\n")
    (person.project / "sub" / "job.sbatch").write_text(
        "#!/bin/sh\n#SBATCH --time=5\n"
        'here=$PWD; cd / && cd "$SLURM_SUBMIT_DIR" && [ "$PWD" = "$here" ] && cat data.txt\n'
        + ("srun sh -c 'cd / && cat $SLURM_SUBMIT_DIR/data.txt'\n" if context != "local" else "")
    )
    done = person("--context", context, "run", "-f", "job.sbatch", cwd=person.project / "sub")
    assert done.code == 0, done
    assert done.out.splitlines()[1:] == ["of the project"] * (1 if context == "local" else 2)


def test_the_plan_of_a_job_array(offline: User) -> None:
    (offline.project / "job.sbatch").write_text("#!/bin/sh\n#SBATCH -J fit\n#SBATCH -a 1,7,3 -c 3\ntrue\n")
    view = planned(offline, "job.sbatch")
    assert view["run"]["tasks"] == 3 and view["run"]["name"] == "fit" and view["warnings"] == []
    assert view["script"].splitlines()[1:3] == ["#SBATCH -J fit", "#SBATCH -c 3"], "a later start is one job"
    assert not any(each.startswith("--array") for each in options(view))
    assert planned(offline, "--name", "mine", "--max-parallel", "2", "job.sbatch")["run"]["name"] == "mine"


@pytest.mark.parametrize(
    ("line", "words", "sentence"),
    [
        ("--array=9-3", [], "--array must be a list of indices such as 0-9, 1,3,7 or 0-99%10, not '9-3'"),
        ("--array=x", [], "--array must be a list of indices such as 0-9, 1,3,7 or 0-99%10, not 'x'"),
        ("--array", [], "--array must be a list of indices such as 0-9, 1,3,7 or 0-99%10, not ''"),
        ("-a 0-9%0", [], "--array must be a list of indices such as 0-9, 1,3,7 or 0-99%10, not '0-9%0'"),
        ("-a 0-4000001", [], "--array must be a list of indices such as"),
        ("-a 0-100000", [], "--array has 100,001 indices; the maximum is 100,000"),
        ("-a 0-9", ["--grid", "a=1,2"], "`#SBATCH --array` cannot be combined with another sweep"),
        ("--wait", [], "yurt does not support `#SBATCH --wait`: the job would not be one run"),
    ],
)
def test_lines_that_make_no_run(offline: User, line: str, words: list[str], sentence: str) -> None:
    (offline.project / "job.sh").write_text(f"#!/bin/sh\n# first\n#SBATCH {line}\ntrue\n")
    assert said(offline.quick("run", *words, "job.sh"), 2).startswith(f"job.sh:3: {sentence}")
    assert offline.contents() == []


def test_lines_without_effect_are_named(offline: User) -> None:
    (offline.project / "job.sh").write_text("#!/bin/sh\n\n#SBATCH --requeue\n#SBATCH -D /tmp\ntrue\n")
    assert planned(offline, "job.sh")["warnings"] == [
        "job.sh:3: `#SBATCH --requeue` is ignored: use `yurt run --requeue`",
        "job.sh:4: `#SBATCH --chdir` is ignored: the script starts in a copy of the project",
    ]


@EVERYWHERE
@pytest.mark.slow("beta")
def test_log_files_that_a_script_names(person: User, context: str) -> None:
    """They are in the working directory while the script runs, and are fetched; without --error, with both streams."""
    (person.project / "one.sbatch").write_text(
        "#!/bin/sh\n#SBATCH -J fit\n#SBATCH --output=logs/%x-%%-%u.out\n"
        "echo out; echo err >&2; cat logs/fit-*.out > seen.txt\n"
    )
    (person.project / "two.sbatch").write_text(
        "#!/bin/sh\n#SBATCH -a 7\n#SBATCH -o %3a.out -e %A_%a.err\n"
        'echo out; echo err >&2; echo "$SLURM_ARRAY_JOB_ID" > job\n'
    )
    for name in ("one", "two"):
        done = person("--context", context, "--json", "run", "--wait", f"{name}.sbatch")
        assert done.code == 0 and done.json["warnings"] == [], done
        assert person("fetch", done.json["data"]["run"]["id"], "--to", name).code == 0
    assert sorted(person("logs", "fit").out.splitlines()) == ["err", "out"]
    fetched = {file.name: file for file in person.project.glob("one/**/*") if file.is_file()}
    (log,) = [file for name, file in fetched.items() if name.startswith("fit-%-")]
    assert log.parent.name == "logs" and not log.is_symlink() and log.read_text() == "out\nerr\n"
    assert fetched["seen.txt"].read_text() == "out\nerr\n"
    fetched = {file.name: file for file in person.project.glob("two/**/*") if file.is_file()}
    job = fetched["job"].read_text().strip()
    assert fetched["007.out"].read_text() == "out\n" and fetched[f"{job}_7.err"].read_text() == "err\n"


def test_log_files_elsewhere(offline: User) -> None:
    (offline.project / "job.sh").write_text("#!/bin/sh\n#SBATCH -o /logs/%j\n#SBATCH -e ../err\ntrue\n")
    why = "is ignored: only a path below the working directory is used; see the output with `yurt logs`"
    assert planned(offline, "job.sh")["warnings"] == [
        f"job.sh:2: `#SBATCH --output` {why}",
        f"job.sh:3: `#SBATCH --error` {why}",
    ]
