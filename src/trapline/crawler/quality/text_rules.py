"""Rules for the text of a page, as corpora for language models use them, and their score: the share of the rules that the text passes.

A text is a sequence of lines, one for each block of the page, without markup (fetch/html/visible_text.py). A word is what blanks
separate. The rules look at form, not at meaning: a page of links fails those about lines and links, a machine's log those about words
and repetition. This module knows no page and no crawl.

Sources, by the first part of the name of a rule:
gopher: Rae et al. 2021, Scaling Language Models (arXiv 2112.11446), appendix A.1.1, "Quality Filtering" and "Repetition Removal";
thresholds for n-grams by its table A1, of the repeated n-grams only n = 5 and n = 10.
c4: Raffel et al. 2020, Exploring the Limits of Transfer Learning (JMLR 21), section 2.2. A sentence ends with ".", "!" or "?".
fineweb: Penedo et al. 2024, The FineWeb Datasets (arXiv 2406.17557), section 3.6.
links: ours; half of the text.
Differs from the papers: there a document that fails one rule is dropped. Here the score falls with every rule that fails, so that pages
can be ordered. The rule about stop words also holds for other languages than English: the words are the most common ones of the
language, and no other of these languages may have more of them. Two occurrences of one stop word are enough.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

STOP_WORDS = {
    "en": "the be to of and that have with",  # those of Gopher
    "de": "der die und das nicht mit ist von",
    "es": "el que los las una por con del",
    "fr": "le les des et une est dans pour",
    "it": "il che di per una della sono con",
    "nl": "de het een van en dat zijn met",
    "pt": "o que os uma para com do não",
}
"""The most common words of each language that the rules know."""
_LANGUAGES_OF = {
    word: [language for language, others in STOP_WORDS.items() if word in others.split()]
    for words in STOP_WORDS.values()
    for word in words.split()
}
_PUNCTUATION = ".,;:!?\"'()"
_LETTER = re.compile(r"[^\W\d_]")
# Of a text; the rest is not looked at, so that no page takes longer than about two seconds.
_MOST_CHARACTERS = 1_000_000
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')\]]|$)")
_BULLETS = ("•", "-", "*", "‣", "▪", "◦", "–")
_TERMINAL = (".", "!", "?", '"', "'", "”")
_SHORT_LINE = 30  # characters


class PageText(NamedTuple):
    """The text of a page as the rules see it. Everything that several rules need is computed once."""

    text: str
    lines: Sequence[str]
    words: Sequence[str]
    counts: Counter[str]
    """how often each word comes"""
    ends: Sequence[int]
    """0, and for each word the characters of all words up to it"""
    language: str
    """the language that the text should have"""
    link_share: float
    """share of the characters that are in links"""

    @classmethod
    def of(cls, text: str, link_share: float, language: str) -> "PageText":
        words = text.split()
        ends = [0, *accumulate(map(len, words))]
        return cls(text, text.split("\n"), words, Counter(words), ends, language, link_share)


class TextRule(NamedTuple):
    name: str
    passes: Callable[[PageText], bool]


def score(text: str, link_share: float = 0.0, language: str = "en") -> float:
    """Return the share of the rules that a text passes; 0 for a text without words.

    >>> score(""), score("Home\\nNews\\nContact", link_share=1.0)
    (0.0, 0.625)
    """
    return 1.0 - len(failed_rules(text, link_share, language)) / len(RULES) if text.strip() else 0.0


def failed_rules(text: str, link_share: float = 0.0, language: str = "en") -> list[str]:
    """Return the names of the rules that a text with words fails."""
    page = PageText.of(text[:_MOST_CHARACTERS], link_share, language)
    return [rule.name for rule in RULES if not rule.passes(page)]


def _share_of_lines(page: PageText, holds: Callable[[str], bool]) -> float:
    return sum(map(holds, page.lines)) / len(page.lines)


def _is_in_language(page: PageText) -> bool:
    found = dict.fromkeys(STOP_WORDS, 0)
    for word, count in page.counts.items():
        plain = word.strip(_PUNCTUATION).lower()
        for language in _LANGUAGES_OF.get(plain, ()):
            found[language] += count
    return found[page.language] >= 2 and found[page.language] == max(found.values())


def _has_letters(page: PageText) -> bool:
    with_letter = sum(count for word, count in page.counts.items() if _LETTER.search(word))
    return with_letter >= 0.8 * len(page.words)


def _symbols(page: PageText) -> float:
    """Hash signs or ellipses, whichever are more, for each word."""
    return max(page.text.count("#"), page.text.count("...") + page.text.count("…")) / len(page.words)


def _repeated_lines(page: PageText) -> float:
    return 1.0 - len(set(page.lines)) / len(page.lines)


def _repeated_characters(page: PageText) -> float:
    """Share of the characters that are in lines which came before."""
    return 1.0 - sum(map(len, set(page.lines))) / sum(map(len, page.lines))


def _grams(page: PageText, n: int) -> list[tuple[str, ...]]:
    return list(zip(*(page.words[at:] for at in range(n)), strict=False))


def _top_gram(page: PageText, n: int) -> float:
    """Share of the characters of words that the most common sequence of n words has; 0 if no sequence comes twice."""
    most = Counter(_grams(page, n)).most_common(1)
    if not most or most[0][1] == 1:
        return 0.0
    gram, count = most[0]
    return sum(map(len, gram)) * count / page.ends[-1]


def _repeated_grams(page: PageText, n: int) -> float:
    """Share of the characters of words that are in sequences of n words which came before; each word counts once."""
    seen: set[tuple[str, ...]] = set()
    repeated, counted = 0, 0  # characters; words up to this one are counted
    for at, gram in enumerate(_grams(page, n)):
        if gram in seen:
            repeated += page.ends[at + n] - page.ends[max(at, counted)]
            counted = at + n
        else:
            seen.add(gram)
    return repeated / page.ends[-1]


RULES = (
    TextRule("gopher: 50 to 100,000 words", lambda page: 50 <= len(page.words) <= 100_000),
    TextRule(
        "gopher: 3 to 10 characters in the mean word",
        lambda page: 3 <= page.ends[-1] / len(page.words) <= 10,
    ),
    TextRule("gopher: at most 1 hash sign or ellipsis for 10 words", lambda page: _symbols(page) <= 0.1),
    TextRule(
        "gopher: at most 90 % of lines with a bullet",
        lambda page: _share_of_lines(page, lambda line: line.startswith(_BULLETS)) <= 0.9,
    ),
    TextRule(
        "gopher: at most 30 % of lines that end with an ellipsis",
        lambda page: _share_of_lines(page, lambda line: line.endswith(("...", "…"))) <= 0.3,
    ),
    TextRule("gopher: 80 % of words with a letter", _has_letters),
    TextRule("gopher: two stop words, of the language", _is_in_language),
    TextRule("gopher: at most 30 % repeated lines", lambda page: _repeated_lines(page) <= 0.3),
    TextRule(
        "gopher: no 2, 3 or 4 words over and over",
        lambda page: all(_top_gram(page, n) <= most for n, most in ((2, 0.20), (3, 0.18), (4, 0.16))),
    ),
    TextRule(
        "gopher: few repeated sequences of 5 or 10 words",
        lambda page: _repeated_grams(page, 5) <= 0.15 and _repeated_grams(page, 10) <= 0.10,
    ),
    TextRule("c4: three sentences", lambda page: len(_SENTENCE_END.findall(page.text)) >= 3),
    TextRule(
        "c4: no brace and no lorem ipsum", lambda page: "{" not in page.text and "lorem ipsum" not in page.text.lower()
    ),
    TextRule(
        "fineweb: 12 % of lines end a sentence",
        lambda page: _share_of_lines(page, lambda line: line.endswith(_TERMINAL)) >= 0.12,
    ),
    TextRule("fineweb: less than 10 % of characters in repeated lines", lambda page: _repeated_characters(page) < 0.1),
    TextRule(
        "fineweb: less than 67 % short lines",
        lambda page: _share_of_lines(page, lambda line: len(line) < _SHORT_LINE) < 0.67,
    ),
    TextRule("links: at most half of the text", lambda page: page.link_share <= 0.5),
)
