"""Trapline for Python programs: crawls that hand over their pages as they come. `trapline` itself exports what is here."""
