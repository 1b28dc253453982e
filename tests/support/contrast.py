"""The contrasts of a page in a browser, by WCAG 2.2: 1.4.3 for text, 1.4.11 for the outlines of controls."""

_SCRIPT = r"""
(root) => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const color = (text) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const opacity = (element) => {
    let all = 1;
    for (let at = element; at; at = at.parentElement) all *= Number(getComputedStyle(at).opacity);
    return all;
  };
  const COLOURS = /(?:rgba?|color|oklab|oklch|hsla?|lab)\([^()]*\)/g;
  // What may lie on the background of an element: parts of gradients, and shadows that fill it.
  const papers = (element) => {
    const style = getComputedStyle(element);
    const below = element.parentElement ? papers(element.parentElement) : [[255, 255, 255]];
    const plain = below.map((one) => over(color(style.backgroundColor), one));
    const shadow = style.boxShadow.includes("inset") && style.boxShadow.includes("99px") ? style.boxShadow : "";
    const layers = [...(style.backgroundImage.match(COLOURS) ?? []), ...(shadow.match(COLOURS) ?? [])].map(color);
    return [...(shadow ? [] : plain), ...layers.flatMap((layer) => plain.map((one) => over(layer, one)))];
  };
  const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && element.getBoundingClientRect().width > 1;
  const worst = (ink, element, under) => Math.min(...papers(under).map((paper) => {
    const clear = [ink[0], ink[1], ink[2], ink[3] * opacity(element)];
    return ratio(over(clear, paper), paper);
  }));
  const found = [];
  const add = (what, element, is, needed) => {
    if (is < needed) found.push(`${what} ${is.toFixed(2)} < ${needed}: <${element.tagName.toLowerCase()} `
      + `${element.getAttribute("class") ?? ""}> ${(element.innerText || element.value || "").trim().slice(0, 30)}`);
  };
  let texts = 0;
  for (const element of document.querySelectorAll(`${root}, ${root} *`)) {
    if (!seen(element) || ["STYLE", "SCRIPT", "CANVAS", "OPTION"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const is_off = element.disabled || element.closest("[disabled]") || element.closest("[aria-disabled=true]");
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const typed = element.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
    if ((own || typed) && !is_off) {
      const size = parseFloat(style.fontSize), is_large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
      const ink = color(element instanceof SVGElement ? style.fill : style.color);
      add("text", element, worst(ink, element, element), is_large ? 3 : 4.5);
      if (typed && element.placeholder && !element.value) {
        const hint = color(getComputedStyle(element, "::placeholder").color);
        add("placeholder", element, worst(hint, element, element), 4.5);
      }
      texts += 1;
    }
    // A button without border and paper is text.
    const is_control = typed || element.matches("[role=slider]") || (element.matches("button, [role=button]")
      && (parseFloat(style.borderTopWidth) > 0 || color(style.backgroundColor)[3] > 0));
    if (is_control && !is_off && element.parentElement && !element.matches("td, th, .lm-TabBar-tab")) {
      const border = parseFloat(style.borderTopWidth) > 0 && style.borderTopStyle !== "none"
        ? worst(color(style.borderTopColor), element, element.parentElement) : 0;
      const filled = worst(color(style.backgroundColor), element, element.parentElement);
      add("outline", element, Math.max(border, filled), 3);
    }
  }
  return { found: [...new Set(found)], texts };
}
"""
_WIDE = r"""
(root) => [...document.querySelectorAll(`${root} *`)].filter((element) => {
  if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
  const is_cut = element.matches("button, select, .widget-label, .widget-button, .widget-toggle-button")
    && element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible";
  const { right, width } = element.getBoundingClientRect();
  const scrolls = element.closest(".sx-box, .sx-grid, .sx-tabs, [style*=overflow]");
  return is_cut || (width > 1 && !scrolls && right > document.documentElement.clientWidth + 1);
}).map((element) => `<${element.tagName.toLowerCase()} ${element.getAttribute("class") ?? ""}> `
  + `${(element.innerText ?? "").trim().slice(0, 30)}`)
"""


def low_contrasts(page, root):
    """Return what below an element, by its selector, is too faint; there must be text."""
    result = page.evaluate(_SCRIPT, root)
    assert result["texts"]
    return result["found"]


def cut_controls(page, root):
    """Return controls whose text is cut, and what is wider than the page."""
    return page.evaluate(_WIDE, root)
