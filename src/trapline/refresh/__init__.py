"""Refresh: it decides which fetched pages to fetch again, and when.

policies/ has the refresh policies as compiled functions, live/ the refresher of a live crawl, replay/ the replayer of update
traces that compares policies. Laws: docs/refresh.md.
"""

from typing import TYPE_CHECKING

from trapline.lazy_names import lazy_names

if TYPE_CHECKING:
    from trapline.confidence import Estimate, estimate
    from trapline.refresh.live.memory import RefreshRules
    from trapline.refresh.live.refresher import Choice, Refresher
    from trapline.refresh.policy import Policy, all_policies, policy_named, rule
    from trapline.refresh.replay.replay_world import ReplayConditions, ReplayWorld, draw_world
    from trapline.refresh.replay.replayer import ReplayFreshness, replay_world
    from trapline.refresh.replay.trace import Trace, drawn_trace, in_steps, load_trace, stretches, trace_of_pages
    from trapline.refresh.replay.truth import Measure

__all__ = [
    "Choice",
    "Estimate",
    "Measure",
    "Policy",
    "RefreshRules",
    "Refresher",
    "ReplayConditions",
    "ReplayFreshness",
    "ReplayWorld",
    "Trace",
    "all_policies",
    "draw_world",
    "drawn_trace",
    "estimate",
    "in_steps",
    "load_trace",
    "policy_named",
    "replay_world",
    "rule",
    "stretches",
    "trace_of_pages",
]

# A live crawl needs no replayer, and a replayer no live refresher.
__getattr__ = lazy_names(
    __name__,
    {
        "trapline.confidence": ("Estimate", "estimate"),
        "trapline.refresh.live.memory": ("RefreshRules",),
        "trapline.refresh.live.refresher": (
            "Choice",
            "Refresher",
        ),
        "trapline.refresh.policy": (
            "Policy",
            "all_policies",
            "policy_named",
            "rule",
        ),
        "trapline.refresh.replay.replay_world": (
            "ReplayConditions",
            "ReplayWorld",
            "draw_world",
        ),
        "trapline.refresh.replay.replayer": (
            "ReplayFreshness",
            "replay_world",
        ),
        "trapline.refresh.replay.trace": (
            "Trace",
            "drawn_trace",
            "in_steps",
            "load_trace",
            "stretches",
            "trace_of_pages",
        ),
        "trapline.refresh.replay.truth": ("Measure",),
    },
)
