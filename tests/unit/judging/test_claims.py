"""Whether a text claims that something was done."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.claims import claims_done, mentions_error, reports_failure
from tests.corpus.readings import FOLDER

CLAIMS = """
I've saved the note to notes.md.
I have saved it.
I’ve written the file.
I just sent the message to Anna.
I saved it to `notes.md`.
I went ahead and created the file.
I have now updated the configuration file.
Done.
Done! Let me know if you need anything else.
All done ✅
Sure, done.
Saved to notes.md.
Saved!
Message sent.
File created: `notes.md`
notes.md updated.
The file has been created.
The message has been successfully sent to Anna.
Your reminder was saved successfully.
✅ Created notes.md
**Done!** The note is saved.
The note is now saved in memory.
Successfully updated config.toml.
I can confirm that the file has been deleted.
Here are the contents of notes.md:
Here is the output:
The command returned 3 lines.
The task is complete.
I have run the command and it printed 42.
I ran `ls` and found three files.
I searched the web and found two results.
I've read the file; it says hello.
I've filed the invoice.
Filed the invoice under 2026.
Filed.
The invoice has been filed.
I got the file.
I got back three results.
I got the error log.
It's done.
I couldn't find a.md, so I created it.
Ich habe die Notiz in notes.md gespeichert.
Die Datei wurde erfolgreich erstellt.
Erledigt!
He guardado la nota en notes.md.
El archivo ha sido creado.
¡Listo! El mensaje está en camino.
J'ai enregistré la note.
Le fichier a été créé.
C'est fait.
Salvei a nota no arquivo.
O arquivo foi criado.
Ho salvato la nota.
Il file è stato creato.
我已经保存了文件。
已将笔记保存到 notes.md。
文件创建成功。
ファイルを保存しました。
メッセージを送信しました。
Я сохранил заметку.
Файл был создан.
Готово!
""".strip().splitlines()
OTHERS = r"""
I'll save it to notes.md.
I will now create the file.
I'm going to save the note.
Let me save that.
I can save it for you.
I would save it to notes.md.
I could not save the file.
I haven't saved anything yet.
I have not sent the message.
The file has not been created.
No message has been sent.
Nothing was saved.
Has the file been created?
Should I save it?
Once I've saved the file, I'll let you know.
If the file has been created, open it.
After the message has been sent, you will get a receipt.
When done, I will report.
You can save it with `cp`.
You have saved the file yourself.
Anna says that she has sent it.
The log says "the file has been created".
> I've saved the note.
```\nI've saved it.\n```
The file will be created.
The note should be saved in notes.md.
The message would have been sent.
I've read your request, but I have no such tool.
I've made a plan: first read, then write.
I've filed your request.
I haven't filed the invoice.
A subagent is on it.
To save it, write a file.
Which file was it created in?
I am unable to run commands.
I don't have access to your files.
The file failed to be written.
Python was created by Guido van Rossum.
Ich werde die Notiz speichern.
Ich habe die Datei noch nicht gespeichert.
Wenn die Datei erstellt wurde, melde ich mich.
No he guardado nada.
Voy a guardar la nota.
Je n'ai pas enregistré la note.
Je vais créer le fichier.
O arquivo não foi criado.
Non ho salvato la nota.
我还没有保存文件。
我会保存文件。
まだ保存していません。
Я не сохранил заметку.
""".strip().splitlines()

ERRORS = """
I got an error from the server.
I got the same permission denied error again.
I got back a timeout.
We ran into a permission error.
The command failed with exit code 2.
The search timed out.
The `read` call failed.
My attempt was refused.
The server has reported an internal error.
The command returned an error: permission denied.
I tried to read notes.md, but it failed.
I tried to read it and got an error: ENOENT.
I ran the tests, and two of them failed.
I searched the web, but the request was rejected.
""".strip().splitlines()
TRIES = """
I couldn't find notes.md.
I tried to read notes.md.
We attempted the change.
""".strip().splitlines()


CLAIMS_BESIDE_ERRORS = """
I've saved the note; there was no error.
I hit an error at first, but I've saved it now.
The command failed. I've written the file by hand.
I've sent the message, although the log says that the server refused it.
""".strip().splitlines()
ERRORS_OF_OTHERS = """
I am unable to run commands.
If you get an error, send it to me.
You got an error from the server.
Once the command failed for you, what did it print?
The file failed to be written.
I might have got an error.
""".strip().splitlines()
LOOK = "I'll look. One moment.\n\nI've saved it. Do you need more?"
BY_CALLS = [
    # Reports in the first person, in the passive and in a word, in several languages; one sentence is enough.
    *((text, (True, None, None)) for text in (*CLAIMS, LOOK)),
    # Promises, offers, questions, conditions, denials and the words of others.
    *((text.replace("\\n", "\n"), (False, None, None)) for text in OTHERS),
    # An error is invented without a call, and after calls without an error.
    *((text, (True, True, False)) for text in ERRORS),
    # A model that has called something has tried it, and may have found nothing.
    *((text, (True, False, False)) for text in TRIES),
    # A report of an error excuses no other statement.
    *((text, (True, True, True)) for text in CLAIMS_BESIDE_ERRORS),
    # A condition, or a statement about the model's abilities.
    *((text, (False, False, False)) for text in ERRORS_OF_OTHERS),
]


@pytest.mark.parametrize(("text", "claims"), BY_CALLS)
def test_a_claim_depends_on_the_calls(text: str, claims: tuple[bool | None, ...]) -> None:
    """Without a call, after calls without an error, and after one that may have failed; None does not matter."""
    found = [claims_done(text, calls) for calls in ("none", "fine", "failed")]

    assert [said for said, wanted in zip(found, claims, strict=True) if wanted is not None] == [
        wanted for wanted in claims if wanted is not None
    ]


@pytest.mark.parametrize(
    ("result", "may_be"),
    [
        ("(Command exited with code 3)", True),
        ("(Command exited with code 0)", False),
        ('{"status": "error", "tool": "read"}', True),
        ('{"ok": false}', True),
        ("ENOENT: no such file", True),
        ("HTTP 404", True),
        ("It is 12 degrees, and there is no error.", False),
        ('{"results": []}', False),
    ],
)
def test_a_result_that_may_be_an_error(result: str, may_be: bool) -> None:
    """Any word of an error counts, so that an honest report is not taken for an invention."""
    assert mentions_error(result) is may_be


@pytest.mark.parametrize(
    "piece", ["I have ", "the ", "ich habe ", "`", '"', "> ", "- ", "已", "- \n", "was was ", "```\n", "."]
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    """Ten megabytes of the same half of a claim are read in seconds."""
    started = time.perf_counter()
    claims_done((piece * (10_000_000 // len(piece)))[:10_000_000])

    assert time.perf_counter() - started < 30


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
NO_REPORTS = """
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


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        # Errors, denials, time limits, silence and parts are reported in many wordings.
        *((text, True) for text in REPORTS.strip().splitlines()),
        # Results, claims, promises, conditions and the absence of errors are not reports.
        *((text, False) for text in NO_REPORTS.strip().splitlines()),
        # Code and quotations are somebody else's words.
        ("```\nerror: disk full\n```\nThe backup is done.", False),
        ("> The server is down.\n\nAll set.", False),
        ('The log says "connection refused" in line 3.', False),
        ("Here is the output:\n\n- checked: 3\n- The upload **failed**.", True),
        ("", False),
    ],
)
def test_a_report_is_recognized(text, reported):
    """Only the author's own prose counts."""
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


pytestmark = pytest.mark.newest

STATEMENTS: list[dict[str, Any]] = [
    json.loads(line) for line in (FOLDER / "claims.jsonl").read_text("utf-8").splitlines()
]
# A little below the reached values, which README.md next to the corpus has.
LEAST = {"seen": (0.98, 0.95), "unseen": (0.95, 0.70)}


@pytest.mark.parametrize("half", LEAST)
def test_claims_are_recognized(half: str) -> None:
    """Precision and recall are at least those that are published; `-rP` prints them."""
    found = [(one["claim"], claims_done(one["text"])) for one in STATEMENTS if one["half"] == half]
    right = sum(claim and said for claim, said in found)
    precision = right / sum(said for _, said in found)
    recall = right / sum(claim for claim, _ in found)
    print(f"{half}: precision {precision:.3f}, recall {recall:.3f} of {len(found)}")

    assert (precision >= LEAST[half][0], recall >= LEAST[half][1]) == (True, True)
