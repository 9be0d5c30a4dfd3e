"""What can go wrong at the boundary, said in the user's words.

A `SimplexityError` is the fault of an input, not of the program: the command line prints its one
sentence and exits with its code; library users catch it. Everything else is a bug and shows a
traceback.
"""

from __future__ import annotations


class SimplexityError(Exception):
    """A run could not be done as asked; the message says why and what to do."""

    exit_code = 1


class UsageError(SimplexityError):
    """The request itself makes no sense: a wrong option, an unknown name."""

    exit_code = 2
