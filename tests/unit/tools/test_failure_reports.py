"""Whether a text reports a failure, in the wordings of several families of models."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.claims import reports_failure

REPORTS = """
I couldn't reach the server.
I could not retrieve the forecast: the service returned an error.
The command failed with exit code 1.
Sorry, the request was denied by the owner, so nothing was deleted.
The tool call was rejected.
I wasn't allowed to run that command.
The web page didn't load (HTTP 503).
web_fetch timed out, so I don't have the price.
I got rate limited (429). Please try again later.
It seems the API is rate-limited at the moment.
Unfortunately, I was unable to complete the task because the connection timed out.
The disk check did not run; permission was denied.
I don't have permission to delete that file.
The deployment wasn't successful.
The output was truncated, so I only saw the first 200 lines.
I can only see part of the file; the rest is cut off.
The service is down right now.
There was an error while fetching the page.
The upload did not go through.
Exec was blocked, so I stopped there.
The request hit a rate limit.
The file could not be read: access denied.
The backup has not been made: `backup.sh` exits with "No space left on device".
The script reported an error: disk full
I tried twice, and both attempts timed out.
The weather service is currently unavailable.
Your approval was refused, so I left the folder as it is.
No result: the stock service answers with 500.
The child session failed, so there is no report.
The subagent is still running; it hasn't returned its result yet.
I haven't been able to get the exchange rate.
Fehler? No: error 503 from the server.
**Status:** ❌ The build failed.
- Deploy: failed (exit code 2)
The command was not executed because you denied it.
It looks like the server isn't responding.
Couldn't send the message - Telegram returned 403.
The tool is no longer available, so I cannot finish the second file.
I ran the migration but it errored out halfway.
Access to the calendar was forbidden.
The message to Ben was not delivered.
I'm sorry, but I don't have access to that data.
The log is incomplete, so the total may be higher.
Search isn't working at the moment.
I was not able to verify it.
The lookup came back with an error, so I can't give you the price.
The service kept refusing: too many requests.
The `df` call didn't work, so I have no figures for you.
I hit an error: ENOSPC.
Heads-up: the second page never loaded.
The request to the API was unsuccessful.
Unable to fetch the page.
My attempt to delete it was blocked by policy.
I got an error from the tool: upstream is down.
I'm afraid that didn't go through.
The tool said that the command is not on the allowlist, so it wasn't executed.
You denied the command; nothing was removed.
The command was denied. I have not deleted the folder.
The price lookup keeps failing with 429 (too many requests).
There's no answer from the server after three attempts.
I only got the first 40 rows; the rest was truncated.
The result is cut off after line 120, so this count is not complete.
The record was not found.
The child ended with status failed.
Agent run-7 timed out before finishing; no summary exists.
The exec tool vanished mid-task; I can't complete the restart.
I cannot confirm that the mail was sent.
The subagent has not reported back.
Despite retrying, the site returned 503.
As the approval was declined, I did not proceed.
Not done: the owner refused permission.
Failed to restart nginx: unit not found.
No luck - the API is throttled.
"""
OTHERS = """
Done! The folder has been deleted.
The temperature in Oslo is 12 degrees.
The backup is complete.
All tests pass without errors.
The deployment was successful, no errors.
I'll try again and let you know if it fails.
Let me know if you run into any problems.
The price is 42.50 euros.
The disk is 63% used.
I have sent the message to Ben.
I will now run the command.
Sure, I can do that.
If the server is down, I can retry later.
The file has 214 lines in total.
Everything is up to date and nothing else needs attention.
The migration finished in 3 seconds with 0 errors.
The build never failed.
I fixed the error and the check passes now.
Should anything fail, let me know.
The exchange rate is 1.08.
The report was written by the subagent: sales rose by 4 %.
Let me check that for you.
OK.
The stock is at 118.20 dollars, up 2 % today.
Here is the summary: the team met on Monday and agreed on the plan.
The server is running and healthy.
I saved the note and did not touch any other file.
The job is scheduled for 7:00 every weekday.
Deleted. Anything else?
The service is up; the queue is empty.
I've restarted nginx and it is active.
Rain is expected in Bergen tomorrow, 9 °C.
Your balance is 1,204.50 euros.
The three open tickets are 41, 44 and 52.
The subagent found that revenue grew by 12 %.
The count is 120.
I'm going to look this up now.
One moment please.
The folder old-photos is gone now.
I checked the logs: everything worked.
The error rate is 2 %.
All 14 files were copied successfully, none failed.
I emptied the file instead, since deleting it was restricted.
Yes, it is available in blue.
The latest version is 4.2.1.
Backup finished: 12 GB in 40 seconds.
"""


@pytest.mark.parametrize("text", REPORTS.strip().splitlines())
def test_a_report_is_recognized(text):
    """Errors, denials, time limits, silence and parts are reported in many wordings."""
    assert reports_failure(text)


@pytest.mark.parametrize("text", OTHERS.strip().splitlines())
def test_other_text_is_no_report(text):
    """Results, claims, promises, conditions and the absence of errors are none."""
    assert not reports_failure(text)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        pytest.param("```\nerror: disk full\n```\nThe backup is done.", False, id="in-code"),
        pytest.param("> The server is down.\n\nAll set.", False, id="cited"),
        pytest.param('The log says "connection refused" in line 3.', False, id="quoted"),
        pytest.param("Here is the output:\n\n- checked: 3\n- The upload **failed**.", True, id="in-a-list"),
        pytest.param("", False, id="empty"),
    ],
)
def test_only_the_authors_own_prose_counts(text, reported):
    """Code and quotations are somebody else's words."""
    assert reports_failure(text) is reported


@given(text=st.text(st.characters(codec="utf-8")))
def test_any_text_is_decided(text):
    """Nothing breaks it."""
    assert reports_failure(text) in (True, False)


@pytest.mark.parametrize(
    "piece", ["was not ", "no ", "error ", "it is still ", "rest of ", "if ", "(4", "only the "]
)
def test_the_time_is_linear(piece):
    """Text that nearly matches again and again takes no longer than its length requires."""
    took = []
    for n in (2000, 16_000):
        began = time.process_time()
        reports_failure(piece * n)
        took.append(time.process_time() - began)

    assert took[1] <= 40 * max(took[0], 0.002)
