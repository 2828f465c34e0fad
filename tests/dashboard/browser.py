"""A real browser on the dashboard: Debian's Chromium, driven by playwright. Everything that a page should not do is noted."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => console.error(`refused by the policy: ${event.violatedDirective}`));
"""

# The contrast of every visible text with its background, and what is too little of it (WCAG 2.2, AA).
LOW_CONTRAST = """() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const isSkipped = (element) => !element.getClientRects().length || element.closest(":disabled, .unseen, .skip, title, option");
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element), text = walker.currentNode.textContent;
    if (!text.trim() || isSkipped(element)) continue;
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [high, low] = [light(parts(colour)), light(ground(element))].sort((one, other) => other - one);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (isLarge ? 3 : 4.5)) found.push([text.slice(0, 40), colour, contrast]);
  }
  return found;
}"""

# Controls without a name for a screen reader, and cells without a scope.
NAMELESS = """() => {
  const controls = "button, input, select, textarea, a, summary, [role=slider], [role=region], progress, svg[role=img]";
  const hasText = (one) => one.textContent.trim() && !["SELECT", "TEXTAREA"].includes(one.tagName);
  const hasName = (one) => hasText(one) || one.labels?.length || one.getAttribute("aria-label");
  const nameless = [...document.querySelectorAll(controls)].filter((one) => one.getClientRects().length && !hasName(one));
  return [...nameless, ...document.querySelectorAll("th:not([scope])")].map((one) => `${one.tagName} ${one.className}`);
}"""

OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@contextmanager
def launched() -> Iterator[Any]:
    """Run the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed")
    pytest.importorskip("playwright.sync_api")
    with launched() as browser:
        yield browser


@contextmanager
def browsing(browser: Any, width: int = 1400, scheme: str = "light", may_fail: bool = False) -> Iterator[Any]:
    """Yield a page. Afterwards it must have opened no dialog, logged no error and broken no policy.

    `may_fail`: the test makes requests fail, which the browser logs as errors.
    """
    troubles: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.add_init_script(_REPORT_VIOLATIONS)
    page = context.new_page()
    page.set_default_timeout(10_000)

    def dismissed(dialog: Any) -> None:
        troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def logged(message: Any) -> None:
        is_failed_request = may_fail and message.text.startswith("Failed to load resource")
        if message.type in ("error", "warning") and not is_failed_request:
            troubles.append(message.text)

    page.on("dialog", dismissed)
    page.on("console", logged)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert troubles == []
