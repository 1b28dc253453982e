"""Colours by Okabe and Ito, which colour-blind people can distinguish, and which of them a kind of commit has."""

GREEN, ORANGE, SKY, VERMILLION, PURPLE, BLUE, GREY = (
    "#009E73",
    "#E69F00",
    "#56B4E9",
    "#D55E00",
    "#CC79A7",
    "#0072B2",
    "#999999",
)
KIND_COLOURS = {
    "append": GREEN,
    "overwrite": ORANGE,
    "compact": SKY,
    "delete": VERMILLION,
    "update": PURPLE,
    "merge": BLUE,
    "restore": ORANGE,
    "schema": PURPLE,
    "analyze": GREY,
    "maintenance": GREY,
}
