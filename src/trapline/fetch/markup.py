"""HTML as tags: those that can lead somewhere, in the order of the source, and their attributes.

Step 6 of the way of a URL, its lower half; what the tags mean is page.py's. It is the tokenizer of the HTML standard and
not its tree: a tree costs time and memory that grow with the square of the nesting, and links do not depend on it
(docs/decisions/017). One pass over the text finds all tags, whatever the text.

Not seen, as in a browser whose scripts are off: what is in comments, scripts, styles, title, textarea, iframe, noembed,
noframes, xmp, template, and behind plaintext. Seen: noscript. Differs from a browser, which builds the tree: links beside
framesets and frames outside them are seen, and title, style and plaintext inside svg or math are taken for HTML's own.

The patterns are possessive throughout (`*+`, `++`): what they took they never give back, which is what keeps them linear.
Each turn of a loop is recognised by its first character, so that none is begun in vain.
"""

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5

_SPACE = r"[ \t\n\f\r]"
_END = r"(?=[ \t\n\f\r/>])"  # behind a tag's name
_VALUE = r"""[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|(?!["'])([^ \t\n\f\r>]*+))"""
_ATTRIBUTE = r"([^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)(?:" + _VALUE + r")?"
_UNNAMED = re.sub(r"(?<!\\)\((?!\?)", "(?:", _ATTRIBUTE)  # the same without groups
_USUAL = _SPACE + r'++[a-zA-Z-]++="[^"]*+"'  # the same as most are written: one turn of the loop, not two
ATTRIBUTES = r"(?:" + _USUAL + r"|[ \t\n\f\r/]++|" + _UNNAMED + r")*+"  # of a tag, to its `>` or the end of all

_ATTRIBUTE_OF = re.compile(_ATTRIBUTE)


def any_case(name: str) -> str:
    """A pattern for a name in capitals or not; several times faster than the flag that says so for all of a pattern.

    >>> any_case("h1")
    '[hH]1'
    """
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in name)


def _element(name: str, content: str = "") -> str:
    """A start tag that is not looked at, and behind it text up to the element's end tag."""
    return any_case(name) + _END + ATTRIBUTES + r">(?:[^<]++|" + content + r"<(?!/" + any_case(name) + _END + r"))*+"


def _script() -> str:
    """In a script, its end tag does not count between `<!-- <script` and `</script`."""
    script = any_case("script")
    more = r"[^-<]++|-(?!->)|"
    go_on = r"<(?!/" + script + _END + r")"
    twice_hidden = r"<" + script + _END + r"(?:" + more + go_on + r")*+(?:</" + script + r")?"
    hidden = r"<!--(?!-?>)(?:" + more + twice_hidden + r"|" + go_on + r")*+"
    return _element("script", hidden + r"|")


def _any_of(*patterns: str) -> str:
    return r"(?:" + r"|".join(patterns) + r")"


_LEADING = r"|".join(map(any_case, ("a", "link", "meta", "area", "base", "frame", "template")))
_TEXT_ONLY = ("style", "title", "textarea", "noframes", "noembed", "xmp")
_NAMED = _any_of(
    # Groups 2 and 3: name and attributes of a tag that may lead somewhere.
    r"(" + _LEADING + r")" + _END + r"(" + ATTRIBUTES + r")>",
    _script(),
    *map(_element, _TEXT_ONLY),
    # Group 4: the attributes of an iframe.
    _element("iframe").replace(ATTRIBUTES, r"(" + ATTRIBUTES + r")"),
    any_case("plaintext") + _END + r"(?s:.)*+",
)
# A tag that may be passed over, if it has attributes, or a name with `<` in it: they may hold what looks like a tag.
_PASSED_OVER = r"[a-zA-Z][^ \t\n\f\r/><]*+(?:(?=[ \t\n\f\r/])|<[^ \t\n\f\r/>]*+)" + ATTRIBUTES
_TAG = re.compile(
    r"<"
    + _any_of(
        # Group 1: the end of a template.
        r"/" + _any_of(r"(" + any_case("template") + r")" + _END, _PASSED_OVER, r"[^a-zA-Z>][^>]*+"),
        r"(?=[abfilmnpstxABFILMNPSTX])" + _NAMED,
        _PASSED_OVER,
        r"!--(?:-?>|(?:[^-]++|-(?!-!?>))*+)",  # a comment
        r"[!?][^>]*+",  # a doctype; anything else is a comment to HTML
    )
)

_REFERENCE = re.compile(r"&(?:#(?:[0-9]+|[xX][0-9a-fA-F]+);?|[a-zA-Z][a-zA-Z0-9]*+(?:;|(?!=)))")
_MOST_DIGITS = 100  # of a number that stands for a character; Python refuses to read thousands


def tags(html: str) -> Iterator[tuple[str, str]]:
    """Name, in lower case, and attributes, as they stand, of each a, area, base, frame, iframe, link and meta.

    >>> list(tags("<p title='<a>'><A href=x>y</A><!-- <a> --><script>'<a>'</script><iframe src=z><a></iframe>"))
    [('a', ' href=x'), ('iframe', ' src=z')]
    """
    templates = 0
    for end, name, attributes, of_iframe in _TAG.findall(html):
        if name == "a" and not templates:
            yield name, attributes
        elif end:
            templates = max(0, templates - 1)
        elif name:
            name = name.lower()
            if name == "template":
                templates += 1
            elif not templates:
                yield name, attributes
        elif of_iframe and not templates:
            yield "iframe", of_iframe


def values(attributes: str) -> dict[str, str]:
    """Attributes by name, in lower case; of two of one name the first. Values as they stand.

    >>> values(" HREF = 'a ' rel=nofollow href=c")
    {'href': 'a ', 'rel': 'nofollow'}
    """
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE_OF.findall(attributes):
        found.setdefault(name.lower(), double or single or bare)
    return found


def text(value: str) -> str:
    """A value as it is meant: character references replaced, white space at its ends gone.

    >>> text(" /a?b=1&amp;copy=2&lang=&eacute; ")
    '/a?b=1&copy=2&lang=é'
    """
    if "&" in value:
        value = _REFERENCE.sub(_character, value)
    return value.replace("\0", "\ufffd").strip(" \t\n\f\r")


def _character(reference: re.Match[str]) -> str:
    """In an attribute a name counts only if it is whole: `&copy=2` and `&copyx` are no signs of copyright."""
    name = reference[0]
    if name[1] != "#":
        return html5.get(name[1:], name)
    return unescape(name) if len(name) < _MOST_DIGITS else "\ufffd"
