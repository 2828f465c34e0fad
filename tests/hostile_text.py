"""Text that a terminal, a browser or a reader of lines would interpret, and a site on loopback that sends it wherever a
server can."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.crawler.small_server import CLOSE, Part, SmallServer, small_server

TITLE, SCREEN, C1_COLOUR, RIGHT_TO_LEFT = "\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\u202e"
SCRIPT = "<script>alert(1)</script>"
FORGED = "trapline: error: forged"
# A window title, a screen clear, a colour by C1, a change of direction, two separators, DEL, and a line that looks like one of ours.
HOSTILE = f"{TITLE}{SCREEN}{C1_COLOUR}{RIGHT_TO_LEFT}\u2028\u2029\x7f{SCRIPT}\r\n{FORGED}"
IN_A_HEAD = HOSTILE.replace("\r\n", "").encode()
ADDRESS = "127.9.0.7"


def is_harmless(printed: str) -> bool:
    """Whether a terminal shows every character, and the hostile text began no line of its own."""
    return all(one.isprintable() or one == "\n" for one in printed) and f"\n{FORGED}" not in f"\n{printed}"


def _page(*links: bytes, status: bytes = b"200 OK", fields: bytes = b"") -> bytes:
    body = b"<title>" + HOSTILE.encode() + b"</title>" + b"".join(b'<a href="%s">x</a>' % link for link in links)
    head = b'HTTP/1.1 %s\r\nContent-Type: text/html; x=%s\r\nServer: %s\r\nETag: "%s"\r\n%sContent-Length: %d\r\n\r\n'
    return head % (status, IN_A_HEAD, IN_A_HEAD, IN_A_HEAD, fields, len(body)) + body


def answer(host: str, target: str) -> bytes | list[Part]:
    """The home page links to the others. Each page carries the text in a different place."""
    text = HOSTILE.encode()
    if target == "/":
        names = (b"reason", b"moved", b"hub", b"no-head", b"no-status", b"coding", b"/p?" + text, b"/\xff" + text)
        entities = "".join(f"&#{ord(one)};" for one in HOSTILE).encode()
        far = b"http://%s.invalid/" % IN_A_HEAD
        return _page(*names, b"/e/" + entities, far, b"http://user:%s@%s/" % (IN_A_HEAD, ADDRESS.encode()))
    if target == "/robots.txt":
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(text) + 12) + b"User-agent: " + text
    wrong: dict[str, bytes | list[Part]] = {
        "/reason": _page(status=b"500 " + IN_A_HEAD),
        "/moved": _page(status=b"302 " + IN_A_HEAD, fields=b"Location: /to/" + IN_A_HEAD + b"\r\n"),
        "/hub": _page(fields=b"Link: <http://hub.invalid/" + IN_A_HEAD + b">; rel=hub\r\n"),
        "/no-head": [b"HTTP/1.1 200 OK\r\n" + IN_A_HEAD + b"\r\n\r\n", CLOSE],
        "/no-status": [IN_A_HEAD + b"\r\n\r\n", CLOSE],
        "/coding": _page(fields=b"Content-Encoding: " + IN_A_HEAD + b"\r\n"),
    }
    return wrong.get(target, _page())


@contextmanager
def hostile_site() -> Iterator[SmallServer]:
    with small_server(answer, (ADDRESS,)) as server:
        yield server
