"""Refresh policies, one file each; refresh/policy.py finds them. Files without POLICY have functions that several policies share."""
