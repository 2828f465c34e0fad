"""The conditions of most experiments of the papers, as options. Tests of orders and times state them, so that numbers can be checked by
hand. An option that a test gives after these replaces the value here."""

PAPERS = (
    "--connections", "1", "--per-connection", "1", "--pause", "0", "--max-pages-per-site", "0", "--quality", "pagerank", "--no-robots",
)  # fmt: skip
