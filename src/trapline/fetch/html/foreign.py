"""SVG and MathML within HTML: recognises which tags belong to them, so that `<title/>` in a picture hides nothing.

The module keeps the stack of open elements of the HTML standard (section 13.2.6, "tree construction"), from the outermost svg or math on.
In the rest of a page the stack is empty and costs nothing. An element of SVG or MathML contains markup, whatever its name means in HTML,
and ends at once if its tag is self-closing. Within an *integration point* (foreignObject, desc and title of SVG; mi, mo, mn, ms, mtext
and some annotations of MathML) tags belong to HTML again. A *breakout* tag ends all foreign elements: an author who writes <div> there
forgot an end tag.

Differs from the standard, which knows all open elements: outside of svg or math, an element counts as open if its end tag appears and its
name is one of HTML; within an integration point, misnested formatting is not repaired, except for links in links; elements deeper than
DEEPEST are not tracked.
"""

import numpy as np

from trapline.compiled.jit import b1, helper, i8, type_of, void
from trapline.fetch.html.tokens import (
    Bytes,
    attribute_name_end,
    attribute_start,
    behind_value,
    closes_itself,
    code,
    name_code,
    value_end,
    value_start,
)
from trapline.frontier.layout import Array

DEEPEST = 32
# Kinds of open elements. Those from SVG_POINT on are integration points; ANNOTATION is one only for an svg element.
HTML, SVG, MATH, ANNOTATION, SVG_POINT, MATH_POINT, TEXT_POINT = 1, 2, 3, 4, 5, 6, 7
# Row 0: the number of open elements. Row n: name, length of the name, and kind of the n-th.
OPEN_SHAPE = (DEEPEST + 1, 3)
Open = type_of(np.zeros(OPEN_SHAPE, np.int64))
_NAME, _LENGTH, _WHAT = 0, 1, 2


def codes_of(names: str) -> Array:
    codes = np.sort(np.array([code(name) for name in names.split()], np.int64))
    codes.flags.writeable = False
    return codes


BREAKOUT = (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s"
    " small span strong strike sub sup table tt u ul var"
)
"""Start tags that end foreign content. `font` with a colour, face or size does too."""
ENCLOSING = (
    BREAKOUT.replace(" body", "").replace(" head ", " ")
    + " a address article aside button caption details dialog fieldset figcaption"
    " figure footer form header label main nav option section select summary tbody td tfoot th thead tr"
)
"""End tags that end foreign content if they match no element within it: they belong to an element open around it."""
SPECIAL = (
    "address article aside blockquote body button caption center dd details dialog dir div dl dt fieldset figcaption figure footer form"
    " h1 h2 h3 h4 h5 h6 head header hgroup html iframe li listing main menu nav object ol p pre search section select summary table"
    " tbody td template tfoot th thead tr ul"
)
"""Elements of HTML that the end tag of an outer element does not end, unless that element is in this list too."""
CLOSE_P = (
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6"
    " header hgroup hr li listing main menu nav ol p plaintext pre search section summary ul xmp"
)
VOID = "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr"
NOT_OPENED = (
    "body caption colgroup frameset head html tbody td tfoot th thead tr"  # outside of a table, which no tag opens here
)

_BREAKOUT, _ENCLOSING, _SPECIAL, _CLOSE_P, _VOID, _IGNORED = map(
    codes_of, (BREAKOUT, ENCLOSING, SPECIAL, CLOSE_P, VOID, NOT_OPENED)
)
Codes = type_of(_VOID)
_SVG, _MATH, _P, _BR, _FONT, _LI, _DD, _DT = map(code, ("svg", "math", "p", "br", "font", "li", "dd", "dt"))
_A = code("a")
_TITLE, _DESC, _FOREIGN_OBJECT = code("title"), code("desc"), code("foreignobject")
_MI, _MO, _MN, _MS, _MTEXT = map(code, ("mi", "mo", "mn", "ms", "mtext"))
_ANNOTATION_XML, _ENCODING = code("annotation-xml"), code("encoding")
_MGLYPH, _MALIGNMARK = code("mglyph"), code("malignmark")
_COLOR, _FACE, _SIZE = code("color"), code("face"), code("size")
_TEXT_HTML, _XHTML = code("text/html"), code("application/xhtml+xml")
_GREATER = 0x3E


@helper(b1(Codes, i8))
def is_among(codes: Array, wanted: int) -> bool:
    low, high = 0, codes.size
    while low < high:
        middle = (low + high) // 2
        if codes[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < codes.size and codes[low] == wanted


@helper(b1(Codes, i8, i8))
def is_named(codes: Array, what: int, length: int) -> bool:
    """Return whether a name of at most ten letters is among these. Names with the same first eight letters count as equal."""
    return length <= 10 and is_among(codes, what)


@helper(i8(Open))
def innermost(opened: Array) -> int:
    """Return the kind of the current element; HTML if none is open."""
    depth = opened[0, 0]
    return opened[depth, _WHAT] if depth > 0 else HTML


@helper(void(Open, i8, i8, i8))
def push(opened: Array, what: int, length: int, kind: int) -> None:
    depth = opened[0, 0] + 1
    if depth <= DEEPEST:
        opened[0, 0] = depth
        opened[depth, _NAME], opened[depth, _LENGTH], opened[depth, _WHAT] = what, length, kind


@helper(b1(i8, i8))
def begins_foreign(what: int, length: int) -> bool:
    return (what == _SVG and length == 3) or (what == _MATH and length == 4)


@helper(b1(i8, i8))
def is_of_font(what: int, length: int) -> bool:
    return (what == _COLOR and length == 5) or (what in (_FACE, _SIZE) and length == 4)


@helper(i8(Bytes, i8, b1))
def find_value(html: Array, at: int, of_font: bool) -> int:
    """Return the start of the value of color, face or size (`of_font`), or else of encoding; -1 if there is no such attribute."""
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER:
        name = attribute_name_end(html, at)
        start = value_start(html, name)
        what, length = name_code(html, at, name), name - at
        if is_of_font(what, length) if of_font else what == _ENCODING and length == 8:
            return name if start < 0 else start
        at = attribute_start(html, name if start < 0 else behind_value(html, start, value_end(html, start)))
    return -1


@helper(b1(Bytes, i8, i8, i8))
def breaks_out(html: Array, what: int, length: int, attributes: int) -> bool:
    if what == _FONT and length == 4:
        return find_value(html, attributes, True) >= 0
    return is_named(_BREAKOUT, what, length)


@helper(i8(Bytes, i8, i8, i8, i8))
def foreign_kind(html: Array, what: int, length: int, attributes: int, namespace: int) -> int:
    """Return the kind of an element that begins in foreign content of this namespace."""
    if namespace == SVG:
        is_point = (what == _TITLE and length == 5) or (what == _DESC and length == 4)
        return SVG_POINT if is_point or (what == _FOREIGN_OBJECT and length == 13) else SVG
    if (length == 2 and what in (_MI, _MO, _MN, _MS)) or (length == 5 and what == _MTEXT):
        return TEXT_POINT
    if what != _ANNOTATION_XML or length != 14:
        return MATH
    start = find_value(html, attributes, False)
    if start < 0:
        return ANNOTATION
    end = value_end(html, start)
    said = name_code(html, start, end)
    is_html = (said == _TEXT_HTML and end - start == 9) or (said == _XHTML and end - start == 21)
    return MATH_POINT if is_html else ANNOTATION


@helper(i8(i8))
def namespace_of(kind: int) -> int:
    return SVG if kind in (SVG, SVG_POINT) else MATH


@helper(void(Open))
def break_out(opened: Array) -> None:
    """Close foreign elements, up to the next integration point or HTML element."""
    while opened[0, 0] > 0 and innermost(opened) in (SVG, MATH, ANNOTATION):
        opened[0, 0] -= 1


@helper(b1(Open, i8, i8))
def is_top(opened: Array, what: int, length: int) -> bool:
    depth = opened[0, 0]
    return opened[depth, _WHAT] == HTML and opened[depth, _NAME] == what and opened[depth, _LENGTH] == length


@helper(void(Open))
def close_link(opened: Array) -> None:
    """Remove the open `a` of HTML, if there is one within this integration point: a link does not contain another."""
    at = opened[0, 0]
    while at > 0 and opened[at, _WHAT] == HTML:
        if opened[at, _NAME] == _A and opened[at, _LENGTH] == 1:
            for above in range(at, opened[0, 0]):
                for column in range(3):
                    opened[above, column] = opened[above + 1, column]
            opened[0, 0] -= 1
            return
        at -= 1


@helper(void(Bytes, i8, i8, i8, i8, Open))
def begin_html(html: Array, what: int, length: int, attributes: int, end: int, opened: Array) -> None:
    """Process a start tag of HTML, on the page or within an integration point."""
    if begins_foreign(what, length):
        if not closes_itself(html, attributes, end):
            push(opened, what, length, SVG if length == 3 else MATH)
        return
    if opened[0, 0] == 0 or is_named(_VOID, what, length) or is_named(_IGNORED, what, length):
        return
    if is_top(opened, _P, 1) and is_named(_CLOSE_P, what, length):
        opened[0, 0] -= 1
    is_item = what in (_DD, _DT) and length == 2
    if (what == _LI and length == 2 and is_top(opened, _LI, 2)) or (
        is_item and (is_top(opened, _DD, 2) or is_top(opened, _DT, 2))
    ):
        opened[0, 0] -= 1
    if what == _A and length == 1:
        close_link(opened)
    push(opened, what, length, HTML)


@helper(b1(Bytes, i8, i8, i8, i8, Open))
def open_element(html: Array, what: int, length: int, attributes: int, end: int, opened: Array) -> bool:
    """Process a start tag; return whether it belongs to HTML."""
    kind = innermost(opened)
    is_html = kind in (HTML, SVG_POINT, MATH_POINT)
    if kind == TEXT_POINT:
        is_html = not ((what == _MGLYPH and length == 6) or (what == _MALIGNMARK and length == 10))
    elif kind == ANNOTATION:
        is_html = what == _SVG and length == 3
    if not is_html and breaks_out(html, what, length, attributes):
        break_out(opened)
        is_html = True
    if is_html:
        begin_html(html, what, length, attributes, end, opened)
    elif not closes_itself(html, attributes, end):
        push(opened, what, length, foreign_kind(html, what, length, attributes, namespace_of(kind)))
    return is_html


@helper(b1(i8, i8, Open))
def close_element(what: int, length: int, opened: Array) -> bool:
    """Process an end tag; return whether it belongs to HTML."""
    if innermost(opened) != HTML and ((what == _P and length == 1) or (what == _BR and length == 2)):
        break_out(opened)
        return True
    at, in_html, blocked = opened[0, 0], False, False
    while at > 0:
        kind = opened[at, _WHAT]
        in_html = in_html or kind == HTML
        if in_html and (blocked or kind >= SVG_POINT):
            return True
        is_same = opened[at, _NAME] == what and opened[at, _LENGTH] == length
        if is_same and (kind == HTML) == in_html:
            opened[0, 0] = at - 1
            return in_html
        if kind == HTML and is_named(_SPECIAL, opened[at, _NAME], opened[at, _LENGTH]):
            blocked = not is_named(_SPECIAL, what, length)
        blocked = blocked or kind >= SVG_POINT
        at -= 1
    if not blocked and is_named(_ENCLOSING, what, length):
        opened[0, 0] = 0
    return True


@helper(b1(Bytes, i8, i8, b1, i8, i8, Open))
def is_of_html(html: Array, what: int, length: int, closing: bool, attributes: int, end: int, opened: Array) -> bool:
    """Return whether a tag belongs to HTML, and update the stack of open elements."""
    if opened[0, 0] == 0 and (closing or not begins_foreign(what, length)):
        return True
    return close_element(what, length, opened) if closing else open_element(html, what, length, attributes, end, opened)
