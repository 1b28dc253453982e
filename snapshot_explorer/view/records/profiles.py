"""What is drawn of a profile: its numbers, and lines over versions."""

from snapshot_explorer.analysis.profile import Profile, unrecorded_columns
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.view.dispatch import depict, draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Line, fact_line
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.profiles import profile_figure


@draw.register
def _profile(profile: Profile) -> Drawing:
    """Return the profile as a drawing: its frame, its facts, and the call that returns it."""
    shown = drawing_of(profile.frame)
    facts = fact_line((("format", profile.format), ("versions", profile.span)))
    unrecorded = unrecorded_columns(profile.columns, everywhere=False)
    where = "" if unrecorded == unrecorded_columns(profile.columns, everywhere=True) else " at some versions"
    exact = Hint("", {"exact": True})
    note = Message(f"The metadata has no statistics of {unrecorded}{where}: ", exact, " reads the rows.")
    lines = (Line(note),) if unrecorded else ()
    return Drawing(title=shown.title, parts=(*shown.parts, *lines, facts, Code(profile.call)))


@depict.register
def _picture(profile: Profile) -> Picture:
    """Return rows, null rates and the range of each column as lines over versions, jumps marked."""
    return Picture(
        _profile(profile),
        lambda: profile_figure(profile.columns, profile.anomalies, title=f"Columns of {profile.name}"),
    )
