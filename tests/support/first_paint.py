"""What a page shows of an explorer's timeline after "Run All", by its pixels, on a machine that is kept busy."""

import base64
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass

import nbformat

from tests.inner.view import GREEN, ORANGE, SKY
from tests.support.jupyter_server import TOKEN

BEGUN = re.compile(r"\[[*\d]")
READY = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
TIMELINE = ".sx-explorer .sx-timeline, .sx-still .sx-picture"
"""The timeline of an explorer, or its picture in a cell whose explorer a later cell shows."""
FEWEST = 300
"""Pixels of the colors of bars, without which a timeline is blank."""
COUNT = """async ([png, colors]) => {
  const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + png)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const {data} = context.getImageData(0, 0, image.width, image.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4)
    if (colors.some(c => c.every((part, i) => Math.abs(data[at + i] - part) < 12))) found += 1;
  return found;
}"""
COLOURS = (GREEN, ORANGE, SKY)
"""Of the bars of appends, overwrites and compactions."""
BOXES = """nodes => nodes.map(node => node.getBoundingClientRect()).filter(one => one.width > 1 && one.height > 1)
  .map(({x, y, width, height}) => ({x, y, width, height}))"""
LISTEN = """() => {
  window.sxMessages = {execute_input: [], execute_reply: []};
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener('message', ({data}) => {
        const text = typeof data === 'string' ? data : new TextDecoder('latin1').decode(data.slice(0, 2000));
        for (const [name, times] of Object.entries(window.sxMessages))
          if (text.match(`"msg_type": ?"${name}"`)) times.push(performance.now());
      });
    }
  };
}"""
"""Keeps when the kernel began and ended each cell that runs."""
WATCH = """([selector, index, place]) => {
  window.sxWidths = [];
  const times = window.sxTimes = {}, {execute_input: begun, execute_reply: ended} = window.sxMessages;
  begun.length = ended.length = 0;
  for (const one of document.querySelectorAll('.sx-timeline canvas')) one.dataset.isOld = 'true';
  const look = () => {
    const cell = document.querySelector(`.jp-Cell[data-windowed-list-index="${index}"]`);
    if (begun.length > place) times.begun = begun[place];
    if (ended.length > place) times.ended = ended[place];
    if (!times.drawn && cell?.querySelector('.sx-timeline canvas[data-drawn]:not([data-is-old])'))
      times.drawn = performance.now();
    const shown = [...document.querySelectorAll(selector)].find(one => one.getBoundingClientRect().width);
    const drawn = shown && [...shown.querySelectorAll('.main-svg, canvas')].map(one => one.getBoundingClientRect());
    const width = Math.round(Math.max(0, ...(drawn || []).filter(one => one.height > 1).map(one => one.width)));
    if (width && width !== window.sxWidths.at(-1)) window.sxWidths.push(width);
    requestAnimationFrame(look);
  };
  look();
}"""
"""Keeps each width that the first timeline is seen with, and when a cell began and ended and its timeline was drawn."""
CLICKED = """() => {
  const canvas = document.querySelector('.sx-timeline > canvas'), times = window.sxClick = {};
  canvas.addEventListener('pointerup', (event) => { times.began = event.timeStamp; }, {once: true, capture: true});
  new MutationObserver((_, watch) => {
    watch.disconnect();
    const {port1, port2} = new MessageChannel();
    port1.onmessage = () => { times.seen = performance.now(); };
    requestAnimationFrame(() => port2.postMessage(''));
  }).observe(canvas, {attributeFilter: ['aria-label']});
}"""
"""Keeps when the button of the mouse is released, and when the first frame with another B has been drawn."""
SECONDS = """() => {
  const {begun, ended, drawn} = window.sxTimes;
  return [drawn - begun, drawn - ended].map((one) => one / 1000);
}"""


@contextmanager
def busy_processes(count):
    """Run processes that use all of a processor each."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


@dataclass(frozen=True, kw_only=True)
class Paint:
    """What was seen of the timelines of a page."""

    pixels: tuple[int, ...]
    """Pixels of bars in each view of the explorer, from the top of the page."""
    seconds: float
    """From the end of the first cell that shows the explorer to its bars; negative where they came before its end."""
    seconds_in_all: float
    """The same from the beginning of the cell."""
    widths: tuple[int, ...]
    """The widths that the first view was drawn with, in order."""
    received: int
    """Bytes that the kernel sent to the page."""
    messages: int
    """Messages that the kernel sent to the page."""

    @property
    def is_blank(self):
        """Return whether a view has no bars."""
        return min(self.pixels) < FEWEST


def copy_notebook(path, folder):
    """Copy a notebook without what its cells have put out."""
    made = nbformat.read(path, as_version=4)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(made, folder / path.name)


class Page:
    """A notebook in a JupyterLab page, all of whose cells are run, again and again."""

    def __init__(self, browser, server, name):
        """Open the notebook."""
        self.page = browser.new_page(viewport={"width": 1280, "height": 1400})
        self.page.set_default_timeout(120_000)
        self._counter = browser.new_page()
        self._server = server
        self._has_run = False
        self._received = self._messages = 0
        self.page.add_init_script(f"({LISTEN})()")
        self._code_cells = [
            index
            for index, cell in enumerate(nbformat.read(server.served / f"{name}.ipynb", as_version=4).cells)
            if cell.cell_type == "code"
        ]
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._frame))
        self.page.goto(f"{server.address}/doc/tree/{name}.ipynb?reset&token={TOKEN}")
        self.page.wait_for_selector(READY)

    def close(self):
        """Close the page."""
        self.page.close()
        self._counter.close()

    def slow_down(self, rate):
        """Have the page run at a fraction of its speed, as on a busy machine, without making this one busy."""
        self.page.context.new_cdp_session(self.page).send("Emulation.setCPUThrottlingRate", {"rate": rate})

    def run_all(self, cells, patience=12.0):
        """Run all cells in a new kernel; return what is seen.

        Args:
            cells: Which cells show the explorer.
            patience: Seconds that a view has to show bars once all cells have run.
        """
        page = self.page
        page.locator(".jp-Notebook").first.evaluate("node => { node.scrollTop = 0; }")
        page.evaluate(WATCH, [TIMELINE, cells[0], self._code_cells.index(cells[0])])
        self._received = self._messages = 0
        self._begin()
        self._until_drawn(cells[0], patience)
        page.wait_for_function("selector => document.querySelector(selector)", arg=READY)
        pixels = tuple(self._until_bars(cell, patience) for cell in cells)
        widths = tuple(page.evaluate("window.sxWidths"))
        in_all, seconds = page.evaluate(SECONDS)
        return Paint(
            pixels=pixels,
            seconds=seconds,
            seconds_in_all=in_all,
            widths=widths,
            received=self._received,
            messages=self._messages,
        )

    def click(self, share):
        """Click on the first timeline, so far from the left; return the seconds until the page has drawn another B."""
        canvas = self.page.locator(".sx-timeline > canvas[data-drawn]").first
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        self.page.evaluate(CLICKED)
        self.page.mouse.click(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        self.page.wait_for_function("window.sxClick.seen")
        return self.page.evaluate("(window.sxClick.seen - window.sxClick.began) / 1000")

    def _begin(self):
        """Run all cells: with the kernel of a page that has just been opened, else with a new one."""
        self._server.wait_for_kernel()
        begun = self._cell(1).locator(".jp-InputPrompt", has_text=BEGUN)
        for _ in range(5):
            if self._has_run:
                self._menu("Run", "Restart Kernel and Run All Cells")
                self.page.locator(".jp-Dialog .jp-mod-accept").click()
            else:
                self._menu("Run", "Run All Cells")
            # What a page is told before it has its kernel is lost.
            for _ in range(100):
                if begun.count():
                    self._has_run = True
                    return
                self.page.wait_for_timeout(50)
        raise AssertionError("The cells do not run.")

    def _menu(self, *names):
        self.page.keyboard.press("Escape")
        bar = self.page.locator(".lm-MenuBar-itemLabel", has_text=names[0]).first
        bar.click()
        self.page.get_by_role("menuitem", name=names[1]).first.click()

    def _cell(self, index):
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')

    def _until_drawn(self, cell, patience):
        """Wait until a cell has ended and shows a timeline; for that, so many seconds."""
        until = None
        while not {"ended", "drawn"} <= {*(times := self.page.evaluate("window.sxTimes"))}:
            self._cell(cell).scroll_into_view_if_needed()
            if "ended" in times:
                until = until or time.monotonic() + patience
                if time.monotonic() > until:
                    return
            self.page.wait_for_timeout(50)

    def _until_bars(self, index, patience):
        """Return the pixels of bars in the view of a cell, once there are some."""
        until = time.monotonic() + patience
        found = 0
        while found < FEWEST and time.monotonic() < until:
            self._cell(index).scroll_into_view_if_needed()
            found = self._pixels(index)
            if found < FEWEST:
                self.page.wait_for_timeout(20)
        return found

    def _pixels(self, index):
        """Return how many pixels of the timeline that a cell shows have the color of a bar."""
        boxes = self._cell(index).locator(TIMELINE).evaluate_all(BOXES)
        if not boxes:
            return 0
        png = base64.b64encode(self.page.screenshot(clip=boxes[-1])).decode()
        colors = [[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in COLOURS]
        return self._counter.evaluate(COUNT, [png, colors])

    def _frame(self, payload):
        self._received += len(payload)
        self._messages += 1


def chromium(playwright):
    """Start the system's chromium, without a window; it paints on the processor, as the page needs no WebGL."""
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
