"""keep_copy.sh: killed at drawn moments, a copy is complete or not there, and the next call completes it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from yurt.backends import scripts

SCRIPT = scripts.text("measure.sh") + scripts.text("keep_copy.sh")


def start(tier: Path, source: Path, target: Path) -> subprocess.Popen[str]:
    words = [str(tier), "", "run", str(source), str(target)]
    return subprocess.Popen(
        ["sh", "-c", SCRIPT, "sh", *words], stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, _err = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.replace("tick\n", "")


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def kept(target: Path) -> dict[str, bytes]:
    """The copy, or what the next call takes for it: the one before, if a kill came between the two renames."""
    old = target.parent / f".{target.name}.old"
    return files(target) if target.exists() else files(old) if old.exists() else {}


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_drawn_moments(tmp_path: Path, seed: int) -> None:
    source, tier = tmp_path / "run", tmp_path / "tier"
    target = tier / "yurt-kept" / "p" / "x"
    (source / "outputs" / "a b").mkdir(parents=True)
    (source / "work").mkdir()
    tier.mkdir()
    (source / "exit.json").write_text("{}")
    for number in range(200):
        (source / "outputs" / "a b" / f"{number}").write_text("x" * 1000 * (number % 7))
    (source / "work" / "new\nline").write_text("1")
    wanted = files(source)
    began = time.monotonic()
    assert finish(start(tier, source, target)).startswith("done 200:")
    usual = time.monotonic() - began
    assert files(target) == wanted
    drawn = random.Random(f"keep/{seed}")
    for number, moment in enumerate(drawn.uniform(0, 1) for _time in range(6)):
        if drawn.random() < 0.5:
            shutil.rmtree(target, ignore_errors=True)  # a first copy; else an earlier one is replaced
        else:
            # Of another size each time: of two versions that are equally long and of one second, rsync keeps the first.
            (source / "work" / "later").write_text("x" * (number + 1))
        earlier, wanted = kept(target), files(source)
        process = start(tier, source, target)
        time.sleep(usual * moment)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        now = kept(target)
        assert now in (earlier, wanted), sorted(set(now) ^ set(wanted))
        assert files(source) == wanted
    assert finish(start(tier, source, target)).split()[0] in ("done", "same")
    assert files(target) == wanted and [each.name for each in target.parent.iterdir()] == ["x"]
    assert finish(start(tier, source, target)).startswith("same 200:")
