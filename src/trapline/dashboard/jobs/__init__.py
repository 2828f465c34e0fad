"""Answers that need compiled code and much time: each is a process of its own, which writes JSON to its standard output.

    python -m trapline.dashboard.jobs.explain_url FOLDER URL
    python -m trapline.dashboard.jobs.quality_curve FOLDER
    python -m trapline.dashboard.jobs.refresh_view FOLDER

The server itself imports no compiled code. One job runs at a time, behind the crawl in priority, and its answer is kept for a while.
"""
