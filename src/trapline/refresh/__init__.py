"""What to fetch again, and when: policies as compiled functions, and a replayer of update traces that compares them. Laws:
docs/refresh.md."""

from trapline.refresh.policy import Policy, rule
from trapline.refresh.registry import all_policies, policy_named
from trapline.refresh.replay import Freshness, replay
from trapline.refresh.summary import Estimate, estimate
from trapline.refresh.trace import Trace, in_steps, trace_of_pages
from trapline.refresh.trace_drawn import drawn_trace
from trapline.refresh.trace_files import load_trace
from trapline.refresh.world import Conditions, World, draw_world

__all__ = [
    "Conditions",
    "Estimate",
    "Freshness",
    "Policy",
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
    "trace_of_pages",
]
