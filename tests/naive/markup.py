"""HTML as tags, by regular expressions and a list of open elements: the slow twin of fetch/html/tokens.py.

All patterns are possessive (`*+`, `++`): they never give back what they matched, which keeps them linear. Each turn of a
loop is recognised by its first character, so that no turn starts in vain.

"""

import re
from collections.abc import Iterator

from trapline.fetch.html.foreign import BREAKOUT, CLOSE_P, DEEPEST, ENCLOSING, NOT_OPENED, SPECIAL, VOID

_SPACE = r"[ \t\n\f\r]"
_END = r"(?=[ \t\n\f\r/>])"  # behind the name of a tag
_VALUE = r"""[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|(?!["'])([^ \t\n\f\r>]*+))"""
_ATTRIBUTE = r"([^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)(?:" + _VALUE + r")?"
_UNNAMED = re.sub(r"(?<!\\)\((?!\?)", "(?:", _ATTRIBUTE)  # the same without groups
_USUAL = _SPACE + r'++[a-zA-Z-]++="[^"]*+"'  # the same in the usual spelling: one turn of the loop, not two
# From the attributes of a tag to its `>` or the end of the page
ATTRIBUTES = r"(?:" + _USUAL + r"|[ \t\n\f\r/]++|" + _UNNAMED + r")*+"


def any_case(name: str) -> str:
    """A pattern for a name in capitals or not; several times faster than the flag that says so for all of a pattern.

    >>> any_case("h1")
    '[hH]1'
    """
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in name)


_TEXT_ONLY = ("style", "title", "textarea", "noframes", "noembed", "xmp", "iframe")
_LOOKED_FOR = ("a", "area", "base", "frame", "iframe", "link", "meta")


def _content(name: str, inner: str = "") -> re.Pattern[str]:
    """Text up to the end tag of the element."""
    return re.compile(r"(?:[^<]++|" + inner + r"<(?!/" + any_case(name) + _END + r"))*+")


def _script() -> re.Pattern[str]:
    """In a script, the end tag does not count between `<!-- <script` and `</script`."""
    script = any_case("script")
    more = r"[^-<]++|-(?!->)|"
    go_on = r"<(?!/" + script + _END + r")"
    twice_hidden = r"<" + script + _END + r"(?:" + more + go_on + r")*+(?:</" + script + r")?"
    hidden = r"<!--(?!-?>)(?:" + more + twice_hidden + r"|" + go_on + r")*+"
    return _content("script", hidden + r"|")


_CONTENT = {name: _content(name) for name in _TEXT_ONLY} | {
    "script": _script(),
    "plaintext": re.compile(r"(?s:.)*+"),
}
_TAG = re.compile(r"<(/?)([a-zA-Z][^ \t\n\f\r/>]*+)(" + ATTRIBUTES + r")>")
_UNFINISHED = re.compile(r"</?[a-zA-Z]")
_NO_TAG = re.compile(r"<(?:!--(?:-?>|(?:[^-]++|-(?!-!?>))*+)|[!?][^>]*+|/[^a-zA-Z>][^>]*+)")
_CDATA = re.compile(r"<!\[CDATA\[(?:[^]]++|\](?!\]>))*+")


def tags(html: str) -> Iterator[tuple[str, str]]:
    """Name, in lower case, and attributes, as they stand, of each a, area, base, frame, iframe, link and meta.

    >>> list(tags("<p title='<a>'><A href=x>y</A><!-- <a> --><script>'<a>'</script><iframe src=z><a></iframe>"))
    [('a', ' href=x'), ('iframe', ' src=z')]
    >>> list(tags("<svg><title/><a href=x><link></svg><title/><a href=y>"))
    [('a', ' href=x')]
    """
    templates, elements, at = 0, OpenElements(), html.find("<")
    while at >= 0:
        tag = _TAG.match(html, at)
        if tag is None:
            if _UNFINISHED.match(html, at):
                return
            found = (elements.in_foreign() and _CDATA.match(html, at)) or _NO_TAG.match(html, at)
            at = html.find("<", found.end() if found else at + 1)
            continue
        closing, name, attributes, after = bool(tag[1]), lower(tag[2]), tag[3], tag.end()
        is_html = elements.end(name) if closing else elements.start(name, attributes)
        if is_html and name == "template":
            templates = max(0, templates - 1) if closing else templates + 1
        if not closing and not templates and name in _LOOKED_FOR and (is_html or name == "a"):
            yield name, attributes
        if is_html and not closing and name in _CONTENT:
            content = _CONTENT[name].match(html, after)
            after = content.end() if content else after
        at = html.find("<", after)


def lower(name: str) -> str:
    """Lower case as in HTML, which changes ASCII letters only."""
    return re.sub("[A-Z]+", lambda found: found[0].lower(), name)


# ---- SVG and MathML

_HTML, _SVG, _MATH = "html", "svg", "math"
_POINTS = {_SVG: {"foreignobject", "desc", "title"}, _MATH: {"mi", "mo", "mn", "ms", "mtext"}}
_breakout, _enclosing, _special, _close_p = (set(names.split()) for names in (BREAKOUT, ENCLOSING, SPECIAL, CLOSE_P))
_never_open = {*VOID.split(), *NOT_OPENED.split()}


class OpenElements:
    """Elements from the outermost svg or math on: name, namespace, and whether it is an integration point."""

    def __init__(self) -> None:
        self._stack: list[tuple[str, str, bool]] = []

    def in_foreign(self) -> bool:
        return bool(self._stack) and self._stack[-1][1] != _HTML

    def start(self, name: str, attributes: str) -> bool:
        """Whether the start tag belongs to HTML."""
        if self.in_foreign() and not self._takes_html(name):
            if name not in _breakout and not (name == "font" and {"color", "face", "size"} & set(_named(attributes))):
                self._push_foreign(name, attributes)
                return False
            self._break_out()
        self._start_html(name, attributes)
        return True

    def _takes_html(self, name: str) -> bool:
        """Whether a start tag inside the innermost element, which is foreign, still belongs to HTML."""
        current, space, is_point = self._stack[-1]
        if current == "annotation-xml":
            return is_point or name == "svg"
        if space == _MATH and is_point:
            return name not in ("mglyph", "malignmark")
        return is_point

    def _push_foreign(self, name: str, attributes: str) -> None:
        space = self._stack[-1][1]
        encoding = lower(_named(attributes).get("encoding", ""))
        is_point = name in _POINTS[space]
        if space == _MATH and name == "annotation-xml":
            is_point = encoding in ("text/html", "application/xhtml+xml")
        if not _closes_itself(attributes):
            self._push(name, space, is_point)

    def _push(self, name: str, space: str, is_point: bool = False) -> None:
        if len(self._stack) < DEEPEST:
            self._stack.append((name, space, is_point))

    def _break_out(self) -> None:
        while self._stack and self._stack[-1][1] != _HTML and not self._stack[-1][2]:
            self._stack.pop()

    def _start_html(self, name: str, attributes: str) -> None:
        if name in (_SVG, _MATH):
            if not _closes_itself(attributes):
                self._push(name, name)
            return
        if not self._stack or name in _never_open:
            return
        if self._stack[-1] == ("p", _HTML, False) and name in _close_p:
            self._stack.pop()
        for alike in ({"li"}, {"dd", "dt"}):
            if name in alike and self._stack and self._stack[-1][0] in alike and self._stack[-1][1] == _HTML:
                self._stack.pop()
        if name == "a":
            self._remove_link()
        self._push(name, _HTML)

    def _remove_link(self) -> None:
        for at in range(len(self._stack) - 1, -1, -1):
            name, space, _ = self._stack[at]
            if space != _HTML:
                return
            if name == "a":
                del self._stack[at]
                return

    def end(self, name: str) -> bool:
        """Whether the end tag belongs to HTML."""
        if not self._stack:
            return True
        if self.in_foreign():
            if name in ("p", "br"):
                self._break_out()
                return True
            for at in range(len(self._stack) - 1, -1, -1):
                if self._stack[at][1] == _HTML:
                    break
                if self._stack[at][0] == name:
                    del self._stack[at:]
                    return False
        return self._end_html(name)

    def _end_html(self, name: str) -> bool:
        for at in range(len(self._stack) - 1, -1, -1):
            open_name, space, is_point = self._stack[at]
            if is_point:
                return True
            if space == _HTML and open_name == name:
                del self._stack[at:]
                return True
            if space == _HTML and open_name in _special and name not in _special:
                return True
        if name in _enclosing:
            self._stack.clear()
        return True


def _named(attributes: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, double, single, bare in re.findall(_ATTRIBUTE, attributes):
        found.setdefault(lower(name), double or single or bare)
    return found


def _closes_itself(attributes: str) -> bool:
    """Whether the last slash is not part of a value."""
    return (
        attributes.endswith("/") and not re.sub(_UNNAMED, "", attributes).strip(" \t\n\f\r/") and _ends_bare(attributes)
    )


def _ends_bare(attributes: str) -> bool:
    end = 0
    for found in re.finditer(_UNNAMED, attributes):
        end = found.end()
    return end < len(attributes)
