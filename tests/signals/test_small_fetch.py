"""Small requests of the endpoint follow three redirects and no more."""

import asyncio
import ssl

import pytest

from trapline.fetch import failure
from trapline.fetch.address import Guard
from trapline.signals.small_fetch import SmallFetch, SmallResponse


class Redirects(SmallFetch):
    """Answers without a network: /0 redirects to /1, and so on; the page after the last redirect exists."""

    def __init__(self, redirects: int) -> None:
        super().__init__(None, Guard(), ssl.create_default_context())  # type: ignore[arg-type]  # no name is resolved
        self.redirects, self.requests = redirects, 0

    async def _once(self, url: str, most_bytes: int, method: str, body: bytes) -> SmallResponse:
        self.requests += 1
        number = int(url.rsplit("/", 1)[1])
        if number == self.redirects:
            return SmallResponse(200, url=url)
        return SmallResponse(308, {b"location": f"/{number + 1}".encode()}, url=url)


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("redirects", range(6))
def test_three_redirects_are_followed_and_a_fourth_is_not(redirects: int, method: str) -> None:
    async def fetched(fetch: Redirects) -> SmallResponse:
        url = "http://a.test/0"
        return await (fetch.get(url) if method == "get" else fetch.post(url, b""))

    fetch = Redirects(redirects)
    found = asyncio.run(fetched(fetch))
    if redirects <= 3:
        assert (found.status, found.url) == (200, f"http://a.test/{redirects}")
    else:
        assert (found.status, found.failure) == (0, failure.PROTOCOL)
    assert fetch.requests == min(redirects, 3) + 1
