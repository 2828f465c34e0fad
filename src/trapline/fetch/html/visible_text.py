"""The text of an HTML page that a reader sees, and its title. For exports; the crawl itself compares prose.py's fingerprints.

One pass over the decoded page, no tree: the time is linear in its length, whatever the markup (docs/decisions/045). Left out are
comments, tags, scripts, styles, templates and other elements whose content a browser does not show as text. Elements that CSS or a
script hides are not left out, because neither is run. Each block of text (paragraph, list item, table row) is one line.
"""

import re
from html import unescape
from typing import NamedTuple

from trapline.fetch.html.markup import ATTRIBUTES

# Elements that begin and end a line: those that browsers display as blocks, and br.
_BLOCK_NAMES = (
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav ol "
    "optgroup option p pre search section select summary table tbody textarea tfoot thead title tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_CELLS = frozenset(("td", "th"))
# Elements whose content is not shown. In SVG, `title` is a tooltip, and style and script are the same as in HTML.
_UNSEEN = frozenset(("script", "style", "title", "textarea", "iframe", "noembed", "noframes", "template"))
_MARKUP = re.compile(
    r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))"  # a comment
    r"|(/?)([a-zA-Z][^ \t\n\f\r/>]*+)" + ATTRIBUTES + r"(?:>|\Z)"  # a tag
    r"|[!/?][^>]*+(?:>|\Z))",  # a doctype, a processing instruction, or what looks like one
    re.DOTALL,
)
_ENDS = {name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE) for name in _UNSEEN}
_TEMPLATE = re.compile(r"<(/?)template(?=[ \t\n\f\r/>])", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\n\f\r\v\x85\u2028\u2029]+")
_LONG_REFERENCE = re.compile(r"&#[0-9]{20,}+;?")  # Python refuses to parse thousands of digits


class VisibleText(NamedTuple):
    title: str  # in one line; "": none
    text: str  # lines separated by newlines, none of them empty


def visible_text(html: str) -> VisibleText:
    """
    >>> visible_text("<title>A &amp; B</title><p>one <b>wo</b>rd<p>two<script>x</script><table><tr><td>1<td>2")
    VisibleText(title='A & B', text='one word\\ntwo\\n1 2')
    """
    return _read(html, until_title=False)


def title_of(html: str) -> str:
    """Return the title of a page, without reading what follows it.

    >>> title_of("<title>A &amp; B</title><p>one")
    'A & B'
    """
    return _read(html, until_title=True).title


def _read(html: str, until_title: bool) -> VisibleText:
    title, in_svg = "", False
    pieces: list[str] = []
    at = 0
    while (markup := _MARKUP.search(html, at)) is not None:
        pieces.append(_characters(html[at : markup.start()]))
        at = markup.end()
        name = markup[2].lower() if markup[2] else ""
        if name in _BLOCKS:
            pieces.append("\n")
        elif name in _CELLS:
            pieces.append(" ")
        is_empty = html[at - 2 : at] == "/>" and (in_svg or name == "svg")  # in HTML, the slash has no meaning
        if name == "svg":
            in_svg = not markup[1] and not is_empty
        elif name in _UNSEEN and not markup[1] and not is_empty:
            end = _behind_unseen(html, at, name)
            if name == "title" and not title:
                title = one_line(_characters(html[at:end]))
                if title and until_title:
                    return VisibleText(title, "")
            at = end
    pieces.append(_characters(html[at:]))
    lines = (_BLANKS.sub(" ", line).strip(" ") for line in "".join(pieces).split("\n"))
    return VisibleText(title, "\n".join(filter(None, lines)))


def one_line(text: str) -> str:
    """
    >>> one_line(" two\\n words ")
    'two words'
    """
    return _BLANKS.sub(" ", text).strip(" ")


def _behind_unseen(html: str, at: int, name: str) -> int:
    """Return where the content of an element ends, at its end tag or at the end of the page."""
    if name != "template":
        end = _ENDS[name].search(html, at)
        return end.start() if end else len(html)
    depth = 1
    for tag in _TEMPLATE.finditer(html, at):  # templates may contain templates
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.start()
    return len(html)


def _characters(text: str) -> str:
    """Return source text as characters: line breaks of the source are blanks, and character references are replaced."""
    text = text.replace("\0", "").replace("\n", " ").replace("\r", " ")
    if "&" in text:
        text = unescape(_LONG_REFERENCE.sub("\ufffd", text)).replace("\0", "")
    return text
