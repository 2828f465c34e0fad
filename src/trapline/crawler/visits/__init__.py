"""Visits: what one requests over its connection, out-of-band visits, requests besides pages, and the verdict on each answer."""
