"""Every way a cell can end: its failure type, its status, pytest's outcome for it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import FAILURE_TYPES, STATUSES, WireError, outcome_of, refused_by_server
from pytest_openclaw.values.replies import Fault, Reply, Verdict
from pytest_openclaw.values.tool_calls import ToolCall


def _refused(**words):
    return refused_by_server("p", "llama3.2:3b", WireError(**words))


# failure type → its cause
MAKERS = {
    "auth_missing": faults.auth_missing("p", "set a key"),
    "quota_exhausted": _refused(status=429, code="insufficient_quota"),
    "model_not_found": _refused(status=404, code="model_not_found"),
    "not_installed": faults.not_installed("p", "install it"),
    "budget_spent": faults.budget_spent("p", 5.0),
    "connect_error": faults.unreachable("p", "u", "refused"),
    "timeout": faults.timed_out("p", 3.0),
    "stream_error": faults.stream_broken("p", "cut"),
    "malformed_response": faults.malformed("p", "no JSON"),
    "context_overflow": _refused(status=400, code="context_length_exceeded"),
    "no_image_input": faults.sees_no_images("p", "m"),
    "no_tools": _refused(status=400, message="does not support tools"),
    "cli_error": faults.cli_failed("p", "it said so"),
    "harness_error": faults.broke("p", "bug"),
    "content_filter": _refused(status=400, code="content_filter"),
}
ANSWERS = {
    "empty_response": Reply(text=" \n"),
    "refusal": Reply(refusal="no"),
    "content_filter": Reply(text="half", finish_reason="content_filter"),
}
VERDICTS = (None, *(Verdict(passed=passed) for passed in (True, False, None)))


def test_every_failure_type_can_happen():
    """Every documented type can occur, except that of the original harness, whose rows can be read."""
    reached = {outcome_of(result).failure_type for result in (*MAKERS.values(), *ANSWERS.values())}

    assert reached == FAILURE_TYPES.keys() - {"exception"}


@pytest.mark.parametrize("failure_type", MAKERS)
def test_each_type_is_made_as_it_is_named(failure_type):
    """Each function creates the type of its name, and the fault may go into a row."""
    fault = MAKERS[failure_type]

    assert fault.failure_type == failure_type
    assert faults.checked(fault) is fault
    assert fault.message.startswith("p: ")


@given(
    status=st.one_of(st.none(), st.integers(min_value=400, max_value=599), st.integers()),
    code=st.one_of(
        st.text(max_size=30), st.sampled_from(["insufficient_quota", "content_filter", "429", "tokens", "²"])
    ),
    kind=st.text(max_size=30),
    message=st.text(max_size=60),
)
def test_whatever_a_server_says_is_in_the_set(status, code, kind, message):
    """No text of an error leaves the closed set; what is retried has a temporary status, or none."""
    fault = _refused(status=status, code=code, type=kind, message=message)

    assert faults.checked(fault) is fault
    assert not fault.retryable or fault.failure_type in {
        "stream_error",
        *(f"http_{retried}" for retried in faults.RETRYABLE_STATUSES),
    }
    assert not (fault.retryable and fault.scope != "cell")


@pytest.mark.parametrize(
    ("words", "failure_type", "status", "reach"),
    [
        pytest.param({"status": 404}, "http_404", "error", "cell", id="404-of-a-wrong-path"),
        pytest.param({"message": 'model "llama3.2:3b" not found'}, "model_not_found", "skipped_unavailable", "target", id="no-model-in-a-stream"),
        pytest.param({"message": "model qwen3 not found"}, "stream_error", "error", "cell", id="another-model-in-a-stream"),
        pytest.param({"status": 500, "type": "server_error", "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}, "no_image_input", "skipped_unavailable", "cell", id="llama-cpp-without-mmproj"),
        pytest.param({"status": 400, "message": "Could not process image"}, "http_400", "error", "cell", id="a-broken-image"),
        pytest.param({"status": 400, "message": "llama3.2:3b does not support thinking"}, "http_400", "skipped_unavailable", "target", id="no-thinking"),
        pytest.param({"type": "rate_limit_error"}, "http_429", "rate_limited", "cell", id="a-word-in-a-stream"),
        pytest.param({"code": "503"}, "http_503", "error", "cell", id="a-number-in-a-stream"),
        pytest.param({"message": "something else"}, "stream_error", "error", "cell", id="no-word-at-all"),
        pytest.param({"code": "²"}, "stream_error", "error", "cell", id="a-digit-that-is-not-a-number"),
        pytest.param({"code": "999"}, "stream_error", "error", "cell", id="no-status"),
    ],
)  # fmt: skip
def test_the_fault_of_an_error_answer(words, failure_type, status, reach):
    """Code and type take precedence over the HTTP status; a word or number in a stream replaces it."""
    fault = _refused(**words)

    assert (fault.failure_type, fault.status, fault.scope) == (failure_type, status, reach)


@pytest.mark.parametrize("status", STATUSES)
def test_every_fault_has_one_outcome(status):
    """Each status has one outcome in pytest, whatever its type, and is never a success."""
    outcome = outcome_of(replace(MAKERS["timeout"], status=status), None)

    assert (outcome.status, outcome.success, outcome.failure_type) == (status, False, "timeout")
    assert outcome.pytest == {"ok": "failed", "skipped_unavailable": "skipped"}.get(status, "error")


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("failure_type", ANSWERS)
def test_no_answer_fails_whatever_the_verdict(failure_type, verdict):
    """An empty, refused or filtered reply is the model's failure, and not judged."""
    outcome = outcome_of(ANSWERS[failure_type], verdict)

    found = (outcome.status, outcome.success, outcome.failure_type, outcome.pytest)
    assert found == ("ok", False, failure_type, "failed")


@pytest.mark.parametrize(
    ("verdict", "word"), [*zip(VERDICTS, ("passed", "passed", "failed", "passed"), strict=True)]
)
@pytest.mark.parametrize(
    "reply",
    [Reply(text="hi"), Reply(tool_calls=(ToolCall(name="read"),)), Reply(text="\u200b")],
    ids=["text", "native-call", "invisible"],
)
def test_an_answer_passes_unless_its_verdict_is_against_it(reply, verdict, word):
    """Text or a native call is a reply; only a failed verdict fails it."""
    outcome = outcome_of(reply, verdict)

    assert (outcome.status, outcome.success, outcome.failure_type, outcome.pytest) == ("ok", True, None, word)


@pytest.mark.parametrize(
    ("fault", "status", "attempted_again"),
    [
        pytest.param(faults.unreachable("p", "u", "w"), "skipped_unavailable", False, id="unreachable"),
        pytest.param(faults.connection_lost("p", "w"), "error", True, id="lost"),
        pytest.param(
            faults.not_installed("p", "w", "target"), "skipped_unavailable", False, id="engine-missing"
        ),
        pytest.param(faults.stream_broken("p", "w", "text"), "error", False, id="stream"),
        pytest.param(faults.timed_out("p", 1.0), "error", False, id="timeout"),
        pytest.param(faults.takes_no("tools", "p"), "skipped_unavailable", False, id="no-tools"),
        pytest.param(faults.context_cut("p", "m", 300, 200), "error", False, id="cut"),
    ],
)
def test_which_faults_are_retried(fault, status, attempted_again):
    """A lost connection may be temporary; a fault after tokens, or without a server, is final."""
    assert (fault.status, fault.retryable) == (status, attempted_again)


@pytest.mark.parametrize(
    "failure_type", ["", "bad_luck", "http_", "http_4", "http_999", "http_4xx", "HTTP_429"]
)
def test_a_plugins_own_failure_type_is_refused(failure_type):
    """The set is closed for plugins too."""
    with pytest.raises(ValueError, match="is not known; make faults by"):
        faults.checked(Fault(failure_type=failure_type, status="error", message="x"))


def test_the_names_of_served_models_are_valid_text():
    """A name with half a character would end the xdist worker whose report has it."""
    fault = faults.with_served(faults.stream_broken("p", "gone"), "m", ["a\ud83e", "b"])

    assert fault.message == "p: the stream broke: gone. It has a\ufffd, b."
