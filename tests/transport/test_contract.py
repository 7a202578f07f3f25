"""Every kind of host passes the same contract suite."""

from __future__ import annotations

import pytest

from tests.transport.conftest import site
from yurt.lab import Lab
from yurt.testing.hosts import HostContract
from yurt.transport.base import Host
from yurt.transport.local import LocalHost


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
