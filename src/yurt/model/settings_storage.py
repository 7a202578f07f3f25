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
