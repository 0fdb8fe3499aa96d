"""The built site: every link leads somewhere, and a browser loads every page without an error or a sideways scroll."""

import json
import os
import queue
import shutil
import subprocess
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from sklearn.datasets import load_digits

import mopn

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
LIVE = SITE / "_static" / "live"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
WIDTHS = 1280, 390
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
needs_site = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium")
pytestmark = pytest.mark.slow

# Each page gets this before its own scripts.
LISTENER = b"""<script>
var faults = [];
console.error = (...words) => faults.push(words.join(" "));
addEventListener("error", event => faults.push(event.message));
addEventListener("unhandledrejection", event => faults.push(event.reason));
</script>"""
# A page within a page has the width of its frame, also for the rules of its style sheets. Code, tables, formulas
# and pictures alone may scroll sideways.
WALK = """<!doctype html><link rel="icon" href="data:,"><iframe height="800"></iframe><script>
(async () => {
  const PARTS = "html, body :not(pre, pre *, table, table *, .formula, .long-formula, math, math *, p:has(> img))";
  const frame = document.querySelector("iframe"), faults = [];
  for (const page of %s) {
    frame.width = %d;
    await new Promise(loaded => { frame.onload = loaded; frame.src = page; });
    for (const width of %s) {
      frame.width = width;
      for (const part of frame.contentDocument.querySelectorAll(PARTS)) {
        const {scrollWidth: wide, clientWidth: room} = part;
        // Parts for screen readers alone have one pixel; a part that spills over counts for the parts around it.
        if (wide <= room + 1 || room <= 1) continue;
        if (part.tagName != "HTML" && getComputedStyle(part).overflowX == "visible") continue;
        faults.push(`${page}: ${part.tagName} ${part.className} has ${wide} pixels in ${room}, at ${width}`);
      }
    }
    faults.push(...frame.contentWindow.faults.map(fault => `${page}: ${fault}`));
  }
  await fetch("faults", {method: "POST", body: JSON.stringify(faults)});
})();
</script>"""

# Draws on docs/live.md: five pictures of the data, and a stroke from the top to the bottom.
DRAW = """<!doctype html><link rel="icon" href="data:,"><iframe width="%d" height="800"></iframe><script>
(async () => {
  const frame = document.querySelector("iframe"), pause = () => new Promise(done => setTimeout(done, 100));
  await new Promise(loaded => { frame.onload = loaded; frame.src = "live.html"; });
  const {contentDocument: site, contentWindow: window} = frame, page = site.getElementById("live");
  const part = name => page.querySelector(`.live-${name}`), answers = [];
  part("start").click();
  while (!page.answer && part("start").disabled) await pause();
  const faults = page.answer ? window.faults : [part("state").textContent];
  if (page.answer) {
    for (let number = 0; number < 5; number++, part("example").click()) answers.push(page.answer);
    part("clear").click();
    const {clientWidth: width, clientHeight: height, clientLeft: border} = part("drawing");
    const {left, top} = part("drawing").getBoundingClientRect();
    for (const [type, at] of [["pointerdown", 0.05], ["pointermove", 0.95]])
      part("drawing").dispatchEvent(new window.PointerEvent(type,
        {buttons: 1, clientX: left + border + width / 2, clientY: top + border + height * at}));
    const {pixels} = page.answer;
    while (page.answer.pixels == pixels) await pause();
    answers.push(page.answer);
    const {scrollWidth, clientWidth} = site.documentElement;
    if (scrollWidth > clientWidth) faults.push(`${scrollWidth} pixels in ${clientWidth}`);
  }
  const report = [faults, part("certificate").textContent, ...answers];
  await fetch("faults", {method: "POST", body: JSON.stringify(report)});
})();
</script>"""

# Asks the search of the site for one thing after the other, and reports the page of each first result.
ASK = """<!doctype html><link rel="icon" href="data:,"><iframe width="1280" height="800"></iframe><script>
(async () => {
  const frame = document.querySelector("iframe"), pause = () => new Promise(done => setTimeout(done, 20)), found = [];
  for (const words of %s) {
    await new Promise(loaded => { frame.onload = loaded; frame.src = `search.html?q=${encodeURIComponent(words)}`; });
    const first = () => frame.contentDocument.querySelector("ul.search li a");
    for (let tries = 0; !first() && tries < 250; tries++) await pause();
    found.push(first() ? first().pathname.slice(1) : "nothing");
  }
  await fetch("faults", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""
# What readers looked for, and the page that answers it.
SEARCHED = {
    "confusion matrix": "csv_to_service",
    "drift": "csv_to_service",
    "monitoring": "csv_to_service",
    "new categories": "csv_to_service",
    "calibration": "csv_to_service",
    "resume": "stop_and_go_on",
    "checkpoint": "stop_and_go_on",
    "tweedie": "extending",
    "confidence interval": "solvers",
    "class imbalance": "solvers",
    "callback": "solvers",
    "Cortex-M0": "deploy",
    "monotone": "tables",
    "cold start": "recommenders",
    "implicit feedback": "recommenders",
    "overfitting": "strength",
    "predict_proba": "which_model",
    "Frank-Wolfe": "convergence",
}


class Page(HTMLParser):
    """The links of a page, and the targets of links in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), {""}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        self.links |= {unquote(attrs[key]) for key in ("href", "src") if attrs.get(key)}


def pages_of(site):
    """Return the names of a site's pages, without a theme's own files."""
    names = (path.relative_to(site) for path in sorted(site.rglob("*.html")))
    return [name.as_posix() for name in names if name.parts[0] != "_static"]


def broken_links(site):
    """Return the links within a site to files or anchors that do not exist.

    From a page of source code the file is enough: sphinx links all objects of a module by one of its names.
    """
    pages = {name: Page(site / name) for name in pages_of(site)}
    broken = set()
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath((site / name).parent / parts.path)) if parts.path else site / name
            linked = pages.get(os.path.relpath(target, site))
            has_anchor = linked is None or name.startswith("_modules") or parts.fragment in linked.anchors
            if not target.is_file() or not has_anchor:
                broken.add(f"{name}: {link}")
    return broken


class Handler(SimpleHTTPRequestHandler):
    """The files of a site, pages with the listener, and the walk over all of them, which reports its faults."""

    def do_GET(self):
        pages = pages_of(Path(self.directory))
        if self.path == "/walk":
            self.answer(self.server.walk)
        elif self.path[1:] in pages:
            page = (Path(self.directory) / self.path[1:]).read_bytes()
            self.answer(page.replace(b"<head>", b"<head>" + LISTENER, 1))
        else:
            super().do_GET()

    def do_POST(self):
        self.server.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(b"")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

    def log_error(self, *_):
        self.server.missing.add(f"{self.path} is missing")


def reported(site, walk, profile):
    """Return the report of the page ``walk``, next to the pages of a site, in Chromium, and the missing files."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=site)) as server:
        server.walk, server.reports, server.missing = walk.encode(), queue.Queue(), set()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", f"http://127.0.0.1:{server.server_port}/walk"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return server.reports.get(timeout=600), server.missing
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()


def faults_in_a_browser(site, profile):
    """Return what Chromium finds in a site: errors of its scripts, files that are not there, and pages too wide."""
    walk = WALK % (json.dumps(pages_of(site)), WIDTHS[0], list(WIDTHS))
    return set().union(*reported(site, walk, profile))


@needs_site
def test_links_lead_somewhere():
    assert not broken_links(SITE)


@needs_site
def test_names_of_classes_are_links():
    pages = Page(SITE / "which_model.html"), Page(SITE / "api" / "index.html")
    for page, folder in zip(pages, ("api/generated", "generated"), strict=True):
        name = "mopn.estimators.MultiOutputPNClassifier"
        assert f"{folder}/{name}.html#{name}" in page.links


@needs_site
@needs_browser
def test_a_browser_loads_every_page(tmp_path):
    assert not faults_in_a_browser(SITE, tmp_path)


@needs_site
@needs_browser
def test_the_search_finds_the_page_that_answers_first(tmp_path):
    found, missing = reported(SITE, ASK % json.dumps(list(SEARCHED)), tmp_path)
    assert not missing
    assert dict(zip(SEARCHED, found, strict=True)) == {words: f"{page}.html" for words, page in SEARCHED.items()}


@needs_site
@needs_browser
def test_the_browser_computes_what_mopn_does(tmp_path):
    """Pictures of the data and a stroke of the pointer, on a phone's page: classes, SHAP values, the certificate."""
    if not (LIVE / "pyodide.js").exists():
        pytest.skip("the site was built without Pyodide: docs/pyodide.txt")
    (faults, certificate, *answers), missing = reported(SITE, DRAW % min(WIDTHS), tmp_path)
    assert not faults
    assert not missing
    model, (X, y) = mopn.load(LIVE / "digits.npz"), load_digits(return_X_y=True)
    stored = json.loads((LIVE / "certificate.json").read_text("utf-8"))
    assert f"{len(model.basis)} units" in certificate
    assert f"{100 * stored['relative_gap']:.2g}%" in certificate
    drawn = np.array([answer["pixels"] for answer in answers], dtype=float)
    np.testing.assert_array_equal(drawn[:-1], X[: len(answers) - 1])
    stroke = drawn[-1].reshape(8, 8)
    assert stroke.any(axis=0).tolist() == [False] * 3 + [True] * 2 + [False] * 3
    assert stroke.any(axis=1).all()
    labels = model.predict(drawn)
    np.testing.assert_array_equal([answer["label"] for answer in answers], labels)
    np.testing.assert_array_equal(labels[:-1], y[: len(answers) - 1])
    for name, numbers in {
        "probabilities": model.predict_proba(drawn),
        "shap": mopn.explain.shap_values(model, drawn, X)[np.arange(len(drawn)), :, labels],
        "base": model.outputs(X).mean(axis=0)[labels],
        "output": model.outputs(drawn).max(axis=1),
    }.items():
        np.testing.assert_allclose([answer[name] for answer in answers], numbers, rtol=0, atol=1e-10, err_msg=name)


PAGE = "<!doctype html><html><head></head><body>%s</body></html>"
FAULTS = {
    "wide.html": '<p style="width: 500px">wide</p>',
    "cut.html": '<div style="width: 200px; overflow: auto"><p style="width: 300px">cut</p></div>',
    "error.html": "<script>console.error('told')</script>",
    "thrown.html": "<script>undefined_name()</script>",
    "image.html": '<img src="none.png">',
}


@pytest.fixture
def faulty(tmp_path):
    """A site of one good page and several with a fault each."""
    site = tmp_path / "site"
    site.mkdir()
    for name, body in FAULTS.items():
        (site / name).write_text(PAGE % body, "utf-8")
    links = "index.html#here wide.html #here https://example.org gone.html #gone wide.html#gone"
    anchors = " ".join(f'<a href="{link}">x</a>' for link in links.split())
    (site / "index.html").write_text(PAGE % f'<p id="here">{anchors}</p>', "utf-8")
    return site


def test_broken_links_are_found(faulty):
    broken = {"image.html: none.png", *(f"index.html: {link}" for link in ("gone.html", "#gone", "wide.html#gone"))}
    assert broken_links(faulty) == broken


@needs_browser
def test_faults_of_pages_are_found(faulty, tmp_path):
    found = faults_in_a_browser(faulty, tmp_path / "profile")
    told = "/none.png is", "cut.html: DIV", "error.html: told", "thrown.html: ", "wide.html: HTML"
    assert all(fault.startswith(told) for fault in found)
    assert all(any(fault.startswith(start) for fault in found) for start in told)
    assert not any("at 1280" in fault for fault in found if "wide" in fault)
