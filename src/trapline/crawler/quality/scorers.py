"""What scores pages, by the NAME of `--quality content:NAME`: rules for text, a fastText model, or a function of the user.

A scorer takes several pages and returns as many numbers, 0 or more: a model is faster on a batch. The process of scorer_pool.py
makes it once and calls it. This module neither fetches nor ranks.

text[:LANGUAGE]        the rules of text_rules.py; LANGUAGE: en (the default), de, es, fr, it, nl or pt
fasttext=FILE[:LABEL]  the probability of LABEL by a fastText model; without LABEL, that of the first label of the model
MODULE:FUNCTION        a function of the user that takes a list of pages (trapline.Page) and returns as many numbers
"""

import importlib
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from trapline.crawler.handler.page import Page
from trapline.crawler.quality import text_rules
from trapline.crawler.quality.fasttext_model import fasttext_scorer
from trapline.errors import ConfigError, nearest
from trapline.fetch.html.visible_text import visible_text
from trapline.frontier.layout import RANK_LIMIT
from trapline.strategies.base.inputs import CONTENT, CONTENT_FORMS, MODULE_FUNCTION, module_correction

Scorer = Callable[[Sequence[Page]], Any]  # the answer of a user's function may be anything: `checked` looks at it
_FASTTEXT = "fasttext="
_ANCHOR = re.compile(r"<a(?=[\s>])", re.IGNORECASE)
_ANCHOR_END = re.compile(r"</a(?=[\s>])", re.IGNORECASE)
_PLAIN = "text/plain"


def scorer_of(source: str, folder: str) -> Scorer:
    """Return the scorer of this value of --quality. Raise `ConfigError` if it cannot be made. `folder`: where a user's MODULE or FILE
    is."""
    name = source.removeprefix(CONTENT)
    if name.startswith(_FASTTEXT):
        return _fasttext_scorer(source, name.removeprefix(_FASTTEXT), folder)
    kind, _, language = name.partition(":")
    if kind == "text":
        return _text_scorer(source, language or "en")
    if not MODULE_FUNCTION.fullmatch(name):
        raise ConfigError(f"--quality {source}: no such scorer; {CONTENT_FORMS}")
    return _user_scorer(source, name, folder)


def checked(numbers: Any, count: int) -> list[float]:
    """Return the numbers of a scorer as floats. Raise ValueError if they are not one quality for each of `count` pages."""
    if isinstance(numbers, (str, bytes)):
        raise TypeError(f"a text of {len(numbers)} characters is no list of numbers; return one number for each page")
    scores = [float(number) for number in numbers]
    if len(scores) != count:
        raise ValueError(f"{len(scores)} numbers for {count} pages; return one for each page")
    for score in scores:
        if not 0.0 <= score < RANK_LIMIT or math.isnan(score):
            raise ValueError(f"{score} is not a quality; return numbers from 0 to 2^42")
    return scores


def text_of(page: Page) -> str:
    """Return the text of a page that a reader sees; "": it is neither HTML nor plain text."""
    if page.content_type == _PLAIN:
        return "\n".join(line for line in map(str.strip, page.text.splitlines()) if line)
    return page.visible_text


def link_share(html: str, text: str) -> float:
    """Return the share of the visible text that is in links. Linear in the length of the page, whatever its markup.

    >>> link_share("<p>one <a href=x>two</a>", "one two")
    0.42857142857142855
    """
    inside = []
    for piece in _ANCHOR_END.split(html)[:-1]:
        found = _ANCHOR.search(piece)
        if found:
            inside.append(piece[found.start() :])
    linked = visible_text("</a>\n".join(inside)).text if inside else ""
    return min(1.0, len(linked.replace("\n", "")) / len(text)) if text else 0.0


def _text_scorer(source: str, language: str) -> Scorer:
    if language not in text_rules.STOP_WORDS:
        raise ConfigError(f"--quality {source}: {nearest(language, text_rules.STOP_WORDS)}")

    def scores(pages: Sequence[Page]) -> list[float]:
        return [_text_score(page, language) for page in pages]

    return scores


def _text_score(page: Page, language: str) -> float:
    text = text_of(page)
    return text_rules.score(text, link_share(page.text, text) if page.is_html else 0.0, language)


def _user_scorer(source: str, name: str, folder: str) -> Scorer:
    module, _, function = name.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)  # an installed command does not search the current folder for modules
    try:
        found = getattr(importlib.import_module(module), function)
    except (Exception, SystemExit) as error:
        line = " ".join(str(error).split())
        raise ConfigError(
            f"--quality {source}: raises {type(error).__name__}: {line}; {module_correction(source, error)}"
        ) from error
    if not callable(found):
        raise ConfigError(f"--quality {source}: {function} is not a function; {CONTENT_FORMS}")
    return lambda pages: found(list(pages))


def _fasttext_scorer(source: str, name: str, folder: str) -> Scorer:
    score = fasttext_scorer(source, name, folder)
    return lambda pages: [score(text_of(page)) for page in pages]
