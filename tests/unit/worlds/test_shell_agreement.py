"""Commands print, return and leave in a world what they print, return and leave in a real shell on the same files.

What is played otherwise is in `docs/reference/suites.md`: the order of `find` and `grep -r` is alphabetical, errors
have shorter texts, and programs know only their common options.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytest_openclaw.worlds.shell_parts import Collected, Input, Shell, Streams

from pytest_openclaw.tools.paths import absolute
from pytest_openclaw.worlds.shell import Interpreter
from pytest_openclaw.worlds.workspace import Workspace
from tests.searching import examples


def _is_gnu() -> bool:
    tools = [shutil.which(name) for name in ("bash", "sed", "grep", "find")]
    return all(
        tool and b"GNU" in subprocess.run([tool, "--version"], stdout=subprocess.PIPE).stdout
        for tool in tools
    )


pytestmark = [pytest.mark.newest, pytest.mark.skipif(not _is_gnu(), reason="needs GNU's shell and programs")]

PATIENCE_S = 60.0
FILES = {
    "a.txt": "one two\nthree\n\nfour five six\none two\n",
    "b.txt": "beta\n  indented line\nb.b*b\n[x] done\n",
    "notes.md": "# Notes\n- [ ] milk\n- [x] eggs\nTotal: 12.50 EUR\ntotal: 3\n",
    "data.csv": "id,name,price\n3,tea,2.50\n1,milk,0.99\n10,tea,3.00\n2,oat milk,1.20\n",
    "no_end.txt": "first\nlast without an end",
    "empty.txt": "",
    ".hidden": "KEY=abc\n",
    "src/app.py": "import os\n\n\ndef greet(name):\n    return 'hi ' + name\n\n\nclass App:\n    x = 10\n",
    "src/lib/util.py": "x = 1\nfoo = 'bar'\n",
    "src/lib/read me.md": "foo bar\n",
    "logs/night.log": "01:00 INFO started\n01:07 ERROR disk slow\n01:09 WARN retry\n02:30 ERROR disk slow\n03:41 ERROR gave up\n",
    "run.sh": "echo running in $PWD\nls src\n",
}
ENV = {"API_KEY": "k-4471", "GREETING": "hello  big world", "NOTHING": ""}


class Left(NamedTuple):
    """What a command printed, with which code it exited, whether it complained, and the files behind it."""

    stdout: str
    code: int
    complained: bool
    files: dict[str, str]
    folders: set[str]


def played(command: str) -> Left:
    """The command in a world."""
    workspace = Workspace(FILES)
    out, err = Collected(), Collected()
    playing = Interpreter(workspace, lambda _: None)
    code = playing.run_text(
        command, Shell.start(workspace, "", ENV), Streams(stdin=Input(), out=out.write, err=err.write)
    )
    return Left(out.text, code, bool(err.text), workspace.files, workspace.folders - {""})


def really(command: str) -> Left:
    """The command in bash, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in FILES.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        done = subprocess.run(
            ["bash", "--norc", "-c", command],
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PWD": str(root), **ENV},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        paths = [*root.rglob("*")]
        files = {
            path.relative_to(root).as_posix(): path.read_text().replace(str(root), absolute(""))
            for path in paths
            if path.is_file()
        }
        folders = {path.relative_to(root).as_posix() for path in paths if path.is_dir()}
        stdout = done.stdout.decode().replace(str(root), absolute(""))
        return Left(stdout, done.returncode, bool(done.stderr), files, folders)


COMMON = """
sed -n '2,4p' a.txt
sed -n '5,$p' src/app.py
sed -n '/def/,/return/p' src/app.py
sed -n '$p' a.txt; sed -n '$=' a.txt
sed 's/one/ONE/' a.txt
sed 's/o/0/g; s/t/T/2' a.txt
sed -i 's/milk/oat milk/' notes.md && cat notes.md
sed -i 's|src/|lib/|g' run.sh
sed -i '2d' notes.md
sed -i '/^$/d' a.txt
sed -i '1i # header' a.txt
sed -i '$a last' a.txt
sed -i '2a\\  after two' a.txt
sed -i '2c changed' a.txt no_end.txt
sed -E 's/([a-z]+) ([a-z]+)/\\2 \\1/' a.txt
sed 's/\\(foo\\) \\(bar\\)/\\2 \\1/' 'src/lib/read me.md'
sed -E 's/[0-9]+\\.[0-9]{2}/<&>/' notes.md
sed -e 's/a/b/' -e 3q a.txt
sed '/two/!d' a.txt
sed '1~2d' a.txt
sed 'y/abc/xyz/' b.txt
sed '2,3s/^/> /' a.txt
sed 's/x*/-/g' b.txt
sed -n '2{p}' a.txt | wc -l || true
sed '/one/,+1d' a.txt
sed nope a.txt
sed -n 2p missing.txt
sed -i 's/last/LAST/' no_end.txt
find . -name '*.py' | sort
find . -type f -name '*.md' | sort
find . -type d | sort
find src -maxdepth 1 | sort
find . -mindepth 2 -type f | sort
find . -iname 'README*' -o -iname 'read*' | sort
find . -type f -not -path './src/*' | sort
find . -name '*.txt' -exec wc -l {} \\; | sort
find . -name '*.py' -exec grep -l foo {} +
find . -name '*.txt' -empty
find . -type f -size +100c | sort
find . -name 'night*' -delete; ls logs
find logs -delete
find . \\( -name '*.md' -o -name '*.csv' \\) -type f | sort
find nope -name x
find . -name '*.py' -print0 | xargs -0 cat | sort
find . -name '*.txt' | sort | xargs cat
find . -type f | wc -l
grep -rn foo src | sort
grep -rn --include='*.py' foo . | sort
grep -rl foo . | sort
grep -r --exclude-dir=lib x src
grep -rc ERROR logs
grep -c ERROR logs/night.log
grep -E 'ERROR|WARN' logs/night.log
grep 'ERROR\\|WARN' logs/night.log
grep -n '^def ' src/app.py
grep -n 'return$' src/app.py
grep -i total notes.md
grep -iv total notes.md
grep -o '[0-9]*\\.[0-9]*' notes.md data.csv
grep -oE '[0-9]+' data.csv
grep -w o a.txt
grep -w one a.txt
grep -x three a.txt
grep -F 'b.b*' b.txt
grep 'b.b*' b.txt
grep '\\[x\\]' b.txt notes.md
grep -A1 ERROR logs/night.log
grep -B1 -n WARN logs/night.log
grep -C1 three a.txt
grep -m1 ERROR logs/night.log
grep -q milk notes.md && echo yes || echo no
grep -q nope notes.md || echo no
grep -L milk a.txt notes.md
grep -h tea data.csv a.txt
grep -H tea data.csv
grep -s tea nope.csv
grep tea nope.csv
grep foo src
grep -e tea -e milk data.csv
grep -v '^$' a.txt | wc -l
grep -n '' no_end.txt
test -f notes.md && echo there
test -f nope.md && echo there || echo missing
[ -d src ] && [ ! -e nope ] && echo ok
[ "$(wc -l < a.txt)" -gt 3 ] && echo long
[ -s empty.txt ] || echo empty
[ -z "$NOTHING" -a -n "$API_KEY" ] && echo set
[ a = b -o 1 -lt 2 ]; echo $?
[ x -eq 1 ]; echo $?
if [ -f a.txt ]; then echo yes; elif [ -d a ]; then echo dir; else echo no; fi
if grep -q nope a.txt; then echo a; else echo b; fi
for f in *.txt; do echo "$f: $(wc -l < "$f")"; done
for i in 1 2 3; do echo $i; done | tac
for f in src/*.py src/*/*.py; do head -1 $f; done
echo new | tee log.txt
echo more | tee -a a.txt > /dev/null; tail -1 a.txt
cat a.txt | tee copy1 copy2 | wc -l
env | grep API
printenv API_KEY
printenv NOPE; echo $?
echo $API_KEY "$GREETING" $GREETING
echo "${API_KEY:-none} ${NOPE:-none} ${NOTHING:-none} ${NOTHING-none} ${API_KEY:+yes} ${#API_KEY}"
NAME=x; echo "$NAME${NAME}s ${NAME}"
NAME=x env | grep NAME
NAME=x; env | grep NAME; export NAME; env | grep NAME
export A=1 B="two words"; printenv A B
unset API_KEY; echo "[$API_KEY]"
f=src/lib/util.py; echo ${f##*/} ${f%.py} ${f#*/} ${f%%/*}
echo $(ls *.md) `pwd`
echo "lines: $(cat a.txt | wc -l)"
x=$(grep -c ERROR logs/night.log); echo "$x errors"
cat <<EOF > out.txt; cat out.txt
cat <<'EOF' >> notes.md; tail -2 notes.md
printf '%s\\n' a b c
printf '%s=%d\\n' a 1 b 2
printf 'no end'
printf "%5s|%-5s|%03d\\n" ab cd 7
echo -e 'a\\tb\\nc'; echo -n x; echo y
echo 'single $API_KEY' "double \\"$API_KEY\\"" esc\\ aped
echo a{1,2,3}.txt {1..4} {x,y}{1,2}
mkdir -p docs/{a,b} && touch docs/a/x.md && ls docs
mkdir docs/a/b
mkdir src
cp a.txt copy.txt; cp -r src src2; ls src2
cp src x
cp nope x
mv notes.md docs.md && ls
mv src/lib src/library; ls src
mv nope x
rm a.txt b.txt; ls
rm src; rm -r src; ls
rm -f nope; rm nope
rm -rf logs empty.txt && ls
rmdir logs; rmdir nope
touch new.txt src/new.txt nope/new.txt
ls
ls -a
ls -A src
ls -1 src logs
ls a.txt src nope
ls *.nope
ls -d src/
ls -R src
ls -p
ls -r
cat a.txt nope b.txt
cat -n no_end.txt
cat src
cat < a.txt
cat
head -n 2 a.txt; head -2 a.txt b.txt; head -c 5 a.txt
head -n -1 a.txt
tail -n 2 a.txt; tail -1 no_end.txt; tail -n +2 a.txt; tail -c 4 a.txt
wc a.txt; wc -l a.txt b.txt; wc -w < a.txt; cat a.txt | wc; wc -c *.txt; wc -m a.txt
sort a.txt; sort -r a.txt; sort -u a.txt; sort -n data.csv
sort -t, -k3 -n data.csv
sort -t, -k2,2 -k1,1nr data.csv
sort a.txt | uniq -c | sort -rn
sort a.txt | uniq -d
cut -d, -f2 data.csv; cut -d, -f1,3 data.csv; cut -c1-3 a.txt; cut -d: -f2- notes.md
cut -d' ' -f1 logs/night.log | sort | uniq | head -2
cut -s -d, -f2 a.txt
tr a-z A-Z < a.txt; tr -d '\\n' < a.txt; echo aabbc | tr -s a-z; echo x,y | tr , '\\n'
echo Hello | tr '[:upper:]' '[:lower:]'; echo abc123 | tr -cd 0-9
rev a.txt; tac a.txt; rev no_end.txt
wc src/*; wc -l src a.txt
grep -q one a.txt nope && echo found; grep -q one nope a.txt
seq 3; seq 2 4; seq 10 -5 0
basename src/lib/util.py .py; dirname src/lib/util.py; basename src/; dirname a.txt
cat a.txt | xargs; echo a b c | xargs -n1 echo item
ls *.txt | xargs -I{} echo file {}
echo 'a.txt b.txt' | xargs cat
cd src && ls && pwd; cd .. && pwd
cd nope || echo no; pwd
cd nope && echo yes
(cd src && ls); pwd
{ echo a; echo b; } > both.txt; cat both.txt
(echo a; exit 3); echo $?
false; echo $?; true && false || echo or
! grep -q nope a.txt && echo absent
set -e; false; echo never
set -e; false || true; echo on
set -o pipefail; false | true; echo $?
false | true; echo $?
echo err >&2; echo out
ls nope 2>/dev/null; echo $?
ls nope a.txt 2>&1 >/dev/null | wc -l
ls nope a.txt > all.txt 2>&1; wc -l < all.txt
echo hi &> both; cat both
echo one > x; echo two >> x; cat x
> emptied.txt; ls -A emptied.txt
sort a.txt > a.txt; cat a.txt
cat a.txt > nope/x
cat a.txt > src
bash -c 'echo $0 inner; pwd' x | tail -1
sh -c "ls src | wc -l"
bash run.sh; sh ./run.sh
. ./run.sh
./nope.sh
exit 4
sleep 0; echo $?
true; : ; echo ok # comment
echo a \\
# only a comment
echo "a;b" 'c|d' e\\;f
echo *.md; echo "*.md"; echo src/*; echo */*.log; echo [a-b]*.txt; echo ?.txt; echo .h*
command -v git_nope; echo $?
git_nope status
which nope_x; echo $?
timeout 5 echo in time
echo "$(echo "nested $(echo deep)")"
echo $((1+2)) || true
diff_nope a b; echo next
test; echo $?; test x; echo $?; [ ]; echo $?
echo "unterminated
ls |
&& ls
if true; then echo a
for x in; do echo $x; done; echo end
cat a.txt | grep one | sed 's/one/1/' | sort -u | wc -l
grep -n ERROR logs/night.log | cut -d: -f1 | tr '\\n' ' '
ls -1 | grep -v '\\.' | sort
cat src/app.py | grep -A2 'def ' | tail -1
while true; do break; done
""".strip().split("\n")
OWN = {
    "echo $((1+2)) || true": "arithmetic is refused",
    "while true; do break; done": "`while` is refused",
    "sed -n '2{p}' a.txt | wc -l || true": "blocks of sed are refused",
    'echo "unterminated': "a shell's syntax error has exit code 1 with -c in some versions",
}
DOCUMENTS = {
    "cat <<EOF > out.txt; cat out.txt": "key $API_KEY and `pwd`\n  \\$5 'q' \"d\"\nEOF\n",
    "cat <<'EOF' >> notes.md; tail -2 notes.md": "$API_KEY `x`\n\\n\nEOF\n",
}


@pytest.mark.parametrize("command", [command for command in COMMON if command not in OWN])
def test_a_common_command(command: str) -> None:
    """What models usually type."""
    command = f"{command}\n{DOCUMENTS[command]}" if command in DOCUMENTS else command

    assert played(command) == really(command)


PATHS = st.sampled_from(["a.txt", "b.txt", "notes.md", "data.csv", "no_end.txt", "empty.txt", "src/app.py", "src/lib/util.py", "'src/lib/read me.md'", "logs/night.log", "nope.txt", "src", "*.txt", "src/*", "new.txt", "src/new/x"])  # fmt: skip
WORDS = st.sampled_from(["one", "two", "foo", "x", "ERROR", "o", "$API_KEY", '"$GREETING"', "$GREETING", "'a b'", "$NOTHING", '""', "12", "k-4471", "-n", "3"])  # fmt: skip
PATTERNS = st.sampled_from(["one", "^o", "o$", "o.*e", "[aeiou]", "[^a-z ]", "x*", "e\\+", "\\(o\\)\\|t", "a\\?b", "^$", "t\\{1,2\\}", "\\bo", "o\\>", "[[:digit:]][[:digit:]]*", ".", "\\.", "*", "b.b*", "e|o", "(one)", "a{2}", "\\w\\w"])  # fmt: skip
EXTENDED = st.sampled_from(["one|two", "^(a|o)", "(o|on|one)", "[0-9]+", "e{1,2}", "(ab)?c", "x+", "^.*o", "[a-z]*e", "(.)o", "^$|x", "\\(", "a|", "o?", "(t|th|thr)e*", "\\<t", "l{2,}", "[.]", "()x"])  # fmt: skip
NUMBERS = st.sampled_from(["0", "1", "2", "3", "5", "9"])


def _lines(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    """A command of parts with blanks between."""
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map(" ".join)


def _one_of(*options: str) -> st.SearchStrategy[str]:
    return st.sampled_from(options)


SED_ADDRESS = st.one_of(
    st.just(""), NUMBERS.filter(lambda number: number != "0"), st.just("$"), PATTERNS.map("/{}/".format),
    st.tuples(_one_of("1", "2", "/o/", "3"), _one_of("2", "4", "$", "/e/", "+1", "9", "1")).map(",".join),
    _one_of("2!", "1~2", "0~2", "/one/!", "/o/,/t/!"),
)  # fmt: skip
SED_COMMAND = st.one_of(
    _one_of("p", "d", "q", "=", "s/o/0/", "s/o/0/g", "s/[aeiou]/<&>/2", "s/x*/-/g", "s/e$//", "s/^/# /p", "s#o#/#", "y/abc/xyz/", "s/\\(o\\)\\(.\\)/\\2\\1/", "s/ONE/1/I", "s/.*//", "s/ *$//", "a new", "i new", "c new"),
    st.builds("s/{}/{}/{}".format, PATTERNS, _one_of("", "X", "[&]", "a\\/b", "\\&"), _one_of("", "g", "2", "gp")),
)  # fmt: skip
SED = st.one_of(
    st.builds("sed {} '{}{}' {}".format, _one_of("", "-n", "-i", "-n -e p -e"), SED_ADDRESS, SED_COMMAND, PATHS),
    st.builds("sed {} 's/{}/<\\0>/{}' {}".format, _one_of("-E", "-r", "-n -E", "-i -E"), EXTENDED, _one_of("", "g", "2g", "p"), PATHS),
)  # fmt: skip
GREP = st.one_of(
    st.builds("grep {} '{}' {} {}".format, _one_of("", "-n", "-c", "-v", "-i", "-o", "-l", "-w", "-x", "-in", "-on", "-vc", "-F", "-A1", "-B1 -n", "-C1", "-m2", "-h", "-H", "-q", "-s", "-L", "-ow"), PATTERNS, PATHS, PATHS),
    st.builds("grep {} '{}' {}".format, _one_of("-E", "-Eo", "-Ew", "-Ei", "-Ex", "-Ec"), EXTENDED, PATHS),
    st.builds("grep -r{} {} '{}' {} | sort".format, _one_of("", "n", "l", "i", "h", "c"), _one_of("", "--include='*.py'", "--include='*.md' --include='*.txt'", "--exclude='*.py'"), PATTERNS, _one_of("", ".", "src", "src logs", "a.txt", "nope")),
)  # fmt: skip
FIND_TEST = _one_of("-name '*.txt'", "-type f", "-type d", "-not -name '*.py'", "! -path './src/*'", "-maxdepth 1", "-mindepth 2", "-iname 'R*'", "-empty", "-name '*.md' -o -name '*.py'", "\\( -name 'a*' -o -type d \\)", "-size -1k", "-print", "-name '[a-b]*'", "-name '?*.*'", "-exec echo found {} \\;", "-path '*lib*'")  # fmt: skip
FIND = st.builds(
    "find {} {} | sort".format, _one_of(".", "src", "", "src logs", "a.txt", "./src/", "nope"), st.lists(FIND_TEST, max_size=3).map(" ".join)
)  # fmt: skip
TEST = st.builds(
    "{} {}; echo $?".format,
    _one_of("test", "test !"),
    st.one_of(
        st.builds("{} {}".format, _one_of("-e", "-f", "-d", "-s", "-n", "-z", "-r"), st.one_of(PATHS, WORDS)),
        st.builds("{} {} {}".format, WORDS, _one_of("=", "!=", "-eq", "-lt", "-ge", "==", "-a", "-o"), WORDS),
        WORDS,
    ),
)
TEXT = st.builds(
    "{} {} {}".format,
    _one_of(
        "cat",
        "cat -n",
        "head -n 2",
        "head -1",
        "head -n -2",
        "head -c 7",
        "tail -n 2",
        "tail -1",
        "tail -n +3",
        "tail -c 5",
        "wc",
        "wc -l",
        "wc -lw",
        "wc -c",
        "sort",
        "sort -r",
        "sort -n",
        "sort -u",
        "sort -nr",
        "sort -f",
        "sort -t, -k2",
        "sort -k2",
        "sort -t, -k3n",
        "sort -un",
        "uniq",
        "uniq -c",
        "cut -d, -f2",
        "cut -d' ' -f1,3",
        "cut -c2-4",
        "cut -c-3,5",
        "cut -sd: -f2",
        "tac",
        "rev",
        "ls",
        "ls -a",
        "ls -p",
        "ls -d",
        "ls -R",
    ),
    PATHS,
    st.one_of(st.just(""), PATHS),
).filter(
    lambda command: not command.startswith("uniq") or command.count(" ") < 3
)  # uniq's second file is its output; fmt: skip
CHANGE = st.one_of(
    st.builds("{} {}".format, _one_of("rm", "rm -r", "rm -f", "mkdir", "mkdir -p", "touch", "rmdir", "rm -rf"), PATHS.filter(lambda path: "new" in path or "nope" in path or path in ("a.txt", "src", "logs/night.log"))),
    st.builds("{} {} {}".format, _one_of("cp", "mv", "cp -r", "mv -n", "cp -n"), PATHS.filter(lambda path: path != "src/*"), _one_of("new.txt", "src", "logs/", "b.txt", "nope/x", "src/lib/copy")),
    st.builds("echo {} {} {}".format, WORDS, _one_of(">", ">>"), _one_of("new.txt", "a.txt", "src/new.py", "nope/x", "src", "no_end.txt")),
)  # fmt: skip
VALUE = st.one_of(
    _lines("echo", WORDS, WORDS, WORDS),
    st.builds("printf '{}' {} {}".format, _one_of("%s\\n", "%s-%s\\n", "[%s]", "%5s|\\n", "%d\\n"), _one_of("1", "22"), _one_of("3", "", "'04'")),
    st.builds("echo \"${{{}}}\" ${{{}}}".format, *[_one_of("API_KEY", "GREETING:-x", "NOPE:-y z", "NOTHING:-z", "NOTHING-z", "API_KEY:+set", "#GREETING", "API_KEY#k-", "API_KEY%71", "GREETING##* ", "GREETING%%l*", "API_KEY#*[0-9]", "NOPE")] * 2),
    st.builds("{}={} {}".format, _one_of("API_KEY", "X"), WORDS, _one_of("printenv X", "printenv API_KEY", "env | grep -c X=", "true; echo $X")),
    st.builds("X={}; export X; {}".format, WORDS, _one_of("printenv X", "echo \"$X\" $X", "sh -c 'echo $X'")),
    st.builds("echo {}".format, _one_of("a{1,2}b{x,y}", "{1..3}", "*", "*.t?t", "[!a]*.txt", "src/*/*", "no*match", "'*'", "\\*", "\"a  b\"  c", "$?", "~x", "a\\ b", "{a}", "{,a}b")),
)  # fmt: skip


def _reads_what_it_writes(command: str) -> bool:
    """Such a command is played on the file as it was."""
    return any(
        f"> {name}" in command and ("*" in command or command.count(name) > 1)
        for name in ("a.txt", "new.txt")
    )


SIMPLE = st.one_of(SED, GREP, FIND, TEST, TEXT, CHANGE, VALUE)
FILTER = _one_of("sort", "wc -l", "head -2", "tail -1", "grep o", "sed 's/o/0/'", "tr a-z A-Z", "cat -n", "uniq -c", "xargs", "xargs -n1 echo", "cut -c1-4", "tee copy.txt", "grep -c .", "sort -u", "sed -n 2p", "rev", "cat", "xargs -I{} echo '<{}>'")  # fmt: skip
COMMANDS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds("{}{}{}".format, inner, _one_of(" && ", " || ", "; ", "\n"), inner),
        st.builds("{} | {}".format, SIMPLE, FILTER),
        st.builds("{} | {} | {}".format, SIMPLE, FILTER, FILTER),
        st.builds("{} {}".format, SIMPLE, _one_of("> new.txt", ">> a.txt", "2>/dev/null", "< b.txt", "2>&1 >/dev/null | wc -l", "<<< 'one two'")).filter(lambda command: not _reads_what_it_writes(command)),
        st.builds("echo \"$( {})\"".format, inner),
        st.builds("echo $( {}) | wc -w".format, inner),
        st.builds("({}); echo $?".format, inner),
        st.builds("{{ {}; }} | wc -l".format, inner),
        st.builds("if {}; then echo yes; else echo no; fi".format, inner),
        st.builds("for f in {}; do {} \"$f\"; done".format, _one_of("*.txt", "a b c", "src/*", "$GREETING", "$(ls)"), _one_of("echo", "wc -c", "test -f", "basename")),
        st.builds("! {}; echo $?".format, SIMPLE),
        st.builds("cd src && {}; pwd".format, SIMPLE),
    ),
    max_leaves=3,
)  # fmt: skip


@examples(60, 3000)
@given(command=COMMANDS)
@example(command="sed -n '2,4p' a.txt")
def test_a_generated_command(command: str) -> None:
    """What a grammar of common programs, options, patterns, pipes, chains and substitutions yields."""
    assert played(command) == really(command)
