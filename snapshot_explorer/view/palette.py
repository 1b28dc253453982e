"""The palette by Okabe and Ito, which color-blind people can distinguish, and the color of each kind of commit.

Orange, sky, purple and gray are darker than theirs: each has a contrast of at least 3:1 with white and dark pages.
"""

GREEN, ORANGE, SKY, VERMILLION, PURPLE, BLUE, GRAY = (
    "#009E73",
    "#BF8400",
    "#2F93D3",
    "#D55E00",
    "#C46A9C",
    "#0072B2",
    "#8C8C8C",
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
    "analyze": GRAY,
    "maintenance": GRAY,
}
