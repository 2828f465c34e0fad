"""The table `text`: title and text of each HTML page and plain text file."""

from collections.abc import Iterator

from trapline.export.archived_pages import ArchivedPage, archived_pages
from trapline.export.database_tables import moment
from trapline.export.source import ExportSource, Row
from trapline.fetch.html.encoding import decode, encoding_of
from trapline.fetch.html.markup import BYTES_OF_A_PAGE
from trapline.fetch.html.page import is_html
from trapline.fetch.html.visible_text import VisibleText, visible_text
from trapline.fetch.http.content import decoded
from trapline.fetch.http.headers import content_type

_PLAIN = "text/plain"


def text(source: ExportSource) -> Iterator[Row]:
    for page in archived_pages(source, "fetches, for their text"):
        found = _text_of(page, source.options.limits.expanded_bytes)
        if found is not None:
            yield page.id, page.url, moment(page.started), found.title or None, found.text


def _text_of(page: ArchivedPage, expanded_bytes: int) -> VisibleText | None:
    """Return the text of a page, or None if it is neither HTML nor plain text, or cannot be read."""
    response, verdict = page.response, page.verdict
    if response is None or verdict is None or verdict.error or not 200 <= response.status < 300:
        return None
    mime, charset = content_type(response.headers.get(b"content-type", b""))
    if is_html(mime, verdict.body):
        body = verdict.body[:BYTES_OF_A_PAGE]
        return visible_text(decode(body, encoding_of(body, charset)).lstrip("\ufeff"))
    if mime != _PLAIN:
        return None
    body_or_error = decoded(response.body, response.codings, expanded_bytes) if response.codings else response.body
    if isinstance(body_or_error, str):
        return None
    plain = decode(body_or_error, encoding_of(body_or_error, charset)).lstrip("\ufeff")
    return VisibleText("", plain.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n"))
