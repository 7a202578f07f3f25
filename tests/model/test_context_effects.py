"""Keys of a context that run programs or send files."""

from yurt.model.context import Context
from yurt.model.context_effects import EFFECTS, effects

NO_EFFECT = (
    *("name", "type", "slurm_url", "storage_dir", "scratch_dir", "partition", "account", "qos", "user_id", "resources"),
    *("time", "nodes", "ntasks", "nodelist", "exclude_nodes", "cmd_type", "track", "tags", "env_python", "env_place"),
    "env_cuda",
    *("login_profile", "advice", "exclude", "writable", "registry_url", "profile", "lab"),
    *("dev_workspace", "dev_interval", "dev_compression", "dev_tier", "dev_keep", "dev_limit", "dev_idle"),
    *("dev_idle_release", "home_sync", "race_wait", "tiers", "tier_purge", "tier_quota", "output_size"),
)
"""Keys that only name or limit what a run requests."""


def test_every_key_is_judged() -> None:
    """A new key has an effect in the settings table, or is added to the list above."""
    assert sorted([*EFFECTS, *NO_EFFECT]) == sorted(Context.__struct_fields__)


def test_effects() -> None:
    plain = Context(name="big", type="slurm", slurm_url="me@big", partition="main")
    risky = Context(name="big", type="slurm", slurm_url="me@big", venv="~/v", ssh_options=("-A",))
    assert effects(plain, None) == []
    assert [each.key for each in effects(risky, plain)] == ["ssh_options", "venv"]
    assert effects(risky, risky) == []
    other = Context(name="big", type="slurm", slurm_url="me@big", venv="~/v", ssh_options=("-A", "-X"))
    assert [each.line for each in effects(other, risky)] == [f'big.ssh_options: ["-A","-X"] ({EFFECTS["ssh_options"]})']
    assert effects(Context(name="local", type="local"), None) == []
