"""An explorer in a real chromium without Jupyter: its own page, with the kernel's side behind it."""

import base64
import json

from tests.inner.jupyter import script, text_of

TRAITS = ("commits", "facts", "zone", "strip", "listed", "page", "view", "busy")
DARK = (
    "margin: 0; background: #111; color: #fff; "
    "--jp-ui-font-color1: #fff; --jp-ui-font-color2: #c8c8c8; --jp-layout-color1: #111"
)
"""What JupyterLab's dark theme sets of what the page takes from its host."""
OPEN = """async ([module, css, traits]) => {
  const {default: page} = await import('data:text/javascript;base64,' + module);
  const view = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
  const received = (text) => JSON.parse(text, (_, one) => one?.bytes !== undefined ? view(one.bytes) : one);
  const handlers = new Map(), here = document.getElementById('here'), style = document.createElement('style');
  let state = received(traits);
  const tell = (name, ...what) => (handlers.get(name) ?? []).forEach((handler) => handler(...what));
  const take = (text) => {
    const answer = received(text), changed = Object.keys(answer.traits);
    state = {...state, ...answer.traits};
    changed.forEach((name) => tell(`change:${name}`));
    answer.messages.forEach((message) => tell('msg:custom', message, []));
  };
  const model = {
    get: (name) => state[name],
    on: (name, handler) => handlers.set(name, [...(handlers.get(name) ?? []), handler]),
    off: (name, handler) => handlers.set(name, (handlers.get(name) ?? []).filter((one) => one !== handler)),
    send: async (content) => take(await window.kernel(JSON.stringify(content))),
  };
  window.model = model;
  style.textContent = css;
  here.append(style);
  page.render({model, el: here});
}"""


def _sent(value):
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    raise TypeError(type(value))


def use_theme(page, theme):
    """Show the page in a theme, light or dark."""
    page.evaluate(
        """([theme, dark]) => {
          document.documentElement.setAttribute('theme', theme);
          document.body.style.cssText = theme === 'dark' ? dark : 'margin: 0';
        }""",
        [theme, DARK],
    )


def show(page, explorer, *, theme="light"):
    """Show an explorer in a page; what the user does there is done before the page hears of it."""
    messages, known = [], {}
    explorer.send = lambda content, buffers=None: messages.append(content)

    def traits():
        values = {name: json.dumps(getattr(explorer, name), default=_sent) for name in TRAITS}
        changed = {name: value for name, value in values.items() if known.get(name) != value}
        known.update(changed)
        return "{" + ",".join(f'"{name}":{value}' for name, value in changed.items()) + "}"

    def kernel(content):
        explorer.receive(json.loads(content))
        explorer.wait()
        answer = f'{{"traits":{traits()},"messages":{json.dumps(messages, default=_sent)}}}'
        messages.clear()
        return answer

    page.expose_function("kernel", kernel)
    page.set_content(
        '<!doctype html><html lang="en"><title>explorer</title><body>'
        '<main id="here"><h1>A notebook</h1><h2>A cell</h2></main>'
    )
    use_theme(page, theme)
    module = base64.b64encode(script().encode()).decode()
    page.evaluate(OPEN, [module, text_of("page.css"), traits()])
    page.locator(".sx-timeline canvas[data-drawn]").wait_for()
