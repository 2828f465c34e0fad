"""Headers, credentials and cookies of the user: what is sent to whom, and mistakes answered in one line without the secret."""

import base64
import math
import os
from pathlib import Path

import pytest

from trapline.errors import ConfigError
from trapline.fetch.http import cookies
from trapline.fetch.http.cookies import MOST_OF_HOST, Cookie, CookieJar, read_cookies
from trapline.fetch.http.credentials import read_credentials
from trapline.fetch.http.http1 import ResponseReader, request, request_headers
from trapline.fetch.http.private_headers import PrivateHeaders, read_secrets
from trapline.fetch.http.proxy import read_proxy
from trapline.fetch.http.response import Response, response_of
from trapline.fetch.http.user_headers import check_user_agent, read_header, read_headers
from trapline.fetch.limits import Limits

SECRET = "s3cr3t-value"


def credentials(tmp_path: Path, text: str, name: str = "secrets.toml") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


# ---- headers


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no colon", "give NAME:VALUE"),
        ("bad name: x", "give NAME:VALUE"),
        (": x", "give NAME:VALUE"),
        ("X-A: a\r\nX-B: b", "one line of printable ASCII"),
        ("X-A: a\nX-B: b", "one line of printable ASCII"),
        ("X-A\r\nX-B: b", "give NAME:VALUE"),
        ("X-A: \u00e4", "one line of printable ASCII"),
        ("Host: b.test", "the crawler sets this header itself"),
        ("If-None-Match: x", "the crawler sets this header itself"),
        ("User-Agent: x", "--user-agent"),
        (f"Authorization: Basic {SECRET}", "--credentials FILE"),
        (f"Proxy-Authorization: Basic {SECRET}", "--credentials FILE"),
        (f"X-Api-Key: {SECRET}", "--credentials FILE"),
        (f"Cookie: a={SECRET}", "--cookies FILE"),
    ],
)
def test_a_header_that_cannot_be_sent_or_has_a_secret_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_header(text)
    assert said in str(error.value) and SECRET not in str(error.value) and "\n" not in str(error.value)


def test_a_header_of_an_author_is_no_secret() -> None:
    assert read_header("X-Author: ann") == ("X-Author", "ann")


def test_a_header_is_given_once() -> None:
    with pytest.raises(ConfigError, match="given twice"):
        read_headers(["Accept: a", "accept: b"])


@pytest.mark.parametrize(
    ("user_agent", "token"), [("a\r\nX: y", "trapline"), ("ok", "my bot"), ("ok", ""), ("ok", "bot/1")]
)
def test_a_user_agent_is_one_line_and_a_token_has_letters(user_agent: str, token: str) -> None:
    with pytest.raises(ConfigError, match=r"--user-agent|--robots-token"):
        check_user_agent(user_agent, "", token)


# ---- credentials


def test_credentials_are_sent_to_their_origin_alone(tmp_path: Path) -> None:
    text = '[site."A.org"]\nuser = "ann"\npassword = "p:w"\n[site."http://a.org:8080"]\nbearer = "t"\n'
    found = read_credentials(credentials(tmp_path, text))
    assert found.lines("https://a.org") == b"Authorization: Basic " + base64.b64encode(b"ann:p:w") + b"\r\n"
    assert found.lines("http://a.org:8080") == b"Authorization: Bearer t\r\n"
    for other in ("http://a.org", "https://www.a.org", "https://a.org:8080", "https://b.org"):
        assert found.lines(other) == b""


def test_a_netrc_file_is_read_without_its_default(tmp_path: Path) -> None:
    text = f"machine a.org login ann password {SECRET}\ndefault login bob password x\n"
    found = read_credentials(credentials(tmp_path, text, ".netrc"))
    assert found.origins == ("https://a.org",) and SECRET not in repr(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'[site."a.org"]\nbearer = "{SECRET}', "not valid TOML (at end of document)"),
        (f'[site."a.org"]\nbearer = "{SECRET}\\r\\nX: y"', "one line of printable ASCII"),
        (f'[site."a.org"]\ntoken = "{SECRET}"', "there is no key 'token'"),
        (f'[site."a.org"]\npassword = "{SECRET}"', "needs both user and password"),
        (f'[site."a.org"]\nuser = "a:b"\npassword = "{SECRET}"', "has a colon"),
        (f'[site."a.org"]\nuser = "a"\npassword = "{SECRET}"\nbearer = "x"', "keep one of them"),
        ('[site."a.org"]\nbearer = { env = "NOT_SET_AT_ALL" }', "environment variable NOT_SET_AT_ALL"),
        ('[site."a.org"]\nheaders = { Host = "b.org" }', "the crawler sets this header itself"),
        ('[site."a.org"]\nbearer = 3', "bearer is not a text"),
        ('[site."a.org"]', "has no credentials"),
        ('[site."a.org/b"]\nbearer = "x"', '[site."a.org/b"]: not a host'),
        (f'[site."http://u:{SECRET}@a.org"]\nbearer = "x"', '[site."(...)"]: not a host'),
        (f'bearer = "{SECRET}"', '[site."example.org"]'),
        (f'[proxy]\nuser = "{SECRET}"', "needs both"),
    ],
)
def test_mistakes_in_a_file_of_credentials_are_reported_without_secrets(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_credentials(credentials(tmp_path, text))
    assert said in str(error.value) and SECRET not in str(error.value) and "\n" not in str(error.value)


def test_a_netrc_file_with_a_missing_quote_is_reported_without_secrets(tmp_path: Path) -> None:
    for text, said in (
        (f'machine "a.org login ann password {SECRET}', "machine (...): not a host"),
        (f'machine "a.org\nlogin ann\npassword {SECRET}\n', "machine (...): not a host"),
        (
            f'machine a.org login u password "{SECRET}\nmachine b.org login x password y\n',
            "machine a.org: the login or",
        ),
        (
            f'machine a.org login "u password {SECRET}\nmachine b.org login x password y\n',
            "machine a.org: the login or",
        ),
        (f"machine http://u:{SECRET}@a.org login x password y\n", "machine (...): not a host"),
    ):
        with pytest.raises(ConfigError) as error:
            read_credentials(credentials(tmp_path, text, ".netrc"))
        assert said in str(error.value) and SECRET not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("table", ['[site."a.org"]', "[proxy]"])
@pytest.mark.parametrize("value", [b"\xff\xfe", b"a\nb"])
def test_a_secret_of_the_environment_is_one_line_of_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, value: bytes
) -> None:
    monkeypatch.setenv("PASSWORD_OF_A", os.fsdecode(value))
    text = f'{table}\nuser = "ann"\npassword = {{ env = "PASSWORD_OF_A" }}'
    with pytest.raises(ConfigError, match="PASSWORD_OF_A is not printable text"):
        read_credentials(credentials(tmp_path, text))


# ---- cookies

JAR = f"""# Netscape HTTP Cookie File

a.org\tFALSE\t/\tFALSE\t0\tone\t{SECRET}
.b.org\tTRUE\t/\tFALSE\t2000\ttwo\t2
#HttpOnly_b.org\tFALSE\t/deep\tTRUE\t0\tthree\t3
"""


def test_cookies_of_a_file_are_sent_to_their_hosts_paths_and_times(tmp_path: Path) -> None:
    jar = read_cookies(credentials(tmp_path, JAR, "cookies.txt"))
    assert jar.line("a.org", "/x?y", False, 0.0) == f"Cookie: one={SECRET}\r\n".encode()
    assert jar.line("www.a.org", "/", True, 0.0) == b"" and not jar.has("www.a.org")
    assert jar.line("www.b.org", "/", False, 0.0) == b"Cookie: two=2\r\n"
    assert jar.line("b.org", "/deep/a", True, 0.0) == b"Cookie: three=3; two=2\r\n"
    assert jar.line("b.org", "/deep/a", False, 0.0) == b"Cookie: two=2\r\n"
    assert jar.line("b.org", "/deeper", True, 2000.0) == b""
    assert SECRET not in repr(jar)


@pytest.mark.parametrize(
    "row",
    [
        "a.org TRUE / FALSE 0 a b",
        "a.org\tFALSE\t/\tFALSE\t0\ta\tb;c",
        *(f"a.org\tFALSE\t/\tFALSE\t{time}\ta\tb" for time in ("soon", "--5", "\u00b2", "\u0665", "5.x", "-", "")),
    ],
)
def test_a_row_that_is_no_cookie_is_named(tmp_path: Path, row: str) -> None:
    with pytest.raises(ConfigError, match="row 2"):
        read_cookies(credentials(tmp_path, f"# cookies\n{row}\n", "cookies.txt"))


def answer(*values: str) -> Response:
    lines = "".join(f"Set-Cookie: {value}\r\n" for value in values)
    found = response_of(f"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n".encode(), 99)
    assert isinstance(found, Response)
    return found


def test_a_cookie_of_a_server_goes_back_to_its_host_and_is_not_recorded() -> None:
    jar = CookieJar()
    private = PrivateHeaders("http://a.org", b"", jar, True)
    response = answer(
        f"sid={SECRET}; Domain=org; Max-Age=10", "b=2; Path=/deep", "s=3; Secure", "gone=1; Max-Age=0", "=x"
    )
    private.received("/dir/page", response, 100.0)
    assert SECRET.encode() not in response.head and response.head.count(b"(not recorded)") == 5
    assert jar.line("a.org", "/dir/x", False, 105.0) == f"Cookie: sid={SECRET}\r\n".encode()
    assert jar.line("a.org", "/dir/x", False, 110.0) == b"" and jar.line("a.org", "/other", False, 105.0) == b""
    assert jar.line("b.org", "/dir/x", False, 105.0) == b""


def read_answer(wire: bytes) -> Response:
    reader = ResponseReader(Limits())
    reader.feed(wire)
    response = reader.next() or reader.cut("time")
    assert response is not None
    return response


@pytest.mark.parametrize("line", [b"\r\n", b"\n"])
@pytest.mark.parametrize(
    "field",
    [
        "Set-Cookie: {}",
        "set-cookie2 : {}",
        "Set-Cookie: a\r{}",
        "Set-Cookie: \r\r{}\rx",
        "Set-Cookie: a=b;\r\n\t{}",
        "Set-Cookie: a\n \r\n {}",
        "Set-Cookie\r\n : {}",
    ],
)
def test_no_form_of_a_set_cookie_is_recorded(field: str, line: bytes) -> None:
    cookie = field.format(SECRET).encode()
    lines = [b"HTTP/1.1 200 OK", cookie, b"ETag: 1", b"Transfer-Encoding: chunked", b""]
    chunks = [b"2", b"ab", b"0", cookie, b"X: 1", cookie, b"", b""]
    response = read_answer(line.join([*lines, *chunks]))
    PrivateHeaders("http://a.org", b"A: b\r\n", None, False).received("/", response, 0.0)
    assert SECRET.encode() not in response.head + response.wire and response.body == b"ab"
    assert response.head.endswith(line.join([b" (not recorded)", b"ETag: 1", b"Transfer-Encoding: chunked", b"", b""]))
    name = cookie.partition(b":")[0] + b": (not recorded)"
    assert response.wire == line.join([b"2", b"ab", b"0", name, b"X: 1", name, b"", b""])
    assert response.trailers == len(response.wire) - len(line.join([b"2", b"ab", b"0", b""]))


def test_a_trailer_that_is_cut_off_is_not_recorded_either() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = read_answer(head + f"2\r\nab\r\n0\r\nSet-Cookie: {SECRET}".encode())
    PrivateHeaders("http://a.org", b"A: b\r\n", None, False).received("/", response, 0.0)
    assert response.wire == b"2\r\nab\r\n0\r\nSet-Cookie: (not recorded)" and response.truncated == "time"


def test_the_cookies_of_a_host_are_bounded() -> None:
    jar = CookieJar()
    for number in range(3 * MOST_OF_HOST):
        jar.keep("a.org", "/", False, answer(f"n{number}=x").head, 0.0)
    assert jar.line("a.org", "/", False, 0.0).count(b"=") == MOST_OF_HOST


def sets(jar: CookieJar, host: str, *values: str) -> None:
    jar.keep(host, "/", False, answer(*values).head, 0.0)


def test_servers_cannot_push_the_cookies_of_the_file_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookies, "MOST_HOSTS", 3)
    jar = read_cookies(credentials(tmp_path, JAR, "cookies.txt"))
    for number in range(2 * MOST_OF_HOST):
        sets(jar, "a.org", f"n{number}=x")
        sets(jar, f"{number}.org", "a=b")
    sent = jar.line("a.org", "/", False, 0.0)
    assert SECRET.encode() in sent and sent.count(b"=") == 1 + MOST_OF_HOST
    assert sum(map(jar.has, ("a.org", "b.org", *(f"{number}.org" for number in range(200))))) == 2 + 2


def test_a_file_with_many_cookies_of_a_host_leaves_those_of_the_server_bounded(tmp_path: Path) -> None:
    rows = "".join(f"a.org\tFALSE\t/\tFALSE\t0\tf{number}\tx\n" for number in range(MOST_OF_HOST + 1))
    jar = read_cookies(credentials(tmp_path, rows, "cookies.txt"))
    for number in range(200):
        sets(jar, "a.org", f"n{number}=x")
    assert jar.line("a.org", "/", False, 0.0).count(b"=") == 2 * MOST_OF_HOST + 1


def test_a_server_may_renew_a_cookie_of_the_file_and_take_it_back(tmp_path: Path) -> None:
    jar = read_cookies(credentials(tmp_path, JAR, "cookies.txt"))
    sets(jar, "a.org", "one=new; Path=/")
    assert jar.line("a.org", "/", False, 0.0) == b"Cookie: one=new\r\n"
    sets(jar, "a.org", "one=; Path=/; Max-Age=0")
    assert not jar.has("a.org")


def test_an_answer_over_http_cannot_replace_a_cookie_for_https(tmp_path: Path) -> None:
    jar = read_cookies(credentials(tmp_path, JAR, "cookies.txt"))
    for path in ("/deep", "/deep/er"):
        sets(jar, "b.org", f"three=forged; Path={path}", f"three=; Path={path}; Max-Age=0")
    assert jar.line("b.org", "/deep/er", True, 0.0) == b"Cookie: three=3; two=2\r\n"
    jar.keep("b.org", "/", True, answer("three=new; Path=/deep; Secure").head, 0.0)
    assert b"three=new" in jar.line("b.org", "/deep", True, 0.0)


def test_the_cookies_of_all_hosts_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookies, "MOST_JAR_BYTES", 50_000)
    jar = CookieJar()
    for number in range(100):
        sets(jar, f"{number % 20}.org", f"n{number}={'x' * 4_000}")
        held = [cookie for host in range(20) for cookie in jar._of(f"{host}.org")]
        assert jar._set_bytes == sum(map(cookies._size, held)) <= 50_000
    assert jar.has("19.org") and len(held) == 5


@pytest.mark.parametrize(
    ("when", "expires"),
    [
        ("Wed, 21 Oct 2026 07:28:00 GMT", 1792567680.0),
        ("Wed, 21-Oct-2026 07:28:00 GMT", 1792567680.0),
        ("soon", math.inf),
        ("Wed, 21 Oct \u0662\u0660\u0662\u0666 07:28:00 GMT", math.inf),
        ("", math.inf),
    ],
)
def test_dates_of_cookies_are_read(when: str, expires: float) -> None:
    jar = CookieJar()
    jar.keep("a.org", "/", False, answer(f"a=b; Expires={when}; Path=/").head, 0.0)
    assert Cookie("/", False, expires, b"a=b") in jar._of("a.org")


@pytest.mark.parametrize(
    ("max_age", "expires"),
    [
        ("5", 105.0),
        ("-5", None),
        ("--5", math.inf),
        ("-", math.inf),
        ("\u00b2", math.inf),
        ("\u0665", math.inf),
        ("1_0", math.inf),
        ("9" * 4_000, math.inf),
        ("-" + "9" * 4_000, None),
    ],
)
def test_any_max_age_is_read(max_age: str, expires: float | None) -> None:
    """One that is no whole number is ignored. None: the cookie has expired."""
    jar = CookieJar()
    jar.keep("a.org", "/", False, answer(f"a=b; Max-Age={max_age}").head, 100.0)
    kept = [cookie.expires for cookie in jar._of("a.org")]
    assert kept == ([] if expires is None else [expires])


# ---- requests


def test_without_secrets_nothing_is_added() -> None:
    assert read_secrets("", "", False) is None


def test_private_headers_come_after_those_that_are_recorded(tmp_path: Path) -> None:
    file = credentials(tmp_path, '[site."a.org"]\nbearer = "t"\n')
    secrets = read_secrets(str(file), "", False)
    assert secrets is not None and secrets.of_site("https://b.org") is None
    private = secrets.of_site("https://a.org")
    assert private is not None
    recorded = request("/x", request_headers("a.org", {"User-Agent": "x"}), b"If-None-Match: 1\r\n")
    assert private.sent(recorded, "/x", 0.0) == recorded[:-2] + b"Authorization: Bearer t\r\n\r\n"


# ---- proxies


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("proxy.test:8080", "http://proxy.test:8080"),
        ("http://[::1]:1/", "http://[::1]:1"),
        ("SOCKS5://10.0.0.1", "socks5://10.0.0.1:1080"),
    ],
)
def test_a_proxy_is_read(text: str, url: str) -> None:
    assert read_proxy(text).url == url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"http://ann:{SECRET}@proxy.test", "[proxy] of --credentials FILE"),
        ("https://proxy.test", "give http://HOST:PORT or socks5://HOST:PORT"),
        ("socks5h://proxy.test", "--proxy-names"),
        ("http://proxy.test:99999", "give http://HOST:PORT"),
        ("http://proxy.test/path", "give http://HOST:PORT"),
    ],
)
def test_what_is_no_proxy_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_proxy(text)
    assert said in str(error.value) and SECRET not in str(error.value)
