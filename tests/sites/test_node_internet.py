"""Whether compute nodes reach the internet: a deep probe takes precedence over the profile of the site."""

from __future__ import annotations

import pytest

from tests.user import User
from yurt.model.context import Context
from yurt.model.facts import Facts, NodeFacts
from yurt.sites.env_tools import node_reaches_internet


@pytest.mark.parametrize(
    ("profile", "probed", "reaches"),
    [
        *((None, None, False), (None, True, True), ("mila", None, True), ("mila", False, False)),
        *(("narval", None, False), ("narval", True, True), ("absent", None, False), ("sherlock", None, False)),
    ],
)
def test_internet(
    user: User, monkeypatch: pytest.MonkeyPatch, profile: str, probed: bool | None, reaches: bool
) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", user.environment["YURT_CONFIG_HOME"])
    node = None if probed is None else NodeFacts(node="n1", probed_at=0, internet=probed, ssh=True)
    context = Context(name="big", type="slurm", slurm_url="me@big", profile=profile)
    facts = Facts(probed_at=0, user="me", host="big", node=node)
    assert node_reaches_internet(context, facts) == reaches
