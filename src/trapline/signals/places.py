"""Where a published URL stands, and whether who published it may speak for it.

Shared by the readers of what providers publish. A provider speaks for its own host alone: whose pages are at http and at https, or at
a port of its own, is told by the text of the URL. What else is a page's is not known here.
"""

from trapline.fetch.urls import MOST_TEXT, canonical, origin, plain


def host_of(url: str) -> str:
    """Host and port of a canonical URL, without its scheme.

    >>> host_of("https://example.org:8443/a"), host_of("http://example.org/")
    ('example.org:8443', 'example.org')
    """
    return origin(url).partition("://")[2]


def folder_of(url: str) -> str:
    """The path of a canonical URL up to its last slash, its host before it.

    >>> folder_of("http://a.org/x/sitemap.xml?of=/y/")
    'a.org/x/'
    """
    path = url.partition("?")[0]
    return path[: path.rfind("/") + 1].partition("://")[2]


class Resolver:
    """URLs as they stand in one file, made canonical. Most are absolute and of the file's own site; those take a third of the time."""

    def __init__(self, base: str) -> None:
        self.base = canonical(base) or ""
        self._origin = origin(self.base)
        self._site = self._origin + "/"
        self._length = len(self._origin)

    def __call__(self, text: str) -> str | None:
        """None: it leads to no page of http or https.

        >>> Resolver("http://a.org/feeds/1.xml")("http://a.org/x#top"), Resolver("http://a.org/feeds/1.xml")("2")
        ('http://a.org/x', 'http://a.org/feeds/2')
        """
        if text.startswith(self._site) and len(text) <= MOST_TEXT:
            quick = plain(text[self._length :], self._origin, "/")
            if quick is not None:
                return quick
        return canonical(text, self.base) if self.base else None
