"""Keys of an archive's index: examples worked out by hand from the rules in crawler/store/cdxj.py, and answers of the `surt` package
0.3.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.crawler.store.cdxj import surt


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.com/", "com,example)/"),
        ("http://example.com", "com,example)/"),
        ("https://www.example.com/", "com,example)/"),
        ("http://www3.example.co.uk/", "uk,co,example)/"),
        ("http://www3example.com/", "com,www3example)/"),
        ("http://a.b.c:8080/x", "c,b,a:8080)/x"),
        ("http://localhost/x", "localhost)/x"),
        ("http://127.0.0.1:81/", "1,0,0,127:81)/"),
        ("http://[2001:db8::1]:81/a", "2001:db8::1:81)/a"),
        ("http://example.com/Dir/", "com,example)/dir"),
        ("http://example.com//a//b/", "com,example)/a/b"),
        ("http://example.com/dir/?", "com,example)/dir"),
        ("http://example.com/a?B=C", "com,example)/a?b=c"),
        ("http://example.com/a?b=2&a=1&b=1&c", "com,example)/a?a=1&b=1&b=2&c"),
        ("http://example.com/a?x=1&", "com,example)/a?&x=1"),
        ("http://example.com/a?a-b=1&a=2", "com,example)/a?a=2&a-b=1"),
        ("http://example.com/a?q=http://x.org/y/", "com,example)/a?q=http://x.org/y/"),
        ("http://example.com/%7Euser/%C3%A9", "com,example)/~user/%c3%a9"),
        ("http://example.com/a%20b", "com,example)/a%20b"),
        ("http://example.com/a%2525", "com,example)/a%25"),
        ("http://example.com/a#part", "com,example)/a"),
    ],
)
def test_the_key_of_a_url(url: str, key: str) -> None:
    assert surt(url) == key


ID, ASP_ID = "0123456789abcdef" * 2, "abcdefghijklmnopqrstuvwx"


@pytest.mark.parametrize(
    ("tail", "key"),
    [
        (f"x?jsessionid={ID}", "x"),
        (f"x?a=1&PHPSESSID={ID}", "x?&a=1"),
        (f"x?xsid={ID}&b=2", "x?xb=2"),
        (f"?ASPSESSIONIDABCDEFGH={ASP_ID}&a=1", "?a=1"),
        ("?cfid=1&cftoken=2&z", "?z"),
        ("?sid=1", "?sid=1"),
        (f"({ASP_ID})/y.aspx", "y.aspx"),
        (f"(a({ASP_ID})S({ASP_ID}))/m.aspx", "m.aspx"),
        (f"({ASP_ID})/y.html", f"({ASP_ID})/y.html"),
    ],
)
def test_session_ids_are_removed_as_the_surt_package_does(tail: str, key: str) -> None:
    assert surt(f"http://a.org/{tail}") == f"org,a)/{key}"
    assert surt(f"http://www.a.org./{tail}") == f"org,a)/{key}"


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S"))))
def test_a_key_is_one_word_of_plain_ascii_whatever_the_path(tail: str) -> None:
    key = surt(f"http://example.com/{tail}")
    assert key.isascii() and key.isprintable() and " " not in key and key.startswith("com,example)/")
