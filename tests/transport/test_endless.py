"""A site that sends another file than it announced: yurt stops, and the disk of this machine does not fill up."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.errors import RefusedError
from yurt.transport import base
from yurt.transport.local import LocalHost


@pytest.mark.parametrize("script", ["echo 3; exec yes", "echo x", "yes | head -c 200 | tr -d '\\n'"])
def test_another_content_than_announced(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "GET", script)
    with pytest.raises(RefusedError):
        LocalHost().get("/x", tmp_path / "target", timeout=5)
    assert not list(tmp_path.iterdir())
