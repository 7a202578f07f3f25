"""A user's own profile for a cluster of the lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contexts.test_sites import Newcomer
from yurt.lab import Lab

pytestmark = pytest.mark.lab

PROFILE = """\
name: campus
title: Campus cluster
documentation: https://docs.campus.example/
sources:
  - {url: "https://docs.campus.example/storage", read: 2026-03-04}
clusters: [alpha]
storage: {scratch: {variable: SCRATCH, purge: {days: 30, rule: files not accessed}}}
internet: true
jobs: {from_home: false}
context:
  partition: gone
  storage_dir: $PROJECT
  time: 30m
"""


@pytest.fixture
def laptop(tmp_path: Path, lab: Lab) -> Iterator[Newcomer]:
    with Newcomer(tmp_path / "laptop", lab) as found:
        sites = tmp_path / "laptop" / "config" / "sites"
        sites.mkdir(parents=True)
        (sites / "campus.yaml").write_text(PROFILE)
        yield found


def test_add_recognises_alpha(laptop: Newcomer) -> None:
    """By its ClusterName. The profile sets what the user and the probe do not; the probe takes precedence."""
    added = laptop.add("alpha")
    assert added.code == 0, added.err
    said = [" ".join(line.split()) for line in added.out.splitlines()]
    assert f"profile campus: Campus cluster, from {laptop.home}/config/sites/campus.yaml" in said
    assert {"sets storage_dir: $PROJECT", "sets time: 30m", "internet compute nodes have access"} <= {*said}
    assert "purge scratch: files not accessed for 30 days are deleted" in said
    precedence = "(found by the probe, which takes precedence)"
    assert f"differs partition is not set: the site has no partition 'gone' {precedence}" in said
    assert f"differs the site accepts jobs submitted from the home folder {precedence}" in said
    assert "source https://docs.campus.example/storage (read 2026-03-04)" in said
    keys = laptop.quick("context", "show", "alpha", "--json").json["data"]
    assert (keys["keys"]["partition"], keys["keys"]["storage_dir"], keys["keys"]["time"], keys["keys"]["profile"]) == (
        *("main", "$PROJECT", "30m", "campus"),
    )
    assert keys["purges"] == ["scratch: files not accessed for 30 days are deleted"]
