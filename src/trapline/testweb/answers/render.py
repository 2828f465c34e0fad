"""Body of a page: HTML with its links, and filler text that makes it as large as the graph says.

The body is a pure function of the web, the page and, if the web changes, the time: no socket, no clock, no cache. A page
whose links alone are larger than its size is as large as its links. Sizes above MOST_BYTES are cut to it. A page of a
changing web shows its edition: the number of its version and a sentence that depends on it. With noise, invisible parts
of the page differ too, from one time to another.
"""

from functools import cache
from typing import TYPE_CHECKING

from trapline.testweb.answers import noise
from trapline.testweb.answers.published import markup
from trapline.testweb.answers.redirects import hrefs
from trapline.testweb.web.behaviour import draw

if TYPE_CHECKING:
    from trapline.testweb.web.served_web import ServedWeb

MOST_BYTES = 64_000_000

_WORDS = """
    a bee walks its route again each morning the best flowers first every one visited anew when it has refilled
    and no two of them at once for the meadow is wide but light is short so it learns which hedge to pass which
    stone to turn at and how long a blossom rests before there is nectar to be found
"""
_TEXT_BYTES = 1 << 16
_LONGEST_SENTENCE = 200  # bytes; a sentence has at most 17 words, and even the longest words fit


def render(web: "ServedWeb", page: int, now: float = 0.0) -> bytes:
    """Return the body of a page at the time `now`, in seconds since 1970."""
    title = f"Page {page} of {web.names[web.site[page]]}"
    head = f'<!DOCTYPE html>\n<meta charset="utf-8"><title>{title}</title>\n'
    links = _links(web, web.links(page, now), web.site[page])
    if web.changes is None:
        return _filled(web, page, f"{head}{links}<p>\n".encode())
    noisy = web.changes.noise
    above, below = (noise.above(web, page, now), noise.below(web, page, now)) if noisy else ("", "")
    return _filled(
        web, page, f"{head}{markup(web, page)}{above}{links}{_edition(web, page, now)}<p>\n".encode(), below.encode()
    )


def _filled(web: "ServedWeb", page: int, begin: bytes, end: bytes = b"") -> bytes:
    missing = min(web.sizes[page], MOST_BYTES) - len(begin) - len(end)
    return begin + (_filler(missing, draw(web.seed, "text", page)) if missing > 0 else b"") + end


def _edition(web: "ServedWeb", page: int, now: float) -> str:
    """Return the paragraph that distinguishes this version of a page from all others."""
    version = web.version(page, now)
    start = _sentence(draw(web.seed, f"edition {version}", page))
    sentence = _text()[start : start + _LONGEST_SENTENCE].partition(b"\n")[0]
    return f"<p>Edition {version}: {sentence.decode()}</p>\n"


def _links(web: "ServedWeb", targets: list[int], own: int) -> str:
    if not targets:
        return ""
    links = _redirecting_links if web.redirecting else _direct_links
    # The ampersand is the only character of a canonical URL that must be escaped in HTML.
    return links(web, targets, own).replace("&", "&amp;")


def _direct_links(web: "ServedWeb", targets: list[int], own: int) -> str:
    """Return the links that `redirects.href` gives, for all links of a page at once."""
    site, origins, paths = web.site, web.origins, web.paths.all
    return "".join(
        [
            f'<a href="{paths[target]}">{target}</a>\n'
            if (there := site[target]) == own and paths[target][:2] != "//"
            else f'<a href="{origins[there]}{paths[target]}">{target}</a>\n'
            for target in targets
        ]
    )


def _redirecting_links(web: "ServedWeb", targets: list[int], own: int) -> str:
    return "".join(f'<a href="{link}">{target}</a>\n' for target in targets for link in hrefs(web, target, own))


def _filler(size: int, drawn: float) -> bytes:
    text, start = _text(), _sentence(drawn)
    if size <= len(text) - start:
        return text[start : start + size]
    return (text[start:] + text * (size // len(text) + 1))[:size]


def _sentence(drawn: float) -> int:
    """Return the position in the text at which a drawn sentence begins."""
    text = _text()
    return text.index(b"\n", int(drawn * (len(text) - 1))) + 1


@cache
def _text() -> bytes:
    """Return sentences of these words, one a line. No character of them is special in HTML."""
    known, lines = _WORDS.split(), list[str]()
    size, number = 0, 0
    while size < _TEXT_BYTES:
        count = 6 + int(12 * draw(0, "sentence", number))
        words = [known[int(draw(number, "word", place) * len(known))] for place in range(count)]
        lines.append(" ".join(words).capitalize() + ".\n")
        size, number = size + len(lines[-1]), number + 1
    return "".join(lines).encode()
