"""A published file searched with a regular expression, one window of bytes after the other.

`re` holds the interpreter lock from one match to the next, however far that is: a search of 48 MiB without a match stops all threads for
seconds. A search of one window takes milliseconds, and other threads run between two windows. The work is bounded too: the file is
searched until it has shown a given number of marks, the bytes at which a token may begin. What the tokens mean is not known here.
"""

import re
from collections.abc import Iterator

WINDOW_BYTES = 16 * 1024
MOST_TOKEN_BYTES = 16 * 1024  # a longer token may be missed
_MOST_PASSED_OVER = 100_000  # comments and the like of one file: each takes some microseconds


class Scan:
    """The tokens of a file in order. The pattern must take at most MOST_TOKEN_BYTES for whatever should be found."""

    def __init__(self, pattern: re.Pattern[bytes], file: bytes, mark: bytes, most_marks: int) -> None:
        self._pattern, self._file, self._mark, self._marks_left = pattern, file, mark, most_marks
        self._passes_left = _MOST_PASSED_OVER
        self._counted = 0  # in what comes before the marks were counted
        self._passed_to = 0  # where to go on; 0: behind the last token
        self.is_cut = False  # the bound is reached; the rest of the file was not searched

    def __iter__(self) -> Iterator[re.Match[bytes]]:
        """
        >>> [found[0] for found in Scan(re.compile(rb"<[a-z]++>"), b"<a><<b>", b"<", 9)]
        [b'<a>', b'<b>']
        """
        at = behind = 0
        while at < len(self._file):
            end = at + WINDOW_BYTES
            self._count_marks(at, end)
            if self.is_cut:
                return
            # The search may go beyond the window, so that the last token is found whole.
            for found in self._pattern.finditer(self._file, at, end + MOST_TOKEN_BYTES):
                if found.start() >= end:
                    break
                behind = found.end()
                yield found
                if self._passed_to:
                    break
            at, self._passed_to = self._passed_to or max(behind, end), 0

    def _count_marks(self, at: int, end: int) -> None:
        if end > self._counted:
            self._marks_left -= self._file.count(self._mark, max(at, self._counted), end)
            self._counted = end
            self.is_cut |= self._marks_left < 0

    def pass_over(self, token: re.Match[bytes], mark: bytes) -> int:
        """Go on behind the next `mark` after the last token, or at the end of the file if there is none. Return where the mark begins."""
        self._passes_left -= 1
        self.is_cut |= self._passes_left < 0
        at = token.end()
        while at < len(self._file):
            found = self._file.find(mark, at, at + WINDOW_BYTES + len(mark) - 1)
            if found >= 0:
                self._passed_to = found + len(mark)
                return found
            at += WINDOW_BYTES
        self._passed_to = len(self._file)
        return len(self._file)
