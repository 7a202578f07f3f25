"""The command of an rsync server that another host asks for is run only if it is the expected one."""

from __future__ import annotations

import pytest

from yurt.errors import RefusedError
from yurt.model.data import Manner
from yurt.transport.rsync_through import server_words

GOOD = "m folder --server -ltpre.iLsfxCIvu --log-format=%i --timeout=60 --partial-dir .yurt-partial . yurt-target"


def test_expected_words() -> None:
    folder, words = server_words(GOOD, "m", Manner())
    assert folder and words[0] == "-ltpre.iLsfxCIvu" and words[-2:] == ["--partial-dir", ".yurt-partial"]
    assert server_words(GOOD.replace("folder", "file"), "m", Manner())[0] is False
    both = GOOD.replace("-ltpr", "-ltprc").replace("--timeout", "--delete-during --info=STATS2 --timeout")
    assert "--delete-during" in server_words(both, "m", Manner(checksum=True, delete=True))[1]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "m",
        "m folder",
        GOOD.replace("m folder", "other folder"),
        GOOD.replace("folder", "device"),
        GOOD.replace("--server", "--daemon"),
        GOOD.replace("--server", "--server --sender"),
        GOOD.replace("yurt-target", "/etc"),
        GOOD.replace(". yurt-target", ". yurt-target /etc"),
        GOOD.replace("-ltpre", "-ltpse"),  # more options would follow in the stream
        GOOD.replace("-ltpre.iLsfxCIvu", "-e"),
        GOOD.replace("-ltpr", "-ltprc"),  # a comparison by content, which nobody requested
        GOOD.replace("--log-format=%i", "--delete"),
        GOOD.replace("--log-format=%i", "--log-file=/tmp/x"),
        GOOD.replace("--log-format=%i", "--rsync-path=reboot"),
        GOOD.replace("--log-format=%i", "--temp-dir /tmp"),
        GOOD.replace(".yurt-partial", "/tmp"),
        GOOD.replace("--timeout=60", "--timeout=60; reboot"),
        GOOD.replace("--timeout=60", "$(reboot)"),
        GOOD.replace("--timeout=60", ""),
        GOOD + "\treboot",
    ],
)
def test_anything_else_is_refused(line: str) -> None:
    with pytest.raises(RefusedError, match="unexpected server command"):
        server_words(line, "m", Manner())
