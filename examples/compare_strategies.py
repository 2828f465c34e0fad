"""Compares strategies on a graph: python examples/compare_strategies.py GRAPH PAGE.html

GRAPH is a folder or file (docs/graphs.md), or python-docs, a graph that comes with Trapline. Prints a table, and writes charts to the page.
"""

import sys

import trapline

graph, page = sys.argv[1:]
strategies = ["breadth-first", "opic", "larger-sites-first", "crawl-ability"]
comparison = trapline.compare(graph, strategies, delay=[5, 15])
table = comparison.to_pandas()[["crawl", "average_cumulative_pagerank", "seconds_until_50", "simulated_seconds"]]
print(table.sort_values("seconds_until_50").to_string(index=False))
comparison.save(page)
