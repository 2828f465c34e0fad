"""Refresh policies: one file each, found by folder (registry.py). Files without POLICY hold what several of them share."""
