"""Xu, Li, Qu and Labrinidis: refreshing pages with signals of content providers. `figures.py` has the claims, `plan.py` the runs."""
