"""Whether compute nodes reach the internet: a deep probe takes precedence over the profile of the site."""

from __future__ import annotations

import pytest

from tests.user import User
from yurt.contexts.facts import internet_of_nodes
from yurt.model.context import Context
from yurt.model.facts import Facts, NodeFacts


@pytest.mark.parametrize(
    ("profile", "probed", "reaches"),
    [
        *((None, None, None), (None, True, True), ("mila", None, True), ("mila", False, False)),
        *(("narval", None, False), ("narval", True, True), ("absent", None, None), ("sherlock", None, None)),
    ],
)
def test_internet(
    user: User, monkeypatch: pytest.MonkeyPatch, profile: str, probed: bool | None, reaches: bool | None
) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", user.environment["YURT_CONFIG_HOME"])
    node = None if probed is None else NodeFacts(node="n1", probed_at=0, internet=probed, ssh=True)
    context = Context(name="big", type="slurm", slurm_url="me@big", profile=profile)
    facts = Facts(probed_at=0, user="me", host="big", node=node)
    assert internet_of_nodes(context, facts) is reaches
