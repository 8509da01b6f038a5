"""Problem documents have one status for each error and contain no internal details."""

import logging

import flask
import flask.testing
import pytest
import werkzeug.exceptions
from google.api_core import exceptions as api

from comments import errors
from comments.web.http import problems

SECRET_PLACE = "/srv/secret/place"

STATUSES = [
    (errors.BadInput("name", "required"), 400, "required"),
    (errors.BadCursor(), 400, "bad-cursor"),
    (errors.CursorExpired(), 410, "cursor-expired"),
    (problems.Unauthenticated(), 401, "bad-token"),
    (errors.Forbidden("own-comment"), 403, "own-comment"),
    (errors.NotFound("comment", "x"), 404, "comment-not-found"),
    (errors.Conflict("thread-closed"), 409, "thread-closed"),
    (errors.KeyReused(), 409, "idempotency-key-reused"),
    (errors.RevisionMismatch(1, 2), 412, "revision-mismatch"),
    (errors.TooLarge("body", 5), 413, "too-large"),
    (problems.UnsupportedMedia(expected="a/b"), 415, "unsupported-media-type"),
    (errors.UnownedWrite(SECRET_PLACE), 500, "internal"),
    (errors.Misconfigured(SECRET_PLACE), 500, "internal"),
    (errors.FlatthreadError(SECRET_PLACE), 500, "internal"),
    (RuntimeError(SECRET_PLACE), 500, "internal"),
    (RecursionError(SECRET_PLACE), 500, "internal"),
    (errors.Overloaded("later"), 503, "overloaded"),
    (api.ServiceUnavailable(SECRET_PLACE), 503, "overloaded"),
    (api.RetryError(SECRET_PLACE, None), 503, "overloaded"),
    (werkzeug.exceptions.BadRequest(SECRET_PLACE), 400, "bad-request"),
    (werkzeug.exceptions.NotFound(SECRET_PLACE), 404, "not-found"),
    (werkzeug.exceptions.RequestEntityTooLarge(), 413, "too-large"),
    (werkzeug.exceptions.ImATeapot(), 418, "http-418"),
    (werkzeug.exceptions.InternalServerError(SECRET_PLACE), 500, "internal"),
]


def failing(error: Exception) -> flask.testing.FlaskClient:
    app = flask.Flask("test")
    app.testing = True
    app.register_error_handler(Exception, problems.answer)

    @app.get("/")
    def view() -> str:
        raise error

    return app.test_client()


@pytest.mark.parametrize(("error", "status", "code"), STATUSES, ids=repr)
def test_an_error_is_a_problem_document(error: Exception, status: int, code: str) -> None:
    response = failing(error).get("/")
    assert response.status_code == status
    assert response.content_type == "application/problem+json"
    assert response.json is not None
    assert response.json["status"] == status
    assert response.json["code"] == code
    assert response.json["title"]
    assert response.json["detail"]
    assert SECRET_PLACE not in response.text


def test_bad_input_names_its_field() -> None:
    answer = failing(errors.BadInput("name", "required")).get("/").json
    assert answer is not None
    assert (answer["field"], answer["detail"]) == ("name", "Enter your name.")
    other = failing(errors.Forbidden("own-comment")).get("/").json
    assert other is not None
    assert not {"field", "params"} & other.keys()


def test_a_problem_gives_the_values_that_a_translation_needs() -> None:
    answer = failing(errors.BadInput("limit", "out-of-range", minimum=1, maximum=200)).get("/").json
    assert answer == {
        "title": "Bad Request",
        "status": 400,
        "code": "out-of-range",
        "detail": "limit must be between 1 and 200.",
        "field": "limit",
        "params": {"minimum": 1, "maximum": 200},
    }


def test_the_reason_of_a_store_failure_is_only_logged() -> None:
    answer = failing(errors.Overloaded(SECRET_PLACE, retry_after=90)).get("/")
    assert SECRET_PLACE not in answer.text
    assert answer.json is not None
    assert answer.json["params"] == {"seconds": 90}
    assert answer.json["detail"] == "The service is busy. Try again in 2 minutes."


def test_overload_names_a_retry_time() -> None:
    error = errors.Overloaded("later", retry_after=7)
    assert failing(error).get("/").headers["Retry-After"] == "7"
    assert failing(api.Aborted("x")).get("/").headers["Retry-After"] == "2"


def test_a_missing_token_names_the_scheme() -> None:
    response = failing(problems.Unauthenticated()).get("/")
    assert response.headers["WWW-Authenticate"].startswith("Bearer ")


def test_a_wrong_method_names_the_allowed_ones() -> None:
    response = failing(errors.Forbidden("own-comment")).delete("/")
    assert response.status_code == 405
    assert "GET" in response.headers["Allow"]


def test_internal_errors_are_logged_with_their_cause(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        failing(RuntimeError(SECRET_PLACE)).get("/")
    assert SECRET_PLACE in caplog.text


def test_callers_errors_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        failing(errors.BadInput("email", "not-an-email")).get("/")
    assert not caplog.text


def test_every_error_class_has_a_status() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type)}
    coded = {kind for kind in kinds if issubclass(kind, errors.CodedError)}
    for kind in coded - {errors.CodedError}:
        assert any(base in problems.STATUSES for base in kind.__mro__), kind
