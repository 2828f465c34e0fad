"""Castillo and others: crawl orders of the 2004 paper and of chapter 4 of the thesis. `plan.py` lists the experiments."""
