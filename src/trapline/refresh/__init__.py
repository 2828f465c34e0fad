"""What to fetch again, and when: policies as compiled functions, a refresher that a crawl asks, and a replayer of update traces that
compares them. Laws: docs/refresh.md."""

from trapline.refresh.policy import Policy, rule
from trapline.refresh.refresh_rules import RefreshRules
from trapline.refresh.refresher import Choice, Refresher
from trapline.refresh.registry import all_policies, policy_named
from trapline.refresh.replay import Freshness, replay
from trapline.refresh.summary import Estimate, estimate
from trapline.refresh.trace import Trace, in_steps, stretches, trace_of_pages
from trapline.refresh.trace_drawn import drawn_trace
from trapline.refresh.trace_files import load_trace
from trapline.refresh.truth import Measure
from trapline.refresh.world import Conditions, World, draw_world

__all__ = [
    "Choice",
    "Conditions",
    "Estimate",
    "Freshness",
    "Measure",
    "Policy",
    "RefreshRules",
    "Refresher",
    "Trace",
    "World",
    "all_policies",
    "draw_world",
    "drawn_trace",
    "estimate",
    "in_steps",
    "load_trace",
    "policy_named",
    "replay",
    "rule",
    "stretches",
    "trace_of_pages",
]
