"""Site profiles: what is publicly known about well-known clusters, from one file for each site.

Reading them costs a few milliseconds for each file, so only commands that set up or check a context do it.
"""

from __future__ import annotations

from yurt.contexts.profiles.find import Known, every, named, of, of_facts

__all__ = ["Known", "every", "named", "of", "of_facts"]
