"""Cho and Garcia-Molina: parallel crawlers. `plan.py` lists the experiments, which have one module each."""
