"""Laws of generated webs: the properties of every web, and the shape of large ones."""

import hashlib
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.errors import ConfigError
from trapline.graph import WebModel, build, depths, generate, measure, measure_ranks, pagerank
from trapline.graph.evolve import EvolvedUrls
from trapline.graph.exact import power
from trapline.graph.generate import default_max_site_pages, plan_of, scaled, site_sizes
from trapline.graph.generate_kernels import CALENDAR, DENSE_LINKS, FARM
from trapline.graph.graph import fault
from trapline.graph.sites import site_of
from trapline.graph.strings import decoded, encoded, stored

models = st.builds(
    lambda pages, share, seed, shape: WebModel(pages, max(1, int(pages * share)), seed, **shape),
    pages=st.integers(1, 300),
    share=st.floats(0, 1),
    seed=st.integers(-(2**70), 2**70),
    shape=st.fixed_dictionaries(
        {},
        optional={
            "links_per_page": st.floats(1, 40) | st.just(1000.0),
            "inside": st.floats(0, 1),
            "home_links": st.floats(0, 1),
            "dangling": st.floats(0, 0.9),
            "dynamic": st.floats(0, 0.5),
            "deep": st.floats(0, 0.4),
            "size_exponent": st.floats(1.1, 5),
            "degree_exponent": st.floats(1.5, 5),
            "single_sites": st.floats(0, 1),
            "site_contrast": st.floats(0, 1),
            "link_farms": st.floats(0, 0.5),
            "calendars": st.floats(0, 0.5),
        },
    ),
)


@given(models)
@settings(max_examples=examples(60))
def test_every_web_is_valid_and_reachable_from_its_home_pages(model: WebModel) -> None:
    web = build(model)
    assert fault(web) is None
    assert (web.pages, web.sites) == (model.pages, model.sites)
    assert depths(web).min() == 0
    assert np.bincount(web.site, minlength=web.sites).min() >= 1
    for page in range(web.pages):
        targets = web.targets_of(page).tolist()
        assert len(targets) == len(set(targets))


@given(models)
@settings(max_examples=examples(30))
def test_urls_agree_with_the_arrays(model: WebModel) -> None:
    web = build(model)
    assert web.urls is not None and web.site_names is not None
    urls = [web.urls[page] for page in range(web.pages)]
    assert len(set(urls)) == web.pages
    assert [site_of(url) for url in urls] == [web.site_names[site] for site in web.site]
    assert ["?id=" in url for url in urls] == web.dynamic.astype(bool).tolist()
    assert [urls[page] for page in web.home] == [f"{web.site_names[site]}/" for site in range(web.sites)]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 2), st.integers(0, 2**62), st.booleans()), max_size=20), st.data())
def test_urls_made_in_bulk_equal_those_made_one_by_one(
    traits: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    site, number, dynamic = (np.array([trait[part] for trait in traits]) for part in range(3))
    urls = EvolvedUrls(site.astype(np.int32), number.astype(np.int64), dynamic.astype(np.uint8), 2**31 - 1)
    one_by_one = [urls[page] for page in range(len(traits))]
    assert list(decoded(urls)) == list(decoded(stored(urls))) == one_by_one
    pages = data.draw(st.lists(st.sampled_from(range(len(traits))), max_size=20)) if traits else []
    assert list(decoded(urls.at(np.array(pages, np.int32)))) == [one_by_one[page] for page in pages]


@given(models)
def test_encoded_urls_are_in_page_order(model: WebModel) -> None:
    web = build(model)
    assert web.urls is not None
    assert list(encoded(web.urls)) == [web.urls[page].encode() for page in range(web.pages)]


def test_urls_have_the_documented_form() -> None:
    web = generate(500, 3, seed=2)
    assert web.urls is not None
    static, dynamic = web.home[1] + 1, int(np.flatnonzero(web.dynamic)[0])
    number = dynamic - web.home[web.site[dynamic]]
    assert web.urls[web.home[1]] == "http://s000001.example/"
    assert web.urls[static] == "http://s000001.example/p/1"
    assert web.urls[dynamic].endswith(f".example/q?id={number}")


def test_the_same_web_on_every_machine() -> None:
    # Recorded once. The value changes only when the model is changed on purpose; then the changelog must say so.
    web = generate(2_000, 50, seed=1)
    assert web.sizes is not None
    digest = hashlib.sha256(web.offsets.tobytes() + web.targets.tobytes() + web.dynamic.tobytes() + web.sizes.tobytes())
    assert digest.hexdigest()[:16] == "434c3ac67b1bc366"


def test_another_seed_gives_another_web() -> None:
    one, other = generate(500, 10, seed=1), generate(500, 10, seed=2)
    assert not np.array_equal(one.targets, other.targets)


def test_a_large_web_has_the_requested_shape() -> None:
    found = measure(generate(200_000, 3_000, seed=1))
    assert found.links_per_page == pytest.approx(14.3, rel=0.05)
    assert found.intra_site_share == pytest.approx(0.9, abs=0.01)
    assert found.dangling_share == pytest.approx(0.3, abs=0.02)
    assert found.dynamic_share == pytest.approx(0.1, abs=0.02)
    assert 0.2 < found.home_link_share < 0.5
    assert found.size_exponent == pytest.approx(1.8, abs=0.2)
    assert 0.3 < found.single_page_sites_share < 0.5
    assert found.largest_site_share == 0.007
    assert 0.01 < found.deep_share < 0.1
    assert found.depth_max > 15


def test_most_links_go_to_few_pages_as_on_the_recorded_webs() -> None:
    # Recorded webs: median 2-3 links to a page, a tenth of the pages with more than 6-45, a hundredth with more than 30-235.
    found = measure(generate(200_000, 3_000, seed=1))
    assert 2 <= found.in_degree.median <= 4
    assert 6 <= found.in_degree.p90 <= 45
    assert 30 <= found.in_degree.p99 <= 235
    assert found.in_degree.max > 1_000 * found.in_degree.median


def test_links_to_a_page_follow_a_power_law_up_to_the_size_of_the_largest_sites() -> None:
    # The share of pages with at least 2^n links falls by about the same factor with every n.
    web = generate(200_000, 3_000, seed=1)
    links = np.bincount(web.targets, minlength=web.pages)
    shares = [np.mean(links >= 2**n) for n in range(2, 9)]
    assert all(1.5 < more / less < 3 for more, less in pairwise(shares))
    assert 0 < np.mean(links > 1_400) < 2e-4  # the largest sites have 1,400 pages


def test_without_a_low_limit_the_most_linked_pages_follow_a_power_law() -> None:
    found = measure(generate(200_000, 3_000, seed=1, max_site_pages=35_000))
    assert 1.8 < (found.degree_exponent or 0) < 2.9
    assert 0.1 < found.largest_site_share <= 0.175


@given(st.integers(1, 5_000), st.data())
@settings(max_examples=examples(60))
def test_no_site_exceeds_the_limit_and_no_page_is_lost(pages: int, data: st.DataObject) -> None:
    sites = data.draw(st.integers(1, pages))
    limit = data.draw(st.integers(-(-pages // sites), pages) | st.none())
    exponent, single = data.draw(st.floats(1.1, 5)), data.draw(st.floats(0, 1))
    seed = data.draw(st.integers(0, 99))
    model = WebModel(pages, sites, seed, max_site_pages=limit, size_exponent=exponent, single_sites=single)
    sizes = site_sizes(model)
    assert len(sizes) == sites and sizes.sum() == pages
    assert sizes.min() >= 1 and sizes.max() <= (limit or default_max_site_pages(pages, sites))


@given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=50), st.floats(0, 1), st.integers(1, 1_000))
def test_sizes_are_scaled_by_one_factor_up_to_the_limit(tail: list[float], share: float, limit: int) -> None:
    total = int(share * limit * len(tail))
    found = scaled(np.array(tail), total, limit)
    low, high = 0.0, 1e15  # the factor by bisection, as an independent calculation
    for _ in range(400):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(min(middle * one, limit) for one in tail) < total else (low, middle)
    assert found == pytest.approx([min(high * one, limit) for one in tail], rel=1e-6, abs=1e-6 * max(total, 1))
    assert found.sum() == pytest.approx(total)


@pytest.mark.parametrize(
    ("pages", "sites", "limit"),
    [
        (3_500_000, 50_000, 24_500),
        (10_000_000, 100_000, 25_000),
        (100_000, 2_000, 700),
        (50_000, 1_000, 500),  # 10 times the mean
        (9_914, 21, 1_685),  # 17 % of the pages
        (1_000, 10, 300),  # 3 times the mean
        (7, 7, 3),
    ],
)
def test_the_default_limit_of_a_site(pages: int, sites: int, limit: int) -> None:
    assert default_max_site_pages(pages, sites) == limit


def test_pages_of_a_site_are_alike_in_pagerank_as_on_the_recorded_webs() -> None:
    # Recorded webs: .23 to .40; home pages hold .01 to .07.
    alike, different = (generate(50_000, 1_000, seed=1, site_contrast=contrast) for contrast in (0.0, 1.0))
    before, after = (measure_ranks(web, pagerank(web)) for web in (alike, different))
    assert before.locality is not None and after.locality is not None
    assert before.locality < 0.2 and 0.25 < after.locality < 0.45
    assert 0.02 < after.home_share < 0.08


def test_sites_differ_only_if_requested() -> None:
    plan = plan_of(WebModel(20_000, 400, site_contrast=0.0))
    assert (plan.richness == 1).all() and (plan.outward == 1).all() and (plan.fame == 1).all()
    plan = plan_of(WebModel(20_000, 400))
    assert np.log(plan.fame).std() == pytest.approx(1.5, rel=0.1)
    assert np.log(plan.richness).std() == pytest.approx(1.0, rel=0.1)
    assert np.average(plan.fame, weights=np.diff(plan.first)) == pytest.approx(1)


@pytest.mark.parametrize(("name", "kind"), [("link_farms", FARM), ("calendars", CALENDAR)])
def test_farms_and_calendars_have_their_share_of_pages_and_many_links(name: str, kind: int) -> None:
    model = WebModel(20_000, 1_000, seed=3, **{name: 0.1})  # type: ignore[arg-type]
    web, plan = build(model), plan_of(model)
    dense = plan.kind[web.site] == kind
    assert np.mean(dense) == pytest.approx(0.1, abs=0.01)
    assert set(np.unique(plan.kind)) == {0, kind}
    large = dense & (np.bincount(web.site)[web.site] > 100)
    assert np.diff(web.offsets)[large].mean() > 0.7 * DENSE_LINKS
    links = np.bincount(web.targets, minlength=web.pages)
    assert np.median(links[large]) > 0.6 * DENSE_LINKS > 4 * np.median(links[~dense])


def test_pages_of_a_calendar_are_dynamic_and_link_to_near_pages() -> None:
    model = WebModel(5_000, 20, seed=1, calendars=0.3)
    web, plan = build(model), plan_of(model)
    site = int(np.flatnonzero(plan.kind == CALENDAR)[0])
    pages = np.arange(plan.first[site] + 1, plan.first[site + 1])
    assert web.dynamic[pages].all()
    for page in pages.tolist():
        inside = [target for target in web.targets_of(page).tolist() if web.site[target] == site]
        # Links to other sites are drawn by site and may hit the page's own; they then lead to the home page.
        assert all(abs(target - page) <= DENSE_LINKS or target == web.home[site] for target in inside)
        assert page + 1 in inside or page == pages[-1]


@pytest.mark.parametrize(("pages", "sites"), [(8_337, 479), (20_000, 2_000)])
def test_links_within_sites_keep_their_share_where_sites_are_small(pages: int, sites: int) -> None:
    found = measure(generate(pages, sites, seed=1))
    assert found.intra_site_share == pytest.approx(0.9, abs=0.03)


def test_sizes_have_the_quantiles_they_were_fitted_to() -> None:
    sizes = generate(300_000, 30_000, seed=1, size_exponent=3.0).sizes
    assert sizes is not None and sizes.min() >= 1
    logs = np.log(sizes[sizes < 160_000])
    assert np.exp(np.median(logs)) == pytest.approx(5_100, rel=0.05)
    assert np.subtract(*np.quantile(logs, [0.75, 0.25])) / 1.349 == pytest.approx(1.68, rel=0.05)
    over = 0.98 * (1 - NormalDist(np.log(5_100), 1.68).cdf(np.log(1e6))) + 0.02 * 0.16**1.4
    assert np.mean(sizes >= 1e6) == pytest.approx(over, rel=0.15)


@pytest.mark.parametrize("wanted", [2.0, 5.0, 30.0])
def test_the_number_of_links_per_page_is_as_requested(wanted: float) -> None:
    web = generate(50_000, 200, seed=4, links_per_page=wanted)
    assert web.links / web.pages == pytest.approx(wanted, rel=0.05)


def test_sites_share_addresses_on_request() -> None:
    own = generate(1_000, 100, seed=1)
    shared = generate(1_000, 100, seed=1, sites_per_ip=4)
    assert len(set(own.ips.tolist())) == 100
    assert len(set(shared.ips.tolist())) == 25
    assert np.bincount(shared.ips).max() > 4


@given(st.floats(0, 1), st.floats(0, 12))
def test_power_without_pow(base: float, exponent: float) -> None:
    exponent = round(exponent * 2**20) / 2**20
    assert power(np.array([base]), exponent)[0] == pytest.approx(base**exponent, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"pages": 0}, "--pages 0 is out of range"),
        ({"pages": 2**31}, "--pages 2147483648 is out"),
        ({"sites": 0}, "--sites 0 is out"),
        ({"sites": 11}, "--sites 11 is out of range; give a number from 1 to 10, the number of pages"),
        ({"links_per_page": 0.0}, "--links-per-page 0 is out of range; give a number from 1 to 1000"),
        ({"links_per_page": float("nan")}, "--links-per-page nan"),
        ({"inside": 1.1}, "--inside 1.1 is out"),
        ({"dangling": 1.0}, "--dangling 1 is out"),
        ({"dynamic": 0.6, "deep": 0.6}, "--dynamic 0.6 and --deep 0.6 add up to 1.2; give"),
        ({"size_exponent": 1.0}, "--size-exponent 1 is"),
        ({"degree_exponent": 1.2}, "--degree-exponent 1.2 is"),
        ({"single_sites": 1.5}, "--single-sites 1.5 is"),
        ({"sites_per_ip": 0.5}, "--sites-per-ip 0.5 is"),
        ({"max_site_pages": 4}, "--max-site-pages 4 is out of range; give a number from 5"),
        ({"site_contrast": 2.0}, "--site-contrast 2 is"),
        ({"link_farms": 0.6, "calendars": 0.6}, "--link-farms 0.6 and --calendars 0.6 add up to 1.2; give"),
    ],
)
def test_a_value_out_of_range_is_named(values: dict[str, float], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        WebModel(**({"pages": 10, "sites": 2} | values))  # type: ignore[arg-type]
