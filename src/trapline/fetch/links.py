"""Links as they stand on a page: places in its bytes, so that those met before need not become strings.

Between steps 6 and 1 of the way of a URL: page.py finds them, whoever keeps a table of pages looks them up. It resolves nothing.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from trapline.fetch.tags.kernels import gather_links
from trapline.frontier.layout import Array
from trapline.jit import ready

_FEW = 3


class Links:
    """Some links, in order. As strings: iterate.

    >>> list(Links.of(["/a", "?ü"]).followed_by(["b"]))
    ['/a', '?ü', 'b']
    """

    __slots__ = ("spans", "text")

    def __init__(self, text: bytes, spans: Array) -> None:
        self.text = text  # UTF-8, as far as anybody knows
        self.spans = spans  # int32: start and end of each

    @classmethod
    def of(cls, links: Sequence[str]) -> "Links":
        texts = [link.encode("utf-8", "replace") for link in links]
        spans = np.zeros((len(texts), 2), np.int32)
        np.cumsum([*map(len, texts)], out=spans[:, 1], dtype=np.int32)
        spans[1:, 0] = spans[:-1, 1]
        return cls(b"".join(texts), spans)

    def __len__(self) -> int:
        return len(self.spans)

    def __getitem__(self, at: int) -> str:
        start, end = self.spans[at].tolist()
        return self.text[start:end].decode("utf-8", "replace")

    def some(self, places: Sequence[int]) -> list[str]:
        """Those at these places; if they are many, in a third of the time that they take one by one."""
        if len(places) <= _FEW:
            return [self[at] for at in places]
        return [self.text[start:end].decode("utf-8", "replace") for start, end in self.spans[places].tolist()]

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def completed(self, links: Mapping[int, str]) -> "Links":
        """With those at some places, and without those that have no place in the text even so. Of the text only links are kept."""
        more = Links.of(tuple(links.values()))
        ready()
        lengths = self.spans[:, 1] - self.spans[:, 0]
        out, spans = np.empty(int(lengths.sum()), np.uint8), np.empty_like(self.spans)
        length = gather_links(np.frombuffer(self.text, np.uint8), self.spans, out, spans)
        spans[list(links)] = more.spans + length
        return Links(out.tobytes() + more.text, spans[spans[:, 0] >= 0])

    def followed_by(self, links: Sequence[str]) -> "Links":
        if not links:
            return self
        more = Links.of(links)
        return Links(self.text + more.text, np.concatenate((self.spans, more.spans + len(self.text))))


NO_LINKS = Links.of(())
