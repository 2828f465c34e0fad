"""The quality of a page, guessed from its URL before it is fetched: TRAPLINE_QUALITY in settings.py names this function."""

from urllib.parse import urlsplit


def of_request(request):
    """Prefer pages near the root of their site, and pages without a query."""
    parts = urlsplit(request.url)
    depth = len([segment for segment in parts.path.split("/") if segment])
    return (0.5 if parts.query else 1.0) / (1 + depth)
