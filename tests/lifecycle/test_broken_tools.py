"""A tool of the site that prints nothing is an error: its empty answer never counts as `no results`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.user import User


@pytest.mark.parametrize("tool", ["find", "cat", "awk"])
@pytest.mark.parametrize("shell_code", ["exit 0", "exit 1"])
def test_results_are_not_overlooked(user: User, tmp_path: Path, tool: str, shell_code: str) -> None:
    shown = user("--json", "run", "--wait", "sh", "-c", 'echo x > "$YURT_OUTPUTS/x"').json["data"]["run"]
    only_copy = Path(shown["folder"], "outputs", "x")
    fake = tmp_path / "bin" / tool
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\n{shell_code}\n")
    fake.chmod(0o755)
    path = f"{fake.parent}:{os.environ['PATH']}"
    done = user.quick("prune", "--yes", shown["id"], PATH=path)
    assert done.code == 5 and only_copy.read_text() == "x\n", done
    done = user.quick("fetch", shown["id"], PATH=path)
    said = done.out + done.err
    assert "no results" not in said and "internal error" not in said, done
    assert done.code == (0 if (tool, shell_code) == ("find", "exit 1") else 5), done  # rsync needs no find
    assert done.code == 0 or user.quick("fetch", shown["id"]).code == 0
    assert Path(user.project, "results", shown["id"], "x").read_text() == "x\n"
