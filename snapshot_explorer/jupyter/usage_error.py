"""The error of a line that is not understood: in a notebook IPython shows it, in a terminal nothing needs IPython."""


class UsageError(Exception):
    """A line does not fit its command. The message suggests what to type instead."""

    @property
    def message(self) -> str:
        """The message, with its hints."""
        return self.args[0] if self.args and isinstance(self.args[0], str) else str(self)
