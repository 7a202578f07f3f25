"""yurt installed from its wheel, as `pipx install .` and `uv tool install .` do it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_wheel_installs_and_runs(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    # uv keeps what it downloads, and is several times as fast, but does not read all settings of pip.
    try:
        _run(["uv", "build", "-q", "--wheel", "--out-dir", str(tmp_path / "wheels"), str(ROOT)])
        install = ["uv", "pip", "install", "-q", "--python"]
    except AssertionError:
        _run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path / "wheels"), str(ROOT)])
        install = []
    (wheel,) = tmp_path.glob("wheels/yurt-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {name.removeprefix("yurt/") for name in names if name.startswith("yurt/")}
    source = ROOT / "src" / "yurt"
    wanted = {str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()}
    assert shipped == {name for name in wanted if "__pycache__" not in name}
    _run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")])
    python = tmp_path / "venv" / "bin" / "python"
    _run([*install, str(python), str(wheel)] if install else [*pip, "--python", str(python), "install", str(wheel)])
    (tmp_path / "home").mkdir()
    project = tmp_path / "project"
    project.mkdir()
    (project / "hello.py").write_text("print('hello from a wheel')\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("YURT_", "PYTHON"))}
    environment["HOME"] = str(tmp_path / "home")
    said = _run([str(python.parent / "yurt"), "run", "-f", "hello.py"], cwd=project, env=environment)
    assert "hello from a wheel" in said


def _run(argv: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
