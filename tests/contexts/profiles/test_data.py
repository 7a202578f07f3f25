"""The profiles that come with yurt: their form, and the hosts that they match."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from yurt.config import yaml_text
from yurt.contexts import profiles
from yurt.contexts.add import complete
from yurt.contexts.profiles import files, find
from yurt.model.context import Context
from yurt.model.context_effects import EFFECTS
from yurt.model.facts import Facts, Partition
from yurt.model.profile import SAFE_KEYS

FILES = sorted((Path(find.__file__).parent / "data").glob("*.yaml"))

HOSTS = {
    "login.server.mila.quebec": "mila",
    "login-3.login.server.mila.quebec": "mila",
    "narval.alliancecan.ca": "narval",
    "Narval.AllianceCan.ca.": "narval",
    "narval3.narval.calcul.quebec": "narval",
    "rorqual.alliancecan.ca": "rorqual",
    "beluga.computecanada.ca": "rorqual",
    "beluga4.beluga.calcul.quebec": "rorqual",
    "fir.alliancecan.ca": "fir",
    "cedar.computecanada.ca": "fir",
    "cdr767.int.cedar.computecanada.ca": "fir",
    "nibi.alliancecan.ca": "nibi",
    "graham.computecanada.ca": "nibi",
    "trillium-gpu.alliancecan.ca": "trillium",
    "niagara.scinet.utoronto.ca": "trillium",
    "lumi.csc.fi": "lumi",
    "lumi-uan02.csc.fi": "lumi",
    "stampede3.tacc.utexas.edu": "tacc",
    "login2.ls6.tacc.utexas.edu": "tacc",
    "login.sherlock.stanford.edu": "sherlock",
    "login.torch.hpc.nyu.edu": "nyu-torch",
    "clariden.alps.cscs.ch": "cscs-alps",
    "example.com": None,
    "login.big.example": None,
    "narval.alliancecan.ca.evil.example": None,
    "evil-narval.alliancecan.ca": None,
    "puhti.csc.fi": None,
    "": None,
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_form(file: Path) -> None:
    profile = find.read(file).profile
    assert profile.name == file.stem
    assert datetime.date(2020, 1, 1) < profile.read < datetime.date(2100, 1, 1)
    own = yaml_text.parse(file.read_text())["sources"]
    assert own and all(each["url"].startswith("https://") and each["read"] for each in own)
    assert profile.hosts or profile.marks, "nothing recognises the site"
    assert not [glob for glob in profile.hosts if files.greedy(glob) or profile.has_host("example.com")]
    assert all(isinstance(area.purge.days, int) for area in profile.storage.values() if area.purge is not None)


def test_no_two_profiles_match_a_host() -> None:
    known, warnings = profiles.every()
    assert warnings == [] and len(known) == len(FILES)
    examples = {glob.replace("*", "login1").replace("?", "1") for each in known for glob in each.profile.hosts}
    for host in examples | {host for host, name in HOSTS.items() if name}:
        assert len([each for each in known if each.profile.has_host(host)]) == 1, host


@pytest.mark.parametrize(("host", "name"), HOSTS.items())
def test_hosts(host: str, name: str | None) -> None:
    found = profiles.of(host)
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"host": "narval2", "cluster": "narval", "marks": {"CC_CLUSTER": "narval"}}, "narval"),
        ({"host": "l1", "cluster": "new", "marks": {"CC_CLUSTER": "new"}}, "alliance"),
        ({"host": "l1", "cluster": "narval"}, None),
        ({"host": "hpc-login-001", "cluster": "hpc", "marks": {"slurm_gcp": "yes"}}, "google-cluster-toolkit"),
        ({"host": "lumi-uan01.csc.fi", "cluster": "lumi"}, "lumi"),
        ({"host": "login", "cluster": "alpha"}, None),
    ],
)
def test_facts(facts: dict[str, object], name: str | None) -> None:
    found = profiles.of_facts("my-alias", Facts(probed_at=0, user="me", **facts))  # type: ignore[arg-type]
    assert (found and found.profile.name) == name


def test_keys_are_safe() -> None:
    """A key that runs or sends something is checked separately, or is not allowed."""
    assert {key for key in SAFE_KEYS if key in EFFECTS} == {"modules_to_load", "wheelhouse"}


def test_old_hosts_have_a_note() -> None:
    found = profiles.of("graham.computecanada.ca")
    assert found is not None and "Graham was retired" in found.notes[0]
    assert list(found.purge_lines()) == [] and found.keys_url == "https://ccdb.alliancecan.ca/ssh_authorized_keys"


def test_the_example_of_the_how_to_is_valid() -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "how-to" / "site-profiles.md"
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    profile = files.parse(example, page, base=find.bundled)
    assert profile.has_host("login.big.example")
    assert list(profile.purge_lines()) == ["scratch: files not accessed for 30 days are deleted"]


def test_a_site_that_chooses_the_partition() -> None:
    """The Alliance asks users not to name one, although Slurm has a default."""
    known = profiles.named("narval")
    assert known is not None and known.profile.jobs.name_partition is False
    facts = Facts(probed_at=0, user="me", host="narval1", partitions=[Partition(name="cpu", default=True)])
    wanted = Context(name="narval", type="slurm", slurm_url="me@narval", account="def-prof")
    assert complete(wanted, facts, partition=False).partition is None
    assert complete(wanted, facts).partition == "cpu"
