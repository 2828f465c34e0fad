"""WebSub against a foreign hub, Flask-WebSub's, if it is installed: discover, subscribe, verify, deliver, unsubscribe.

The hub is not a dependency of this project. To run this test: `python -m venv X && X/bin/pip install flask-websub celery`,
and `TRAPLINE_HUB_PYTHON=X/bin/python pytest tests/signals/test_real_hub.py`.

"""

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.crawler.small_server import small_server, text
from tests.signals.crawled import crawl_of
from tests.signals.endpoint_world import endpoint
from tests.signals.test_websub import subscriptions_in
from trapline.cli import run
from trapline.signals.endpoint.server import Settings
from trapline.signals.published.feed import read_feed

PYTHON = os.environ.get("TRAPLINE_HUB_PYTHON", sys.executable)
SCRIPT = Path(__file__).with_name("flask_hub.py")


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if subprocess.run([PYTHON, "-c", "import flask_websub, celery"], capture_output=True).returncode:
        pytest.skip("flask-websub and celery are not installed: see the head of this file")


@contextmanager
def flask_hub(folder: Path) -> Iterator[str]:
    command = [PYTHON, str(SCRIPT), "127.9.0.5", str(folder / "hub.sqlite3")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.9.0.5:{int(process.stdout.readline())}/hub"
        finally:
            process.kill()


def free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def atom(*entries: tuple[str, str]) -> str:
    items = "".join(f'<entry><link href="{path}"/><updated>{at}</updated></entry>' for path, at in entries)
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{items}</feed>'


def publish(hub: str, topic: str) -> None:
    with urllib.request.urlopen(hub, f"hub.mode=publish&hub.topic={topic}".encode(), timeout=20) as answer:
        assert answer.status == 202


def test_the_whole_cycle_of_a_subscription(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = {"feed": atom(("/1", "2024-01-01T00:00:00Z"))}

    def topic_answers(host: str, target: str) -> bytes:
        links = f'Link: <{hub}>; rel="hub", <{topic}>; rel="self"\r\n'
        return text(published["feed"], links)

    with flask_hub(tmp_path) as hub, small_server(topic_answers, ["127.9.0.6"]) as server:
        site = f"http://127.9.0.6:{server.port}"
        topic = f"{site}/feed"
        folder = crawl_of(tmp_path / "crawl", [f"{site}/"])
        port = free_port()
        settings = Settings(folder, port=port, allow_private=True, public_url=f"http://127.0.0.1:{port}")
        with endpoint(settings, [site], read_feed) as one:
            assert run(["refresh", "subscribe", str(folder), topic, "--allow-private"]) == 0
            assert f"{topic}: active" in capsys.readouterr().out
            publish(hub, topic)
            one.until(lambda: len(one.signals()) == 2)
            published["feed"] = atom(("/2", "2024-01-02T00:00:00Z"), ("/1", "2024-01-01T00:00:00Z"))
            publish(hub, topic)
            one.until(lambda: len(one.signals()) == 3)
            publish(hub, topic)
            one.until(lambda: one.counts("websub").get("replayed") == 1)
            found = [(signal.url, signal.verified, signal.channel) for signal in one.signals()]
            assert found == [(url, True, "websub") for url in (topic, f"{site}/1", f"{site}/2")]
            assert one.signals()[2].moment == 1704153600.0
            assert run(["refresh", "subscribe", str(folder), topic, "--leave"]) == 0
            one.until(lambda: subscriptions_in(folder)[0].state == "ended")
            publish(hub, topic)
            assert len(one.signals()) == 3 and one.counts("websub") == {"accepted": 3, "repeated": 1, "replayed": 1}
