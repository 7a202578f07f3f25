"""Every kind of host passes the same contract suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.conftest import running_job, site
from yurt.hosts import Host, LocalHost
from yurt.hosts.node import NodeHost
from yurt.lab import Lab
from yurt.model.site_words import NodeName
from yurt.testing.hosts import HostContract


class TestThisMachine(HostContract):
    @pytest.fixture
    def host(self) -> Host:
        return LocalHost()


@pytest.mark.lab
class TestAlphaBySsh(HostContract):
    @pytest.fixture
    def host(self, lab: Lab) -> Host:
        return site(lab, "alpha")


@pytest.mark.lab
class TestBetaBySsh(HostContract):
    """With a banner and noisy dotfiles."""

    @pytest.fixture
    def host(self, lab: Lab) -> Host:
        return site(lab, "beta")


@pytest.mark.lab
class TestNodeBySrun(HostContract):
    @pytest.fixture
    def host(self, lab: Lab) -> Iterator[Host]:
        with running_job(lab, "beta", "n1") as job:
            yield NodeHost(site(lab, "beta"), NodeName("n1"), job)


@pytest.mark.lab
class TestNodeBySsh(HostContract):
    @pytest.fixture
    def host(self, lab: Lab) -> Iterator[Host]:
        with running_job(lab, "alpha", "n2") as job:
            yield NodeHost(site(lab, "alpha"), NodeName("n2"), job, "ssh")
