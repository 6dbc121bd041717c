"""exec: the suite's commands, and others in a sandbox; no command is run on this machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.util import bounded
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.worlds import ScriptedCommand, World
from pytest_openclaw.worlds import shell
from tests.searching import examples
from tests.unit.worlds.conftest import Caller


def failed(output, code):
    ended = {127: "Command not found", 126: "Command not executable (permission denied)"}
    return f"{output or '(no output)'}\n\n{ended.get(code, f'(Command exited with code {code})')}"


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        pytest.param("free -h", "Mem: 8G", id="of-the-suite"),
        pytest.param("  free  ", "Mem: 8G", id="blanks-around"),
        pytest.param("make", failed("sh: make: command not found", 127), id="the-whole-must-match"),
        pytest.param("make all", failed("boom", 3), id="exit-code"),
        pytest.param("cd src && free -h", "Mem: 8G", id="of-the-suite-in-a-chain"),
        pytest.param("free -h | grep Mem", "Mem: 8G", id="of-the-suite-in-a-pipe"),
        pytest.param("free -h 2>/dev/null", "Mem: 8G", id="of-the-suite-with-a-redirection"),
        pytest.param("for part in all docs; do make $part; done", failed("boom\nboom", 3), id="of-the-suite-in-a-loop"),
        pytest.param('echo "memory: $(free -h)"', "memory: Mem: 8G", id="of-the-suite-in-a-substitution"),
        pytest.param("frobnicate --now", failed("sh: frobnicate: command not found", 127), id="unknown"),
        pytest.param("cat nope", failed("cat: nope: No such file or directory", 1), id="no-file"),
        pytest.param("cat /etc/hosts", "127.0.0.1 localhost", id="what-a-suite-put-outside"),
        pytest.param("cat /etc/passwd", failed("cat: /etc/passwd: No such file or directory", 1), id="nothing-outside"),
        pytest.param("cat /proc/self/environ | tr '\\0' '\\n' | grep -c PATH", failed("0", 1), id="no-process"),
        pytest.param("curl -s http://example.org/a", failed("curl: (6) Could not resolve host: example.org", 6), id="no-network"),
        pytest.param("cd src; pwd", "/workspace/src", id="cd"),
        pytest.param("ls -l notes.md", "-rw-r--r-- 1 openclaw openclaw 16 Nov 21 12:00 notes.md", id="a-fixed-time"),
        pytest.param("date; date -d yesterday +%F; date -d '3 days ago' +%F", "Sat Nov 21 12:00:00 UTC 2026\n2026-11-20\n2026-11-18", id="date"),
        pytest.param("mktemp; mktemp -d", "/tmp/tmp.0000000001\n/tmp/tmp.0000000002", id="mktemp"),
        pytest.param("echo $RANDOM; whoami; hostname", "16838\nopenclaw\nopenclaw", id="random-user-host"),
        pytest.param("sleep 3600; echo awake", "awake", id="sleep"),
        pytest.param("python3 -c 'print(1)'", failed("sh: python3: command not found", 127), id="python"),
        pytest.param("true", "(no output)", id="no-output"),
        pytest.param("false", failed("", 1), id="false"),
        pytest.param("bc <<< 0.5+0.25", failed("sh: bc: command not found", 127), id="bc"),
        pytest.param("sudo ls", failed("sh: sudo: command not found", 127), id="sudo"),
        pytest.param("echo 'a", failed("sh: unexpected EOF while looking for matching `''", 2), id="open-quote"),
    ],
)  # fmt: skip
def test_a_command(call, command, printed):
    """Output, then the exit code unless it is 0; an unknown command is not found."""
    assert call.sh(command) == printed
    assert call.playing.state.ran == (command.strip(),)
    assert call.playing.state.changed == ()


@pytest.mark.parametrize(
    ("command", "files"),
    [
        pytest.param("echo hi > out.txt", {"out.txt": "hi\n"}, id="redirected"),
        pytest.param("echo -n tea >> notes.md", {"notes.md": "milk\neggs\nbread\ntea"}, id="appended"),
        pytest.param("free -h > mem.txt", {"mem.txt": "Mem: 8G\n"}, id="of-the-suite"),
        pytest.param("cat > a.txt <<'EOF'\none\n two > x\nEOF\n", {"a.txt": "one\n two > x\n"}, id="document"),
        pytest.param("cd src && echo x > y.txt", {"src/y.txt": "x\n"}, id="in-the-folder"),
        pytest.param("rm -rf src", {"src/app.py": None, "src/lib/util.py": None}, id="rm-folder"),
        pytest.param("gzip notes.md && gunzip notes.md.gz", {}, id="a-file-that-is-not-text"),
        pytest.param("build", {"notes.md": None, "out.bin": "built"}, id="a-command-that-writes"),
        pytest.param("rm nope; rm src; cat notes.md > /opt/x; mv a b", {}, id="nothing-that-fails"),
        pytest.param("echo hi > /etc/hosts; touch ~/x", {"/etc/hosts": "hi\n", "/home/openclaw/x": ""}, id="outside-of-the-workspace"),
        pytest.param("echo hi > /tmp/scratch; cat /tmp/scratch", {}, id="scratch"),
        pytest.param("echo hi > /dev/null", {}, id="nowhere"),
    ],
)  # fmt: skip
def test_the_files_after_a_command(call, command, files):
    """The files are those that a shell would have left."""
    before = call.files
    call.sh(command)

    after = {**before, **files}
    assert call.files == {path: text for path, text in after.items() if text is not None}


def test_the_most_dangerous_command_empties_only_the_world(call):
    """The state shows which files a model destroys."""
    assert call.sh("rm -rf /*") == "(no output)"
    assert call.files == {}


def test_a_command_starts_in_its_folder(call):
    """A command runs in its workdir, and a later command starts in the default one."""
    assert call.sh("cat app.py | head -1", workdir="src") == "def greet():"
    assert call.sh("cd lib; pwd", workdir="/workspace/src") == "/workspace/src/lib"
    assert call.sh("pwd") == "/workspace"
    answer = 'workdir "nope" is unavailable or not a directory: command was not executed.'
    assert call.sh("rm notes.md", workdir="nope") == answer
    assert "notes.md" in call.files


def test_a_folder_outside_the_workspace_stays(calls_in):
    """A command can run in any folder of the world and of an empty system, also after another command."""
    call = calls_in(World(files={"/home/anna/a": "", "/srv/b": ""}))

    for folder in ("/home/anna", "/home", "/srv", "/home/openclaw", "/tmp") * 2:
        assert call.sh("pwd", workdir=folder) == folder


def test_a_pattern_that_cannot_be_decided_is_the_suites_fault(calls_in, monkeypatch):
    """It ends after its time, with a message for the suite's author."""
    monkeypatch.setattr(bounded, "PATTERN_TIMEOUT_S", 0.05)
    call = calls_in(World(commands=(ScriptedCommand(pattern="(?:x+x+)+y"),)))

    with pytest.raises(OpenClawError, match="cannot be decided"):
        call.sh("x" * 5000)


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        pytest.param("echo $API_KEY", "k-4471", id="in-a-command"),
        pytest.param("printenv API_KEY", "k-4471", id="printenv"),
        pytest.param("env | grep KEY", "API_KEY=k-4471", id="env"),
        pytest.param("API_KEY=other printenv API_KEY; echo $API_KEY", "other\nk-4471", id="for-one-command"),
        pytest.param("export API_KEY=new; sh -c 'echo $API_KEY'", "new", id="exported"),
        pytest.param("unset API_KEY; echo \"[$API_KEY]\"", "[]", id="unset"),
        pytest.param("echo $HOME $USER $PWD", "/home/openclaw openclaw /workspace", id="of-any-system"),
        pytest.param("cd src; echo $PWD; cd - > /dev/null; pwd", "/workspace/src\n/workspace", id="the-folder"),
    ],
)  # fmt: skip
def test_variables_of_a_world(calls_in, command, printed):
    """They are the environment of each command, which a command changes only for itself."""
    call = calls_in(World(files={"src/a": ""}, env={"API_KEY": "k-4471"}))

    assert call.sh(command) == printed
    assert call.sh("echo $API_KEY $A", env={"API_KEY": "of-the-call", "A": "1"}) == "of-the-call 1"
    assert call.sh("echo $API_KEY $A") == "k-4471"


@pytest.mark.parametrize(
    ("command", "ended"),
    [
        pytest.param("while true; do :; done", "Command timed out", id="a-loop"),
        pytest.param("f() { f | f & }; while :; do f; done", "Command timed out", id="forks"),
        pytest.param("f() { f; }; f", "Command timed out", id="recursion"),
        pytest.param("x=a; for i in {1..60}; do x=$x$x; done", "Command timed out", id="memory"),
        pytest.param("sort" + " big" * 2000 + " | tail -1", "Command timed out", id="a-huge-sort"),
        pytest.param("yes | head -3", "y\ny\ny", id="yes"),
        pytest.param("grep -cE '(a+)+(b|c+)*$' big", "40000", id="a-pattern"),
    ],
)  # fmt: skip
def test_no_command_takes_this_machines_time_or_memory(calls_in, command, ended):
    """A command that needs too much ends as one that timed out, without an effect; the next one works."""
    call = calls_in(World(files={"big": "aaaaaaaaaaaaaaaaaaaa\n" * 40_000}))

    assert call.sh(f"{command}").startswith(ended)
    assert call.sh("echo after") == "after"
    assert call.playing.state.timed_out == ((0,) if ended == "Command timed out" else ())
    assert call.playing.state.changed == ()


def test_the_commands_of_an_exchange_have_one_limit(calls_in, monkeypatch):
    """After it no command runs: it has timed out, and nothing is known of what it would have done."""
    monkeypatch.setattr(shell, "_EXCHANGE_S", 0.1)
    call = calls_in(World(files={"a": "x"}))

    assert call.sh("while true; do :; done").startswith("Command timed out")
    assert call.sh("rm a").startswith("Command timed out")
    state = call.playing.state
    assert (state.timed_out, state.unrecorded, state.changed) == ((0, 1), (0, 1), ())


@pytest.mark.newest
def test_the_time_to_read_many_folders_counts():
    """A command that is quick to make them ends as one that timed out, and not when its process is killed."""
    command = "for n in $(seq 550); do mkdir -p $n/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p; done; echo made"

    ran = shell.play(command, {}, 3.0)

    assert (ran.timed_out, ran.output) == (True, "made\n")


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        pytest.param("free -h", ["free -h"], id="the-suite-answers-the-whole"),
        pytest.param("ls 'a b'", [["ls", "a b"]], id="words"),
        pytest.param("x=notes.md; rm -f $x", ["rm -f notes.md"], id="a-variable"),
        pytest.param("x=r; ${x}m -f notes.md", ["rm -f notes.md"], id="a-name-after-expansion"),
        pytest.param("for f in *.md; do rm -f $f; done", ["rm -f notes.md"], id="a-loop"),
        pytest.param("echo notes.md | xargs rm", ["echo notes.md", "xargs rm", "rm notes.md"], id="xargs"),
        pytest.param("find . -name notes.md -exec rm {} +", ["find . -name notes.md -exec rm {} +", "rm ./notes.md"], id="find"),
        pytest.param("env A=1 timeout 9 rm notes.md", ["env A=1 timeout 9 rm notes.md", "timeout 9 rm notes.md", "rm notes.md"], id="wrappers"),
        pytest.param("bash -c 'rm notes.md'", [["bash", "-c", "rm notes.md"], "rm notes.md"], id="a-shell"),
        pytest.param("eval 'rm notes.md'", ["rm notes.md"], id="eval"),
        pytest.param("trap 'rm notes.md' EXIT", ["rm notes.md"], id="a-trap"),
        pytest.param("awk 'BEGIN { system(\"rm notes.md\") }'", [["awk", 'BEGIN { system("rm notes.md") }'], "rm notes.md"], id="awk"),
        pytest.param("a=gi; b=t; $a$b push -f", ["git push -f"], id="a-missing-program-with-a-computed-name"),
        pytest.param("$(cut -c1-3 <<< gitx) push", ["cut -c1-3", "git push"], id="a-missing-program-with-a-printed-name"),
        pytest.param("echo $(free -h)", ["free -h", "echo Mem: 8G"], id="a-substitution"),
        pytest.param("cat <(rm notes.md)", ["rm notes.md", "cat /dev/fd/63"], id="a-process-substitution"),
        pytest.param("false && rm notes.md; true", [], id="only-what-ran"),
        pytest.param("(rm notes.md; ls nope) 2>&1 | cat", ["rm notes.md", "ls nope", "cat"], id="a-group"),
        pytest.param(r"printf 'a\nb\n' | while read f; do rm $f; cat /dev/null; done", [["printf", r"a\nb\n"], "rm a", "cat /dev/null", "rm b"], id="a-loop-over-lines"),
        pytest.param("printf 'rm notes.md' | gzip | gunzip | sh", [["printf", "rm notes.md"], "gzip", "gunzip", "sh", "rm notes.md"], id="bytes"),
        pytest.param("echo cm0gbm90ZXMubWQ= | base64 -d | sh", ["echo cm0gbm90ZXMubWQ=", "base64 -d", "sh", "rm notes.md"], id="base64"),
        pytest.param("/bin/rm notes.md; ../bin/rm a; \\rm b; command rm c; exec rm d", ["/bin/rm notes.md", "../bin/rm a", "rm b", "rm c", "rm d"], id="ways-to-name-a-program"),
        pytest.param("gitx push; /opt/gitx push; sudo rm x", ["gitx push", "/opt/gitx push", "sudo rm x"], id="programs-that-are-missing"),
        pytest.param("rm() { echo mine; }; rm x; command rm y", ["echo mine", "rm y"], id="a-function"),
        pytest.param(r"printf '\001rm x'; echo rm x", [["printf", r"\001rm x"], "echo rm x"], id="text-is-no-command"),
        pytest.param("seq 1 400 | while read n; do echo $n; done; rm last", ["seq 1 400", *(f"echo {n}" for n in range(1, 401)), "rm last"], id="a-long-record"),
    ],
)  # fmt: skip
def test_the_simple_commands_of_a_command(call, command, parts):
    """Each that ran is known with its words after expansion, however it is nested."""
    call.sh(command)

    expected = [tuple(part.split()) if isinstance(part, str) else tuple(part) for part in parts]
    assert sorted(call.playing.state.parts[0]) == sorted(expected)
    assert call.playing.state.unrecorded == ()


@pytest.mark.parametrize(
    "command",
    [
        *("sh clean.sh", "sh clean.sh >/dev/null 2>&1", "./clean.sh 2>/dev/null", ". ./clean.sh &>/dev/null", "bash <clean.sh 2>&-"),
        *("exec 2>/dev/null; sh clean.sh", "exec >log 2>&1; source clean.sh", "(sh clean.sh) 2>log", "cat clean.sh | sh 2>/dev/null"),
        *("out=$(sh clean.sh 2>&1)", "nohup sh clean.sh >/dev/null 2>&1 &", "find . -name clean.sh -exec sh {} \\; 2>/dev/null"),
        *("sh -c 'sh clean.sh' 2>/dev/null", "set +x; sh clean.sh", "cp clean.sh c; chmod +x c; ./c 2>/dev/null", "bash -c \"$(cat clean.sh)\" 2>/dev/null"),
        *("if sh clean.sh 2>/dev/null; then :; fi", "echo clean.sh | xargs -n1 sh 2>/dev/null", "{ sh clean.sh; } 2>&1 | tail -1", "timeout 9 sh clean.sh 2>/dev/null"),
    ],
)  # fmt: skip
def test_no_redirection_hides_what_a_script_runs(calls_in, command):
    """The record does not depend on the output of a script."""
    call = calls_in(World(files={"clean.sh": "#!/bin/sh\nrm -rf photos\n", "photos/a.jpg": "x"}))
    call.sh(command)

    assert ("rm", "-rf", "photos") in call.playing.state.parts[0]
    assert call.playing.state.unrecorded == ()


@pytest.mark.parametrize(
    ("text", "files"),
    [
        pytest.param(r"g\it push", {}, id="an-escape"),
        pytest.param("'g'i\"t\" push", {}, id="quotes"),
        pytest.param("git push", {}, id="without-a-first-line"),
        pytest.param("while read line; do $line; done <list", {"list": "git push\n"}, id="lines-of-a-file"),
        pytest.param("sh a", {"a": "sh b\n", "b": "git push\n"}, id="a-script-of-a-script"),
        pytest.param(": ".join(["", *map("w{}".format, range(2000))]) + "\ngit push", {}, id="many-words"),
        pytest.param(f": {' '.join(map('w{}'.format, range(2000)))}\na=git; $a push", {}, id="a-variable"),
        pytest.param(
            f": {' '.join(map('w{}'.format, range(2000)))}\nshipit push", {}, id="an-unusual-program"
        ),
    ],
)
def test_no_spelling_hides_what_a_script_runs(calls_in, text, files):
    """A missing program is known, wherever and however a script names it."""
    call = calls_in(World(files={"work": f"{text}\n", **files}))
    call.sh("sh work >/dev/null 2>&1")

    assert {("git", "push"), ("shipit", "push")} & {*call.playing.state.parts[0]}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("tar -czf /tmp/x.tgz src", id="times-in-an-archive"),
        pytest.param("head -c 9 /dev/urandom > r", id="random-bytes"),
        pytest.param("uuidgen > id; cat id", id="a-random-name"),
        pytest.param("npm test > log 2>&1", id="words-for-a-missing-program"),
        pytest.param("case x in n*) ls;; esac > log; ls {a,b} *.md 2>&1", id="patterns-that-name-no-program"),
    ],
)
def test_a_file_that_is_another_one_in_each_run(call, command):
    """It does not make the record incomplete."""
    call.sh(command)

    assert call.playing.state.unrecorded == ()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("for n in $(seq 1 2000); do echo $n; done", id="too-many"),
        pytest.param("rm a; while true; do :; done", id="it-does-not-end"),
        pytest.param(r"printf '\xff\n' | wc -c > made", id="another-effect-while-it-is-recorded"),
        pytest.param("ship$((1))it push", id="a-missing-program-with-a-computed-name"),
        pytest.param("ship$((1))it push 2>log", id="the-same-redirected-to-a-file"),
        pytest.param("command -v git >/dev/null || touch made", id="it-sees-that-it-is-recorded"),
        pytest.param("{git,push} >/dev/null 2>&1", id="a-name-in-braces"),
        pytest.param("/???/g[i]t push 2>/dev/null", id="a-name-that-is-a-pattern"),
        pytest.param("ship$((1))it push >/dev/null 2>&1", id="a-computed-name-without-output"),
        pytest.param(
            "ls; cat src/*; $(echo tipihs | rev) push &>/tmp/log", id="a-printed-name-without-output"
        ),
        pytest.param('eval "$(echo c2hpcGl0IHB1c2g= | base64 -d)" 2>/dev/null', id="a-computed-text"),
        pytest.param("base64 -d <<< c2hpcGl0IHB1c2g= > /tmp/q; . /tmp/q 2>&-", id="a-computed-file"),
        pytest.param("trap 'ship$((1))it push' EXIT", id="a-missing-program-at-the-end"),
        pytest.param(
            "echo 'git push' > /tmp/e; BASH_ENV=/tmp/e bash -c true", id="a-file-that-a-shell-reads-first"
        ),
        pytest.param(
            "echo 'git push' > /tmp/ls; chmod +x /tmp/ls; PATH=/tmp:$PATH ls", id="an-earlier-folder"
        ),
    ],
)
def test_a_record_that_may_lack_something_says_so(call, command):
    """A command is listed as unrecorded."""
    call.sh(command)

    assert call.playing.state.unrecorded == (0,)


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        pytest.param("cd src && ./check.sh --fast 2>&1 | tail -1", "checked", id="a-path-in-a-pipe"),
        pytest.param("if ./check.sh; then echo fine; fi", "checked\nfine", id="a-condition"),
        pytest.param("bash -lc 'git status'", "clean", id="a-shell-in-the-shell"),
        pytest.param("cat n | while read x; do git status; done | sed s/c/C/", "Clean", id="a-loop"),
        pytest.param("df -h > d; cat d; df -h /x | wc -l", "full\n3", id="a-program-of-the-sandbox"),
        pytest.param("bash run.sh; sh -c ./run.sh", "full\nclean\nfull\nclean", id="a-script-of-the-world"),
        pytest.param("cd src && ../run.sh | head -1; sh ../check.sh", "full\nown", id="a-script-in-a-pipe"),
        pytest.param("find . -name n -exec df -h {} + | grep -c Filesystem", "1", id="run-by-a-program"),
        pytest.param("echo git status", "git status", id="words-that-are-no-command"),
    ],
)  # fmt: skip
def test_answers_of_a_suite_inside_a_command(calls_in, command, printed):
    """A pattern answers a simple command after expansion."""
    commands = (
        ScriptedCommand(pattern=r"\./check\.sh( --fast)?", output="checked"),
        ScriptedCommand(pattern="git status", output="clean"),
        ScriptedCommand(pattern="git .*", output="other"),
        ScriptedCommand(pattern="df -h", output="full"),
    )

    files = {"n": "1\n", "src/a": "", "run.sh": "#!/bin/sh\ndf -h\ngit status\n", "check.sh": "echo own\n"}

    assert calls_in(World(files=files, commands=commands)).sh(command) == printed


_PIECES = st.sampled_from([
    *("while :; do", "for i in {1..9999}; do", "done", "if true; then", "fi", "f() {", "}", "(", ")", "f", "$(", ")", "`"),
    *("cat big", "sort big big", "yes", "seq 99999999", "echo {1..9}{1..9999}", "x=$x$x$x$x", "head -c 99999999 /dev/zero"),
    *("|", "|", ";", ";", "&&", "&", "\n", "> c", ">> c", "<<E\n", "E\n", "xargs -n1", "grep -E '(a*)*b' big", "tr a b"),
    *("awk '{while (1) x = x \"a\"}' big", "sed ':a;s/a/aa/;ta' big", "expr 9 + 9", "printf '%9999999s'", "$((9**9999))", "'", '"'),
    *("find / -exec cat {} +", "rm -rf /", "exec", "eval", "bash -c", "tar cf c /", "*", "**/*", "\\", "[[ a =~ (a+)+$ ]]", "\0"),
])  # fmt: skip


@examples(25)
@given(pieces=st.lists(_PIECES, min_size=1, max_size=9))
def test_every_command_ends(pieces):
    """No command needs more than its time and memory in the sandbox, and each leaves a session that works."""
    call = Caller(World(files={"big": "aaaa bbbb\n" * 20_000}))

    assert isinstance(call.sh(" ".join(pieces)), str)
    assert call.sh("echo after") == "after"


def test_too_many_bytes_of_files():
    """No command gets more than 20 MB of files; the suite still answers its own."""
    world = World(
        files={"big.bin": "x" * 20_000_001}, commands=(ScriptedCommand(pattern="free", output="Mem: 8G"),)
    )
    caller = Caller(world)

    assert caller("exec", command="free") == "Mem: 8G"
    assert caller("exec", command="ls") == failed("sh: cannot run: the files have more than 20 MB", 1)
