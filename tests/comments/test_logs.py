"""Log lines are JSON and omit content that an exception or a library quotes."""

import io
import json
import logging
import sys
import threading

import pytest

from comments import logs

CANARY = "ann@example.org wrote: hello"


def line(
    name: str = "flatthread",
    message: object = "done",
    *args: object,
    error: Exception | None = None,
) -> dict:
    trace = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord(
        name, logging.ERROR, "/srv/venv/lib/some/module.py", 7, message, args, trace, "speak"
    )
    text = logs.Lines().format(record)
    assert "\n" not in text
    return json.loads(text)


def raised(error: Exception, *, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_a_line_has_time_severity_logger_and_message() -> None:
    found = line("flatthread", "event %s is given up after %d attempts", "aa", 7)
    assert found["message"] == "event aa is given up after 7 attempts"
    assert (found["severity"], found["logger"]) == ("ERROR", "flatthread")
    assert found["time"].endswith("Z")
    assert "T" in found["time"]


def test_an_error_is_logged_as_its_class_and_location() -> None:
    error = raised(ValueError(CANARY), cause=raised(KeyError(CANARY)))
    found = line("comments.web.http.problems", "failed", error=error)
    assert found["error"] == "ValueError"
    assert found["at"] == [f"tests/comments/test_logs.py:{error.__traceback__.tb_lineno} raised"]
    assert CANARY not in str(found)


def test_a_deep_recursion_is_logged_as_a_few_locations() -> None:
    def fall() -> None:
        fall()

    with pytest.raises(RecursionError) as caught:
        fall()
    assert len(line(error=caught.value)["at"]) == 20


def test_a_location_in_a_library_reveals_nothing_about_the_machine() -> None:
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    places = line(error=caught.value)["at"]
    assert places[-1].startswith("json/decoder.py:")
    assert not [each for each in places if each.startswith("/")]


@pytest.mark.parametrize(
    ("name", "message", "arguments", "said"),
    [
        ("urllib3.pool", "retrying %s", (CANARY,), "retrying %s"),
        ("urllib3.pool", f"retrying {CANARY}", (), "message withheld"),
        ("urllib3.pool", ValueError(CANARY), (), "message withheld"),
        ("flatthreading", f"x {CANARY}", (), "message withheld"),
        ("gunicorn.error", "Worker (pid:%s) was sent %s!", (7, "SIGKILL"),
         "Worker (pid:7) was sent SIGKILL!"),
        ("gunicorn.error", f"Invalid request from ip=192.0.2.7: {CANARY}", (), "Invalid request"),
        ("gunicorn.error", "Error handling request %s %s", ("GET", CANARY),
         "Error handling request %s %s"),
        ("gunicorn.error", "Exception during worker exit:\n%s", (CANARY,),
         "Exception during worker exit:\n%s"),
        ("gunicorn.error", ValueError(CANARY), (), "message withheld"),
    ],
)  # fmt: skip
def test_messages_of_libraries_are_logged_without_their_arguments(
    name: str, message: object, arguments: tuple, said: str
) -> None:
    found = line(name, message, *arguments)
    assert found["message"] == said
    assert CANARY not in str(found)
    if said.startswith("something"):
        assert found["at"] == ["some/module.py:7 speak"]


def test_a_terminal_gets_plain_text() -> None:
    error = raised(ValueError(CANARY))
    trace = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("flatthread", logging.ERROR, "x.py", 1, "%s", ("failed",), trace)
    said = logs.Words().format(record).splitlines()
    assert said[:2] == ["failed", "  ValueError"]
    assert said[2].startswith("    tests/comments/test_logs.py:")
    assert CANARY not in str(said)


def starting(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """Reset the root logger and gunicorn's loggers to their state at process start."""
    root, server = logging.getLogger(), logging.getLogger("gunicorn.error")
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(server, "handlers", [])
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(logging.getLogger("flatthread"), "level", logging.NOTSET)
    return root


def test_all_loggers_write_such_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loggers, server = starting(monkeypatch), logging.getLogger("gunicorn.error")
    theirs, chosen = logging.StreamHandler(sys.stderr), logging.StreamHandler(sys.stderr)
    theirs._gunicorn = True  # type: ignore[attr-defined]
    server.handlers += [theirs, chosen]
    logs.to_stderr(sys.stderr)
    logs.to_stderr(sys.stderr)
    assert len(loggers.handlers) == 1
    assert isinstance(theirs.formatter, logs.Lines)
    assert chosen.formatter is None
    logging.getLogger("flatthread").info("begun")
    logging.getLogger("comments").error("failed")
    logging.getLogger("some.library").info("chatter")
    said = [json.loads(each)["message"] for each in capsys.readouterr().err.splitlines()]
    assert said == ["begun", "failed"]


@pytest.mark.parametrize(("watched", "form"), [(True, logs.Words), (False, logs.Lines)])
def test_plain_text_is_used_if_any_output_is_a_terminal(
    monkeypatch: pytest.MonkeyPatch, watched: bool, form: type
) -> None:
    loggers, server = starting(monkeypatch), logging.getLogger("gunicorn.error")
    theirs = logging.StreamHandler(sys.stderr)
    theirs._gunicorn = True  # type: ignore[attr-defined]
    server.handlers.append(theirs)
    other = io.StringIO()
    monkeypatch.setattr(other, "isatty", lambda: watched)
    logs.to_stderr(io.StringIO(), other)
    (ours,) = loggers.handlers
    assert type(ours.formatter) is type(theirs.formatter) is form


def test_an_existing_logging_configuration_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    loggers = starting(monkeypatch)
    chosen = logging.NullHandler()
    loggers.handlers.append(chosen)
    logs.to_stderr(sys.stderr)
    assert loggers.handlers == [chosen]


def test_a_thread_that_ends_with_an_error_logs_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: BaseException) -> None:
        raise error

    starting(monkeypatch)
    logs.to_stderr(sys.stderr)
    for error in (ValueError(CANARY), SystemExit()):
        thread = threading.Thread(target=fail, args=(error,))
        thread.start()
        thread.join()
    (said,) = capsys.readouterr().err.splitlines()
    assert json.loads(said)["error"] == "ValueError"
    assert CANARY not in said
