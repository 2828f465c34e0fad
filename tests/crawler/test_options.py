"""The options of a crawl are the same when they are read from its database."""

import json
import math
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.errors import ConfigError
from trapline.fetch.limits import Limits

TEXTS = st.lists(st.text(max_size=8), max_size=3).map(tuple)
NUMBERS = st.one_of(st.just(math.inf), st.floats(0.0, 1e12))
OPTIONS = st.builds(
    CrawlOptions,
    seeds=TEXTS,
    page_rank=st.one_of(st.none(), st.just("opic")),
    history=st.one_of(st.none(), st.text(max_size=8)),
    seed=st.integers(0, 2**40),
    rules=st.builds(live_rules, delay_s=st.floats(0.0, 1e6), ip_delay_s=st.one_of(st.none(), st.floats(0.0, 9.0))),
    bandwidth=NUMBERS,
    max_pages=NUMBERS,
    include=TEXTS,
    exclude=TEXTS,
    allow_private=st.booleans(),
    hosts=st.dictionaries(st.text(max_size=5), st.lists(st.text(max_size=5), max_size=2), max_size=2),
    nameservers=TEXTS,
    limits=st.builds(Limits, total_s=st.floats(0.1, 1e4)),
)


@given(OPTIONS)
def test_options_go_to_json_and_back(options: CrawlOptions) -> None:
    again = CrawlOptions.from_json(options.to_json())
    assert again == options and hash(again.seeds) == hash(options.seeds)


def test_a_missing_option_has_its_default() -> None:
    """An option may be newer than the crawl."""
    values = asdict(CrawlOptions(("http://a.org/",)))
    del values["metadata"], values["rules"]["pipelining"]
    assert CrawlOptions.from_json(json.dumps(values)) == CrawlOptions(("http://a.org/",))


@pytest.mark.parametrize("part", ["", "rules", "limits"])
def test_an_unknown_option_is_reported_with_the_nearest_name(part: str) -> None:
    values = asdict(CrawlOptions(()))
    (values[part] if part else values)["bandwith"] = 1
    with pytest.raises(ConfigError, match="bandwith"):
        CrawlOptions.from_json(json.dumps(values))


def test_the_user_agent_names_a_contact() -> None:
    options = CrawlOptions(())
    assert options.whole_user_agent.startswith("trapline/") and " " not in options.whole_user_agent
    assert replace(options, contact="https://a.org/bot").whole_user_agent.endswith(" (+https://a.org/bot)")


def test_live_rules_are_polite_by_default() -> None:
    assert live_rules().delay_s == 15.0 and live_rules(delay_s=0.0).delay_s == 0.0
