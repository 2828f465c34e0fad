"""Signals from content providers to a crawler: pings, feeds, sitemaps, schedules and access logs."""
