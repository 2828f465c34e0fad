"""The rules for text tell prose from lists of links, machine output and repetition, and each rule can fail by itself."""

from pathlib import Path

import pytest

from trapline.crawler.quality.scorers import link_share
from trapline.crawler.quality.text_rules import RULES, STOP_WORDS, failed_rules, score
from trapline.fetch.html.visible_text import visible_text

DECISIONS = sorted((Path(__file__).parents[2] / "docs" / "decisions").glob("0*.md"))
PROSE = """The store commits the pages of a batch together, so that the database and the log always agree with each other.
A crawl that is killed begins again with the last commit, and asks for no page twice that it has on disk.
What a program has seen is in the folder, because it receives pages after they were written to the archive.
Nobody has to wait for that: the loop goes on with other sites, and the store tells it later what is safe."""
GERMAN = """Der Speicher schreibt die Seiten und das Protokoll in einer Transaktion, damit beide zueinander passen.
Wird die Software beendet, so ist nicht alles verloren: sie beginnt mit dem letzten Stand und lädt keine Seite noch einmal.
Das Programm sieht die Seiten erst dann, wenn sie auf der Platte sind, und verpasst dadurch nichts von der Arbeit.
Niemand muss darauf warten, denn der Rest läuft weiter und wird von dem Speicher über das Ergebnis benachrichtigt."""


def failed(text: str, **more: object) -> list[str]:
    return [name.partition(":")[2].strip() for name in failed_rules(text, **more)]  # type: ignore[arg-type]


def test_prose_passes_every_rule() -> None:
    assert failed(PROSE) == []
    assert score(PROSE) == 1.0


@pytest.mark.parametrize("file", DECISIONS[:20], ids=lambda file: file.stem)
def test_documents_written_by_people_pass_almost_every_rule(file: Path) -> None:
    text = "\n".join(line for line in file.read_text().splitlines() if line and not line.startswith(("#", "|", "```")))
    assert score(text) >= 1 - 2 / len(RULES), failed(text)


TEXTS = {
    "50 to 100,000 words": "\n".join(PROSE.splitlines()[:2]),
    "3 to 10 characters in the mean word": PROSE + " a b" * 200,
    "at most 1 hash sign or ellipsis for 10 words": PROSE.replace(" the", " #the ...") + " # # # # # # # # #",
    "at most 90 % of lines with a bullet": "\n".join(f"- {line}" for line in PROSE.splitlines()),
    "at most 30 % of lines that end with an ellipsis": "\n".join(f"{line}..." for line in PROSE.splitlines()),
    "80 % of words with a letter": PROSE + " 3141 - 2718" * 20,
    "two stop words, of the language": GERMAN,
    "at most 30 % repeated lines": "\n".join([PROSE] * 3),
    "no 2, 3 or 4 words over and over": PROSE + " click here" * 12,
    "few repeated sequences of 5 or 10 words": PROSE + " " + " ".join(PROSE.split()),
    "three sentences": PROSE.replace(".", ","),
    "no brace and no lorem ipsum": PROSE + "\nLorem ipsum dolor sit amet.",
    "12 % of lines end a sentence": "\n".join(f"{line} and" for line in PROSE.splitlines()),
    "less than 10 % of characters in repeated lines": PROSE + "\n" + PROSE.splitlines()[0],
    "less than 67 % short lines": PROSE
    + "\nHome page.\nNews of today.\nContact.\nImprint.\nAbout us.\nJobs.\nPress.\nShop.\nHelp.\nMap.",
}


@pytest.mark.parametrize("rule", TEXTS)
def test_every_rule_can_fail(rule: str) -> None:
    assert rule in failed(TEXTS[rule])


def test_every_rule_has_a_text_that_fails_it() -> None:
    names = {rule.name.partition(":")[2].strip() for rule in RULES}
    assert names == {*TEXTS, "at most half of the text"}
    assert failed(PROSE, link_share=0.6) == ["at most half of the text"]


def test_a_text_has_to_be_in_the_language() -> None:
    assert score(GERMAN, language="de") == 1.0 > score(GERMAN)
    assert all(len(words.split()) == 8 for words in STOP_WORDS.values())


def test_an_empty_text_has_the_score_0() -> None:
    assert score("") == score(" \n ") == 0.0


def test_the_share_of_links_counts_characters_of_visible_text() -> None:
    html = '<p>abcd <A HREF="/x">ef<b>gh</b></A> <abbr>ij</abbr></p><a name=y>'
    assert link_share(html, visible_text(html).text) == pytest.approx(4 / 12)
    assert link_share("<p>no link", "no link") == 0.0


def test_many_open_links_take_linear_time() -> None:
    """A million tags without an end: a search for each of them would take hours."""
    html = "<a href=x>" * 300_000
    assert link_share(html, "text") == 0.0
    assert link_share("<a>" * 300_000 + "</a>", "text") == 0.0
