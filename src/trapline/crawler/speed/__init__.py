"""How fast a crawl is and could be: what its connections do or wait for, its pace, and what other options would change.

crawler/inspect/why_not_faster.py makes a sentence of it.
"""
