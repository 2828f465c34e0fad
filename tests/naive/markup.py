"""HTML as tags, by one regular expression: the slow twin of fetch/tags/kernels.py.

The patterns are possessive throughout (`*+`, `++`): what they took they never give back, which is what keeps them linear.
Each turn of a loop is recognised by its first character, so that none is begun in vain.
"""

import re
from collections.abc import Iterator

_SPACE = r"[ \t\n\f\r]"
_END = r"(?=[ \t\n\f\r/>])"  # behind a tag's name
_VALUE = r"""[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|(?!["'])([^ \t\n\f\r>]*+))"""
_ATTRIBUTE = r"([^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)(?:" + _VALUE + r")?"
_UNNAMED = re.sub(r"(?<!\\)\((?!\?)", "(?:", _ATTRIBUTE)  # the same without groups
_USUAL = _SPACE + r'++[a-zA-Z-]++="[^"]*+"'  # the same as most are written: one turn of the loop, not two
ATTRIBUTES = r"(?:" + _USUAL + r"|[ \t\n\f\r/]++|" + _UNNAMED + r")*+"  # of a tag, to its `>` or the end of all


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
