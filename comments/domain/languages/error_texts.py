"""The sentence for an error, made from its code, field and parameters.

A language has the sentences that readers can see; all other sentences are in English.
"""

from collections.abc import Mapping

from comments import errors
from comments.domain.languages import catalogue

_MINUTE, _HOUR = 60, 3_600


def sentence(error: errors.FlatthreadError, texts: catalogue.Catalogue = catalogue.ENGLISH) -> str:
    """Return an error's sentence; for an error that is not for clients, its plain message."""
    if not isinstance(error, errors.CodedError):
        return error.message
    return of_code(error.code, error.field, error.params, texts)


def of_code(
    code: str,
    field: str = "",
    params: Mapping[str, errors.Param] | None = None,
    texts: catalogue.Catalogue = catalogue.ENGLISH,
) -> str:
    """Return the sentence for a code.

    A code may have a sentence for one field: `required.name` takes precedence over `required`. A
    sentence can contain the field (`{field}`), each parameter, and the duration in `seconds`
    (`{wait}`).

    Raises:
        KeyError: the code has no sentence, or a placeholder has no parameter.
    """
    own = texts.entries["errors"]
    if code not in own and f"{code}.{field}" not in own:
        texts = catalogue.ENGLISH
    values: dict[str, object] = {"field": field, **(params or {})}
    seconds = values.get("seconds")
    if isinstance(seconds, int):
        values["wait"] = duration(seconds, texts)
    key = f"{code}.{field}" if f"{code}.{field}" in texts.entries["errors"] else code
    return texts.text(f"errors.{key}", **values)


def duration(seconds: int, texts: catalogue.Catalogue = catalogue.ENGLISH) -> str:
    """Return a duration in its largest unit, rounded up: 59 seconds, 2 minutes, 24 hours."""
    if seconds < _MINUTE:
        return texts.text("durations.seconds", count=seconds)
    if seconds < _HOUR:
        return texts.text("durations.minutes", count=-(-seconds // _MINUTE))
    return texts.text("durations.hours", count=-(-seconds // _HOUR))
