"""Which scripts of a spec file take their parameters from `--config FILE`, and which files are spec files."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.lifecycle.plan.mrunner_script import asks, is_spec

FIXTURES = Path(__file__).parents[1] / "fixtures" / "mrunner"

ARGPARSE = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n"
CALLS = "from mrunner.helpers.client_helper import get_configuration\nget_configuration()\n"
COPIED = "def get_configuration():\n    parser.add_argument('--config')\n"
CONFIG = 'parser.add_argument("--config")\n'


@pytest.mark.parametrize(
    ("command", "files", "expected"),
    [
        ("python train.py", {"train.py": ARGPARSE}, False),
        ("python train.py", {"train.py": CALLS}, True),
        ("python train.py --fast", {"train.py": COPIED}, True),
        ("python train.py", {"train.py": "print('no get_configuration here')\n"}, False),
        ("python train.py", {"train.py": "import missing\nsyntax error"}, False),
        ("python train.py", {"train.py": "from tools import setup\n", "tools/setup.py": CALLS}, True),
        ("python train.py", {"train.py": "import a\n", "a.py": "import b\n", "b.py": "import a\nimport c\n"}, False),
        ("python train.py", {"train.py": "import a\n", "a.py": "import b\n", "b.py": CALLS}, True),
        ("python sub/train.py", {"sub/train.py": "from helper import *\n", "sub/helper.py": CALLS}, True),
        ("python pkg/train.py", {"pkg/train.py": "from .helper import x\n", "pkg/helper.py": CALLS}, True),
        ("python train.py", {"train.py": "import deep\n", "src/deep.py": CALLS}, True),
        ("python train.py", {"train.py": ARGPARSE, "other.py": CALLS}, False),
        ("python -m pkg.train", {"pkg/train.py": CALLS}, True),
        ("python -m pkg", {"pkg/__main__.py": CALLS}, True),
        ("sh -c 'ldconfig /libs/; python3 train.py \"$@\"' sh", {"train.py": CALLS}, True),
        ("./train", {"train": CALLS}, False),
        ("python train.py", {"train.py": CONFIG}, True),
        ("python train.py", {"train.py": CONFIG + ARGPARSE}, False),
        ("python train.py", {"train.py": CONFIG + "parser.add_argument('--batch-size')\n"}, False),
    ],
)
def test_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, files: dict[str, str], expected: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert asks(command.split(), ["lr", "batch_size"], helpers=True, python_path=".:src") == expected
    if files.get("train.py") == CONFIG:
        assert not asks(command.split(), ["lr"], helpers=False), "a spec file without helpers is not of mrunner"


@pytest.mark.parametrize("name", ["basic_conf.py", "gin_conf.py", "grid_conf.py"])
def test_spec_files(name: str) -> None:
    assert is_spec(FIXTURES / name)


@pytest.mark.parametrize(
    "text",
    [
        CALLS,
        ARGPARSE,
        "mrunner syntax error",
        "import mrunner\n",
        "experiments_list = [1]\n",
        "from mrunner.experiment import Experiment\nif __name__ == '__main__':\n    print(Experiment())\n",
    ],
)
def test_scripts_are_no_spec_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "train.py"
    file.write_text(text)
    assert not is_spec(file)
