"""Whether a text claims that something was done."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.tools.claims import claims_done

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
I got an error from the server.
I got the same permission denied error again.
I got back a timeout.
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


@pytest.mark.parametrize("text", CLAIMS)
def test_a_claim(text: str) -> None:
    """Reports in the first person, in the passive and in a word, in several languages."""
    assert claims_done(text) is True


@pytest.mark.parametrize("text", [text.replace("\\n", "\n") for text in OTHERS])
def test_no_claim(text: str) -> None:
    """Promises, offers, questions, conditions, denials and the words of others are none."""
    assert claims_done(text) is False


def test_a_claim_among_other_sentences() -> None:
    """One sentence is enough."""
    assert claims_done("I'll look. One moment.\n\nI've saved it. Do you need more?")


def test_a_claim_in_a_thought_is_none() -> None:
    """Thinking is not part of the answer."""
    assert not claims_done("<think>I've saved it.</think>What shall I save?")


@given(text=st.text())
def test_every_text_is_read(text: str) -> None:
    """Nothing is raised."""
    assert claims_done(text) in (True, False)


@pytest.mark.parametrize(
    "piece", ["I have ", "the ", "ich habe ", "`", '"', "> ", "- ", "已", "- \n", "was was ", "```\n", "."]
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    """Ten megabytes of the same half of a claim are read in seconds."""
    started = time.perf_counter()
    claims_done((piece * (10_000_000 // len(piece)))[:10_000_000])

    assert time.perf_counter() - started < 30
