"""The pages in a real browser, over a store that a real run filled: layout, keyboard, contrast, live figures."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from support.many_sessions import many_events
from support.real_run import HOSTILE, QUESTION, real_run
from support.viewer import write

from spanforge.viewer import create_viewer
from spanforge.viewer.visits import Guest

sync_api = pytest.importorskip("playwright.sync_api", reason="drives the browser; in the extra `test`")
axe_api = pytest.importorskip("axe_playwright_python.sync_playwright", reason="knows the rules; in the extra `test`")

_CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_CHROMIUM is None, reason="no chromium on this machine, and none is fetched from elsewhere"),
]

_WIDE, _NARROW = {"width": 1280, "height": 900}, {"width": 320, "height": 640}  # 1280 px at 400 %


@contextmanager
def _served(app: Any) -> Iterator[str]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listening.close()


async def _sign_in(credential: str) -> Guest | None:
    return Guest("acme") if credential == "a-key" else None


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("filled") / "events.db"
    return path, real_run(path)


@pytest.fixture(scope="module")
def addresses(filled: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, str]]:
    store, ids = filled
    damaged = write(tmp_path_factory.mktemp("damaged") / "events.jsonl", many_events(3))
    with damaged.open("ab") as file:
        file.write(b"not JSON\n")
    apps = [
        create_viewer(store),
        create_viewer(store.parent / "later.db"),
        create_viewer(store, sign_in=_sign_in),
        create_viewer(damaged),
    ]
    apps[0].state.shell.store.catch_up()
    with _served(apps[0]) as full, _served(apps[1]) as empty, _served(apps[2]) as door, _served(apps[3]) as broken:
        yield {
            "sessions": f"{full}/sessions",
            "filtered": f"{full}/sessions?retriever=pinecone&grounding_min=0.1&status=ok",
            "no match": f"{full}/sessions?latency_min=1000000",
            "session": f"{full}/sessions/{ids[0]}",
            "compared": f"{full}/sessions/{ids[0]}/compare?with={ids[1]}",
            "columns": f"{full}/sessions?columns=retriever model tags latency errors feedback escalated conversation",
            "live": f"{full}/tail",
            "failed": f"{full}/sessions?status=error",
            "overview": f"{full}/overview",
            "beside": f"{full}/overview?group=retriever&against=retriever%3Dpinecone",
            "delivery": f"{full}/delivery",
            "not found": f"{full}/sessions/nobody",
            "empty": f"{empty}/sessions",
            "empty overview": f"{empty}/overview",
            "empty delivery": f"{empty}/delivery",
            "sign in": f"{door}/sessions",
            "damaged": f"{broken}/delivery",
        }


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any) -> Generator[Any]:
    """Return a maker of pages; a script error, a failed request or a breach of the policy fails the test."""
    contexts, complaints = [], []

    def make(address: str, *, viewport: Any = _WIDE, **options: Any) -> Any:
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if "Policy" in message.text else None)
        page.on("request", lambda request: complaints.append(request.url) if "127.0.0.1" not in request.url else None)
        page.goto(address)
        if "/sessions?status=error" in address:
            page.click(".cards .id")
            page.wait_for_selector("#timeline")
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


_ALL = (
    "sessions", "filtered", "no match", "session", "compared", "columns", "live", "failed", "overview", "beside",
    "delivery", "not found", "empty", "empty overview", "empty delivery", "sign in", "damaged",
)  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", _ALL)
def test_axe_finds_nothing(open_page: Any, addresses: dict[str, str], name: str, scheme: str) -> None:
    page = open_page(addresses[name], color_scheme=scheme)
    for summary in page.query_selector_all("details:not([open]) > summary"):
        summary.click()
    found = axe_api.Axe().run(page).response["violations"]
    assert [(rule["id"], rule["impact"], [node["html"][:120] for node in rule["nodes"]]) for rule in found] == []


@pytest.mark.parametrize("name", _ALL)
def test_nothing_is_lost_at_400_percent(open_page: Any, addresses: dict[str, str], name: str) -> None:
    page = open_page(addresses[name], viewport=_NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    # What is wider than its place can be reached by scrolling that place, with the keyboard too.
    stuck = page.evaluate("""() => [...document.querySelectorAll("main *")].filter((one) => {
      const hidden = getComputedStyle(one);
      return one.scrollWidth > one.clientWidth + 1 && hidden.overflowX === "hidden"
        && !one.closest(".hidden, thead, svg") && one.clientWidth > 1;
    }).map((one) => one.outerHTML.slice(0, 90))""")
    assert stuck == []


def test_a_session_is_reached_by_the_keyboard_alone(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    seen: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        what = page.evaluate(
            "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
        )
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"{what} does not show that it has the focus"
        seen.append(what)
        if what == "id":
            break
    assert seen.index("query") < seen.index("f-status") < seen.index("id"), "in the order of the page"
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/*")
    assert page.locator("h1").inner_text().startswith("Session")


def test_single_keys_lead_on_until_they_are_switched_off(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"])
    ids = page.locator(".cards .id").all_inner_texts()
    focused = "document.activeElement.textContent.trim() || document.activeElement.id"
    for key, where in (("j", ids[0]), ("j", ids[1]), ("k", ids[0]), ("/", "query"), ("j", "query")):
        page.keyboard.press(key)
        assert page.evaluate(focused) == where
    assert page.input_value("#query") == "j"
    page.click("[data-keys-switch]")
    page.keyboard.press("/")
    assert page.evaluate(focused) == "Keys: off"
    page.goto(addresses["session"])
    page.click("[data-keys-switch]")
    page.keyboard.press("j")
    page.wait_for_url(lambda address: address != addresses["session"])


def test_times_are_ones_own_where_that_is_wanted(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"], timezone_id="Asia/Kolkata")
    first = page.locator("time").first
    universal = datetime.fromisoformat(first.inner_text())
    page.click("[data-clock-switch]")
    assert datetime.fromisoformat(first.inner_text()) - universal == timedelta(hours=5, minutes=30)
    assert page.locator("[data-zone]").first.inner_text() == "local"
    page.reload()
    assert datetime.fromisoformat(first.inner_text()) - universal == timedelta(hours=5, minutes=30)


def test_a_question_is_found_and_stands_in_no_address(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"])
    page.fill("#query", QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_url("**digest=*")
    assert page.locator(".cards tbody tr").count() == 1
    assert "capital" not in page.evaluate("location.href + document.referrer")
    assert "capital" not in page.content()
    page.go_back()
    assert "capital" not in page.url


def test_filters_make_the_address(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"])
    page.select_option("#f-retriever", "pinecone")
    page.click("#more summary")
    page.fill("[name=grounding_max]", "0.5")
    page.click("text=Apply")
    page.wait_for_url("**retriever=pinecone*")
    assert page.locator(".cards tbody tr").count() == 1
    page.reload()
    assert page.input_value("[name=grounding_max]") == "0.5"
    page.click("text=Clear")
    page.wait_for_url("**/sessions")


def test_no_script_in_a_value_runs(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"])
    page.on("dialog", lambda dialog: pytest.fail("a value ran as a script"))
    page.locator(".cards .id", has_text="<script>").click()
    page.wait_for_selector("#timeline")
    assert HOSTILE[:20] in page.locator("h1").inner_text()


def test_pages_work_without_scripts(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"], java_script_enabled=False)
    page.click(".cards .id >> nth=1")
    assert page.locator("#timeline").count() == 1
    assert page.locator("[data-copy]:visible").count() == 0, "what needs scripts is not shown without"


def test_ids_are_copied(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["session"], permissions=["clipboard-read", "clipboard-write"])
    page.click(".ids [data-copy] >> nth=0")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == addresses["session"].rpartition("/")[2]


def test_an_export_is_saved_under_its_name(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["session"])
    with page.expect_download() as waiting:
        page.click("text=Tez bundle")
    assert waiting.value.suggested_filename.endswith(".tez")


def test_figures_follow_the_store_until_paused(open_page: Any, tmp_path: Path) -> None:
    path, events = tmp_path / "events.db", list(many_events(3))
    write(path, events[:6])
    app = create_viewer(path)
    with _served(app) as address:
        page = open_page(f"{address}/sessions")
        rows = page.locator(".cards tbody tr")
        rows.first.wait_for()
        write(path, events[6:12])
        sync_api.expect(rows).to_have_count(2, timeout=20_000)
        page.click("[data-pause]")
        write(path, events[12:])
        page.wait_for_timeout(4_000)
        assert rows.count() == 2
        page.click("[data-pause]")
        sync_api.expect(rows).to_have_count(3, timeout=20_000)
    app.state.close()


def test_figures_rest_where_motion_is_unwelcome(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sessions"], reduced_motion="reduce")
    assert page.locator("[data-pause]").inner_text() == "Resume updates"


def test_the_theme_is_kept(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["overview"], color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("[data-theme-switch]")
    page.click("[data-theme-switch]")
    assert page.locator("[data-theme-switch]").inner_text() == "Theme: dark"
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark


def test_signing_in_and_out(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page(addresses["sign in"])
    page.fill("#credential", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=not known here")
    page.fill("#credential", "a-key")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Organisation acme")
    page.click("text=Sign out")
    page.wait_for_selector("#credential")
