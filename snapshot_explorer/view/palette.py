"""The palette by Okabe and Ito, which color-blind people can distinguish, and the color of each kind of commit.

Orange, sky and purple are darker than theirs: each has a contrast of at least 3:1 with white and dark pages.
"""

GREEN, ORANGE, SKY, VERMILLION, PURPLE, BLUE, GRAY = (
    "#009E73",
    "#BF8400",
    "#2F93D3",
    "#D55E00",
    "#C46A9C",
    "#0072B2",
    "#6B6B6B",
)
KIND_COLORS = {
    "append": GREEN,
    "overwrite": ORANGE,
    "compact": SKY,
    "delete": VERMILLION,
    "update": PURPLE,
    "merge": BLUE,
    "restore": ORANGE,
    "schema": PURPLE,
}
"""Other kinds are gray."""

STATE_COLORS = {"act": VERMILLION, "watch": ORANGE, "ok": GREEN, "unknown": GRAY}


def page_color(color: str) -> str:
    """Return a color for a page, where gray is the color of the page's faint text: one gray is too faint in a theme."""
    return "currentColor" if color == GRAY else color
