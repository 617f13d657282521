from __future__ import annotations


class Error(ValueError):
    """Something is wrong: one line with its place, and what was expected.

    Attributes
    ----------
    file : str or None
        The file that is wrong.
    field : str or None
        The field of the scenario, or the argument.
    expected : str or None
        What was expected.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        field: str | None = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.field = field
        self.expected = expected

    def __reduce__(self) -> tuple[object, ...]:
        # The arguments by name, which an exception does not pickle.
        return _error, (str(self), self.file, self.field, self.expected)


def _error(message: str, file: str | None, field: str | None, expected: str | None) -> Error:
    return Error(message, file=file, field=field, expected=expected)
