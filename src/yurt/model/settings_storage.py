"""The rows of the settings table about storage tiers. Pure and cheap to import."""

from __future__ import annotations

from yurt.model.settings_row import Row

STORAGE = (
    Row(
        key="tiers",
        form="mapping",
        site=True,
        example="{data: /data/me}",
        about="Storage tiers of your own, or other folders for those that the probe found: the name and the folder of"
        " each. `yurt storage` shows them.",
    ),
    Row(
        key="tier_purge",
        form="mapping",
        site=True,
        example="{scratch: 30d}",
        about="After how many days the site deletes the files of a tier, if its profile does not say so.",
    ),
    Row(
        key="tier_quota",
        form="mapping",
        site=True,
        example="{scratch: 1T 500000 files}",
        about="Your quota on a tier, in bytes, in files or in both, if the site does not report it.",
    ),
    Row(
        key="storage_report",
        site=True,
        example="diskusage_report",
        about="A command of the site that prints your use and quotas; `yurt storage` runs it on the login node and"
        " shows its output.",
        effect="runs on the login node with `yurt storage`",
    ),
)

OUTPUT = (
    Row(
        option="output_size",
        cli="--output-size SIZE",
        key="output_size",
        example="20G 1000 files",
        help="What the run will write, for a warning if it may not fit: 20G, `20G 1000 files`.",
        about="What a run will write, in bytes, in files or in both; of a sweep, each task. yurt warns if that may not"
        " fit into the storage tier of the run. Without it, what earlier runs of the same command wrote counts.",
    ),
)
