"""The defaults of crawls, live and simulated: of `trapline crawl`, `simulate` and `compare`, and of the settings of Python programs.

They are the same everywhere, so that a comparison is about the crawl that the user will run. This module imports nothing, because
`--help` reads it. docs/simulator.md lists the values of the papers; `reproduce` sets those itself.
"""

STRATEGY = "crawl-ability"
# The better one of the sources that a live crawl has without a file of the user: docs/decisions/064
QUALITY = "opic-by-directory"
CONNECTIONS = 100  # r; cao fig. 4: no gain past 96
DELAY_S = 15.0  # w; castillo04: under 15 s is impolite
# k, and the pause between two pages of a visit: what a reader with a browser requests from a site before leaving it
PER_CONNECTION, PAUSE_S = 10, 1.0
TRIED_PER_CONNECTION = (PER_CONNECTION, 1, 100)  # by `trapline recommend`
CONFIRMING_DRAWS = 20  # of servers and failures, by `trapline recommend`: the search has not seen them
PAGES_PER_SITE = 25_000  # castillo04, against traps

# One connection, one page per visit, and a quality that is known before the crawl: most experiments of the papers, and the defaults
# of `parallel simulate`. The names are those of the options.
OF_PAPERS = {
    "connections": 1,
    "per_connection": 1,
    "pause": 0.0,
    "max_pages_per_site": 0,
    "quality": "pagerank",
    "robots": False,
}


def pause_s(delay_s: float) -> float:
    """Return the default pause between two pages of a visit.

    >>> pause_s(15.0), pause_s(0.2)
    (1.0, 0.2)
    """
    return min(PAUSE_S, delay_s)
