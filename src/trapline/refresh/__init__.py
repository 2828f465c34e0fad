"""Refresh: it decides which fetched pages to fetch again, and when.

policies/ has the refresh policies as compiled functions, live/ the refresher of a live crawl, replay/ the replayer of update
traces that compares policies. Laws: docs/refresh.md.
"""

from trapline.refresh.live.memory import RefreshRules
from trapline.refresh.live.refresher import Choice, Refresher
from trapline.refresh.policy import Policy, all_policies, policy_named, rule
from trapline.refresh.replay.replay_world import ReplayConditions, ReplayWorld, draw_world
from trapline.refresh.replay.replayer import Estimate, ReplayFreshness, estimate, replay_world
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
