import io
import re
import threading

import pytest

from snapshot_explorer import show_progress
from snapshot_explorer.core import progress
from tests.inner.core import TerminalLine, listen, step


class Heard:
    """Keeps the calls."""

    def __init__(self):
        self.said = []

    def show(self, said):
        self.said.append(re.sub(r"\d+ s$", "N s", str(said)))  # a busy machine may pause

    def clear(self):
        self.said.append("cleared")


@pytest.fixture
def impatient(monkeypatch):
    """Have work shown at once."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)


@pytest.fixture
def heard():
    listener = Heard()
    listen(listener)
    yield listener
    listen(None)


def test_work_is_reported_until_it_ends(impatient, heard):
    with step("Counting sheep", total=3) as counting:
        counting.advance()
        counting.advance(2)

    assert heard.said == ["Counting sheep: 1 of 3, N s", "Counting sheep: 3 of 3, N s", "cleared"]


def test_work_that_is_done_soon_is_not_reported(heard, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 60.0)

    with step("Counting sheep", total=3) as counting:
        counting.advance(3)

    assert heard.said == []


def test_work_is_not_reported_more_often_than_anybody_can_read(impatient, heard, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 60.0)

    with step("Counting sheep") as counting:
        for _ in range(100):
            counting.advance()

    assert heard.said == ["Counting sheep: 1, N s", "cleared"]


def test_an_interrupt_leaves_nothing_shown(impatient, heard):
    def interrupted():
        with step("Counting sheep", total=3) as counting:
            counting.advance()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert heard.said[-1] == "cleared"
    with step("Counting on", total=3) as counting:
        counting.advance()
    assert heard.said[-2:] == ["Counting on: 1 of 3, N s", "cleared"]


def test_an_interrupt_while_it_is_shown_leaves_nothing_shown(impatient):
    class Interrupted(Heard):
        def show(self, said):
            super().show(said)
            raise KeyboardInterrupt

    listener = Interrupted()
    listen(listener)
    try:
        with pytest.raises(KeyboardInterrupt), step("Counting sheep") as counting:
            counting.advance()
    finally:
        listen(None)

    assert listener.said == ["Counting sheep: 1, N s", "cleared"]


def test_a_step_within_a_step_says_nothing(impatient, heard):
    with step("Outer", total=1) as outer, step("Inner", total=1) as inner:
        inner.advance()
        outer.advance()

    assert heard.said == ["Outer: 1 of 1, N s", "cleared"]


def test_a_step_may_be_advanced_from_several_threads(impatient, heard):
    with step("Counting sheep", total=800) as counting:
        threads = [
            threading.Thread(target=lambda: [counting.advance() for _ in range(100)], daemon=True) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(heard.said) == 801
    assert heard.said[-2:] == ["Counting sheep: 800 of 800, N s", "cleared"]


def test_what_another_thread_does_is_not_reported(impatient, heard):
    def work():
        with step("In the background") as working:
            working.advance()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()

    assert heard.said == []


def test_a_step_that_is_advanced_after_its_end_says_nothing(impatient, heard):
    with step("Counting sheep") as counting:
        counting.advance()

    counting.advance()

    assert heard.said[-1] == "cleared"


def test_a_line_of_the_terminal_is_wiped_out(impatient):
    stream = io.StringIO()

    with show_progress(stream), step("Counting sheep", total=4) as counting:
        counting.advance(2)
        counting.advance(2)

    first, last, blanks, nothing = stream.getvalue().split("\r")[1:]
    assert first.startswith("[############............] Counting sheep: 2 of 4, ")
    assert last.startswith("[########################] Counting sheep: 4 of 4, ")
    assert re.fullmatch(" +", blanks)
    assert len(blanks) == len(last)
    assert nothing == ""


def test_a_shorter_line_covers_a_longer_one():
    stream = io.StringIO()
    line = TerminalLine(stream)

    line.show(progress.Progress(title="A long name", done=1, total=None, seconds=0))
    line.show(progress.Progress(title="Short", done=1, total=None, seconds=0))

    assert stream.getvalue() == "\rA long name: 1, 0 s\rShort: 1, 0 s      "


def test_nothing_is_shown_where_there_is_no_terminal(impatient, capsys):
    with show_progress(), step("Counting sheep") as counting:
        counting.advance()

    assert capsys.readouterr() == ("", "")


def test_nobody_listens_after_show_progress(impatient):
    stream = io.StringIO()
    with show_progress(stream):
        pass

    with step("Counting sheep") as counting:
        counting.advance()

    assert stream.getvalue() == ""


def test_a_share_is_never_more_than_all():
    assert progress.Progress(title="", done=5, total=4, seconds=0).share == 1.0
    assert progress.Progress(title="", done=5, total=0, seconds=0).share is None
