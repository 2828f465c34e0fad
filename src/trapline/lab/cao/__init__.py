"""Cao, Jiang and Singh: two-level crawl scheduling by performance and quality. `plan.py` lists the experiments."""
