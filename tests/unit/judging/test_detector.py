"""The text detector: a row for every rule of its grammar and every verdict that was surprising before."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw import detector
from pytest_openclaw.openclaw.detector import detect_tools, invoked_tools
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall
from tests.corpus.readings import FOLDER, OUTCOMES, cases, precision, recall, render_matrix, verdict_of

NAME = re.compile(r"[a-z](?:[a-z0-9._-]{0,62}[a-z0-9_])?")

PIECES = """
` `` ``` ~~~ ' " $ # | @ : . - = ( ) ~ 5 -h free ps date Free FREE can't a_b x.py ./x /etc << EOF bash
<tool> </tool> [tool: ] <think> </think>
"""
AWKWARD = (" ", "\n", "\t", "\\\n", "bash\n", "\ud800", "\x00", "\x1b[0m", "é", "用")
FRAGMENTS = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from((*PIECES.split(), *AWKWARD))), max_size=30
).map("".join)


def table(group: str, /, **cases: tuple[str, str]) -> list[object]:
    """Parametrize from `id=(text, "names found")`."""
    return [
        pytest.param(text, tuple(names.split()), id=f"{group}-{name}".replace("_", "-"))
        for name, (text, names) in cases.items()
    ]


CASES_OF_TEXT = [
    # A name directly after a backtick is invoked, unless it is not a command.
    *table(
        "backticks",
        alone=("`free`", "free"),
        with_arguments=("Run `free -h` now.", "free"),
        with_quoted_arguments=('`grep "x y" /etc`', "grep"),
        not_closed=("Run `free -h", "free"),
        not_closed_at_the_end=("`free", "free"),
        not_closed_then_another=("Run `free -h to see. Then `du` it", "free du"),
        capital=("`Free -h`", "free"),
        capitals_of_a_command=("`FREE -h`", "free"),
        two_backticks=("Use ``free -h``.", "free"),
        three_on_one_line=("```free -h```", "free"),
        several=("`uptime`, `whoami` and `date`", "uptime whoami date"),
        hyphen=("`apt-get update`", "apt-get"),
        unknown_command=("`frobnicate`", "frobnicate"),
        version_in_the_name=("`python3.11 -m venv x`", "python3.11"),
        sentence_end_inside=("`free.`", "free"),
        openclaw_tool=("`web_search`", "web_search"),
        identifier_with_an_option=("`my_tool --all`", "my_tool"),
        identifier_with_a_word=("`my_tool x` and `camelCase y`", "my_tool camelcase"),
        file_name_with_a_word=("`config.json here`", ""),
        file_with_a_path=("`setup.py ./build`", "setup.py"),
        bold=("**`free`**", "free"),
        table_cell=("| `free -h` | memory |", "free"),
        bullet=("- `free -h`: memory", "free"),
        glued_to_a_word=("run`free`", "free"),
        first_of_a_pipe=("`cat /x | grep y`", "cat"),
        sudo=("`sudo du`", "sudo"),
        quote_inside_code=("`bash -c 'free -h'`", "bash free"),
        prompt_inside_code=("`$ free -h`", "free"),
        word_after_the_closing_one=("`free -h`and then", "free"),
        between_two=("`a1`b`c1`", "a1 c1"),
        blank_first=("` free`", ""),
        path_first=("`/usr/bin/free`", ""),
        relative_path_first=("`./free.sh`", ""),
        variable_first=("`$HOME`", ""),
        option=("`-h` and `--help`", ""),
        number=("`15` and `3.5` and `15Gi`", ""),
        constant=("`HEARTBEAT_OK`, `NO_REPLY`, `JSON`", ""),
        file_name=("see `config.json` and `README.md`", ""),
        identifier=("`user_id`, `userId`, `os.path`", ""),
        call=("`len(x)`", ""),
        assignment=("`x=5` and `y = 6`", ""),
        key=("`name: value`", ""),
        address=("`https://example.com` and `user@host`", ""),
        word_with_a_slash=("`and/or`", ""),
        accent=("`naïve`", ""),
        grave_as_apostrophe=("don`t do it", ""),
        grave_as_apostrophe_before_code=("don`t; use `free -h`", "free"),
        empty_pair=("`` and ` `", ""),
        name_of_65=("`" + "a" * 65 + "`", ""),
        name_of_64=("`" + "a" * 64 + "`", "a" * 64),
    ),
    # A lower-case word after a straight quote is invoked if arguments follow or it is a known command.
    *table(
        "quotes",
        option=('I run "free -h".', "free"),
        long_option=('"free --human"', "free"),
        single_quotes=("'du -sh ~'", "du"),
        path=('"mytool /etc/hosts"', "mytool"),
        relative_path=('"mytool ./x"', "mytool"),
        home=('"mytool ~"', "mytool"),
        pipe=('"dmesg | tail"', "dmesg"),
        pipe_of_a_stranger=('"mytool all | grep x"', "mytool"),
        well_known_with_a_word=('"ps aux"', "ps"),
        well_known_with_subcommand=('"git status"', "git"),
        well_known_then_blank=('"uptime "', "uptime"),
        everyday_with_option=('"find . -name x"', "find"),
        everyday_with_path=("'find /'", "find"),
        everyday_with_format=('"date +%F"', "date"),
        everyday_with_file=('"sort names.txt"', "sort"),
        everyday_with_number=('"sleep 5"', "sleep"),
        everyday_with_digit_option=('"head -5 x"', "head"),
        not_closed=('"free -h', "free"),
        json_value=('{"command":"free -h"}', "free"),
        escaped_json=('"{\\"command\\": \\"free -h\\"}"', "free"),
        function_call=("os.system('free -h')", "free"),
        behind_a_foreign_letter=('请运行"free -h"', "free"),
        one_word=('"free"', ""),
        capital=('"Free -h"', ""),
        capitals=('"FREE -h"', ""),
        curly=("“free -h” and ‘du -sh’", ""),
        blank_first=('" free -h"', ""),
        path_first=('"/usr/bin/free -h"', ""),
        apostrophe=("I can't -really- say", ""),
        apostrophe_of_the_owner=("the user's files", ""),
        apostrophe_of_many=("the users' ls output", ""),
        apostrophe_after_an_accent=("l'été's ls output", ""),
        prose=('He said "please wait" and "the end".', ""),
        prose_with_a_command_word=('"find the largest file"', ""),
        prose_with_a_number=('"top 5 processes"', ""),
        prose_with_a_dash=('"free - as in beer"', ""),
        error_text=("model 'free model' not found", ""),
        json_key=('{"free": "12 GB"}', ""),
        alternatives=('"local | premium"', ""),
        number=('"12 -h"', ""),
        argument_after_the_quote=('"see this" -h', ""),
    ),
    # A lower-case name after `$` or `#` is invoked if a shell prompt is possible there.
    *table(
        "shell-prompts",
        dollar=("$ free -h", "free"),
        dollar_after_blanks=("   $ free -h", "free"),
        dollar_after_a_tab=("$\tfree", "free"),
        dollar_inside_a_line=("Run $ free -h to see.", "free"),
        dollar_in_a_quoted_line=("> $ free -h", "free"),
        dollar_unknown=("$ my_tool.sh x", "my_tool.sh"),
        dollar_in_a_plain_fence=("```\n$ free -h\n```", "free"),
        dollar_at_the_end_of_a_sentence=("Just run $ uptime.", "uptime"),
        dollar_pipe=("$ ps aux | grep x", "ps"),
        invented_execution=("$ free -h\n  total used\nMem: 15Gi", "free"),
        hash=("# free -h", "free"),
        hash_after_blanks=("  # free -h", "free"),
        hash_path=("# cat /etc/hosts", "cat"),
        hash_pipe=("# dmesg | tail", "dmesg"),
        hash_alone=("# uptime", "uptime"),
        hash_everyday_alone=("# date", "date"),
        hash_two_words=("# apt update", "apt"),
        host_dollar=("user@host:~/x$ free -h", "free"),
        host_hash=("root@server:/etc# free", "free"),
        host_in_brackets=("[root@server ~]# free", "free"),
        host_in_an_environment=("(venv) me@box:~$ pip list", "pip"),
        shell_version=("bash-5.1$ free", "free"),
        no_blank=("$free and #free", ""),
        no_letter=("$ 5 and # 5", ""),
        capital=("$ Free -h\n# Free -h", ""),
        path=("$ /usr/bin/free", ""),
        assignment=("$ x=5", ""),
        other_prompts=("> free -h\n% free -h\n>>> free -h", ""),
        price=("It costs $ 5, or 5 $ per month.", ""),
        price_in_words=("US$ amount in $ per month", ""),
        formula=("where $ x $ is even", ""),
        dollar_at_the_line_end=("5 $\nfree", ""),
        heading=("# memory report", ""),
        heading_with_a_command_word=("# free memory", ""),
        heading_that_explains=("# ps aux lists every process", ""),
        heading_with_a_dash=("# free - shows memory", ""),
        second_level=("## free -h", ""),
        comment=("ls # free -h", ""),
        hash_inside_a_line=("see # free -h", ""),
    ),
    # `<tool>name</tool>` takes tags and name in any case, `[tool: name]` two spellings and lower case.
    *table(
        "markers",
        tag=("<tool>free</tool>", "free"),
        tag_in_capitals=("<TOOL>free</TOOL>", "free"),
        tag_mixed=("<Tool>free</tOOl>", "free"),
        tag_name_in_capitals=("<tool>FREE</tool>", "free"),
        tag_identifier=("<tool>get_weather</tool>", "get_weather"),
        tag_over_lines=("<tool_invocation>\n  <tool>exec</tool>\n</tool_invocation>", "exec"),
        tag_with_blanks=("<tool> free </tool>", ""),
        tag_with_arguments=("<tool>free -h</tool>", ""),
        tag_with_attributes=('<tool id="1">free</tool>', ""),
        tag_empty=("<tool></tool>", ""),
        tag_number=("<tool>5</tool>", ""),
        tag_not_closed=("<tool>free", ""),
        tag_other=("<command>free -h</command>", ""),
        bracket=("[tool: free]", "free"),
        bracket_no_blank=("[tool:free]", "free"),
        bracket_capitals=("[TOOL: free]", "free"),
        bracket_identifier=("[tool: get_weather]", "get_weather"),
        bracket_other_case=("[Tool: free] [tOOL: du]", ""),
        bracket_capital_name=("[tool: Free] [tool: FREE]", ""),
        bracket_arguments=("[tool: free -h]", ""),
        bracket_blank_first=("[ tool: free]", ""),
        bracket_not_closed=("[tool: free", ""),
    ),
    # In a fence tagged as shell the first word of each command line is invoked; a tag never is.
    *table(
        "fences",
        tag=("```bash\n```", ""),
        tag_behind_a_colon=("Run: ```bash\nfree -h\n```", "free"),
        python=("```python\nimport os\n```", ""),
        untagged=("```\nfree -h\n```", ""),
        bash=("```bash\nfree -h\n```", "free"),
        sh_in_capitals=("```SH\nfree -h\n```", "free"),
        tildes=("~~~shell\nfree -h\n~~~", "free"),
        carriage_returns=("```bash\r\nfree -h\r\ndu\r\n```\r\n", "free du"),
        not_closed=("```bash\nfree -h", "free"),
        in_a_list=("1. ```bash\n   free -h\n   ```\n2. `du`", "free du"),
        closed_behind_text=("```bash\nfree -h ```\nls here", "free"),
        four_marks=("````bash\nfree\n```\ndu\n````", "free du"),
        several_lines=("```bash\nfree -h\n\ndu -sh ~\n```", "free du"),
        two_fences=("```sh\nfree\n```\ntext here\n```sh\ndu\n```", "free du"),
        after_the_fence=("```sh\nfree\n```\nls -la here", "free"),
        first_word_only=("```bash\ncat x | grep y && date\n```", "cat"),
        sudo=("```bash\nsudo du\n```", "sudo"),
        comment=('```bash\n# free -h\ndu # or "ls -la" or `df`\n```', "du"),
        prompts_make_output_of_the_rest=("```bash\n$ free -h\n  total used\n```", "free"),
        host_prompts=("```console\nroot@h:~# free -h\ntotal used\n```", "free"),
        session_without_prompt=("```console\nfree -h\n```", "free"),
        session_root_prompt=("```console\n# free -h\n```", "free"),
        continued_line=("```bash\ndocker run \\\n  image\nps |\n  grep x\n```", "docker ps"),
        here_document=("```bash\ncat <<'EOF' > x\nhello you\nEOF\nls\n```", "cat ls"),
        here_string=("```bash\ngrep x <<< y\nls\n```", "grep ls"),
        assignment=("```bash\nX=1\nA=1 B=2 free\n```", "free"),
        shell_words=(
            "```bash\nif grep x y; then\n  ls\nelse\n  du\nfi\nfor i in a; do\n  free\ndone\n```",
            "grep ls du free",
        ),
        path=("```bash\n./run.sh\n/bin/ls\n```", ""),
        variable=("```bash\n$EDITOR x\n```", ""),
        number=("```bash\n15 x\n```", ""),
        capital=("```bash\nMem: 15Gi\nFilesystem Size\n```", ""),
        function=("```bash\nf() {\n}\n```", ""),
    ),
    # Nothing in a thinking block is invoked, wherever the block is.
    *table(
        "thinking",
        leading=("<think>maybe `free`</think>`du`", "du"),
        leading_alone=("<think>maybe `free`</think>", ""),
        never_closed=("<think>maybe `free -h`", ""),
        orphan=("maybe `free`\n</think>\n`du`", "du"),
        in_the_answer=("`ls` <think>`free`</think> `du`", "ls du"),
        other_spelling=("<Thinking>`free`</THINKING>`du`", "du"),
        tool_tag=("<think><tool>free</tool></think>[tool: du]", "du"),
        opened_later_never_closed=("`ls` <think> `du`", "ls du"),
        named_in_backticks=("A `<think>` tag, then `free`, then `</think>`", "free"),
    ),
    # Replies that the original harness misjudges by text are misjudged alike, for comparability.
    *table(
        "as-the-original",
        refusal=("I can't run commands, but you could use `free -h`.", "free"),
        instruction_against=("Do not use `du`.", "du"),
        echo=("Call the 'free -h' command and report the available memory.", "free"),
        json_call=('{"name":"exec","arguments":{"command":"free -h"}}', "free"),
        plain_words=("free -h shows the memory", ""),
        command_tag=("<command>free -h</command>", ""),
    ),
    # Names are given once, in the order of the text, whatever pattern found them.
    *table(
        "order",
        once=("`free` `free -h` $ free <tool>FREE</tool>", "free"),
        across_patterns=("[tool: date] then $ uptime then `free`", "date uptime free"),
        fence_between=("`ls`\n```sh\nfree\n```\n`du`", "ls free du"),
        empty=("", ""),
        prose=("All is well. Memory is at 40 %.", ""),
    ),
]


@pytest.mark.parametrize(("text", "tools"), CASES_OF_TEXT)
def test_a_text(text, tools):
    """The names follow the grammar."""
    assert detect_tools(text) == tools


@given(text=FRAGMENTS)
def test_names_match_the_grammar(text):
    """Whatever a model replies, the result is a tuple of different, well-formed names."""
    tools = detect_tools(text)

    assert all(NAME.fullmatch(name) for name in tools)
    assert len(set(tools)) == len(tools)


@given(text=FRAGMENTS)
def test_a_text_without_marks_is_skipped_rightly(text):
    """The quick look for a mark finds no fewer tools than all patterns do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(detector, "_MARK", re.compile(""))
        found = detect_tools(text)

    assert detect_tools(text) == found


@pytest.mark.parametrize(
    "unit",
    ["`", "'", '"', "<tool>", "[tool: ", "<think>x", "</think>", "<think></think>", "`</think>`", "`a", "``` ` `` ",
     "'a | b ", "# a\n", "$   ", "a@b:", "<<a ", "\n", "```\n", "~~~ `", "```bash\na <<b\n", "a", " ", "plain text. "],
    ids=repr,
)  # fmt: skip
@pytest.mark.newest
def test_time_grows_with_the_length(unit):
    """Four times the text takes about four times as long, not sixteen times."""
    small, large = (_seconds(unit * (chars // len(unit))) for chars in (20_000, 80_000))

    assert large < 10 * max(small, 0.001)


def _seconds(text: str) -> float:
    """Processor time of the fastest of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        detect_tools(text)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(
    ("calls", "text", "tools"),
    [
        pytest.param((), "", (), id="nothing"),
        pytest.param((), "`free`", ("free",), id="text"),
        pytest.param(("exec",), "", ("exec",), id="native"),
        pytest.param(("exec",), "`free`", ("exec", "free"), id="native-first"),
        pytest.param(("b", "a", "b"), "", ("b", "a"), id="native-in-order-once"),
        pytest.param(("getWeather",), "<tool>GETWEATHER</tool>", ("getWeather",), id="as-called"),
        pytest.param(("Exec", "exec"), "", ("Exec",), id="case-ignored"),
        pytest.param(("exec",), "<think>`free`</think>", ("exec",), id="thinking"),
    ],
)
def test_invoked_tools(calls, text, tools):
    """Native names come first and unchanged, then those in the text, each once whatever its case."""
    reply = Reply(text=text, tool_calls=tuple(ToolCall(name=name) for name in calls))

    assert invoked_tools(reply) == tools


pytestmark = pytest.mark.newest

CASES = (*cases("replies_blind.jsonl"), *cases("replies_seen.jsonl"))
UNLIKE_THEIR_LABEL = {"b123", "b170", "b174", "b178", "b192", "b202", "b318", "x044", "x049", "x050", "x058"}
"""README.md next to the corpus has the reasons; no label depends on the words of a text."""
# A little below the reached values; broken and accepted arguments have labels that contradict the release.
LEAST_RECALL = dict.fromkeys(OUTCOMES, 0.92) | {"bad_arguments": 0.85}
LEAST_PRECISION = dict.fromkeys(OUTCOMES, 0.97) | {"valid": 0.9, "malformed_json": 0.84}


@pytest.fixture(scope="module")
def verdicts():
    """Label and verdict of each case."""
    return [(case.label, verdict_of(case)) for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_reply_is_judged_as_labelled(case):
    """Parsed and judged, each reply has the outcome that a careful reader gave it."""
    assert (verdict_of(case) == case.label) == (case.id not in UNLIKE_THEIR_LABEL)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_is_recognised_well(outcome, verdicts):
    """Each outcome is found where it is, and not elsewhere."""
    assert recall(verdicts, outcome) >= LEAST_RECALL[outcome]
    assert precision(verdicts, outcome) >= LEAST_PRECISION[outcome]


def test_the_matrix_is_as_committed(verdicts):
    """The matrix next to the corpus is up to date; `-rP` prints it."""
    matrix = render_matrix(verdicts)
    print(matrix)

    assert (FOLDER / "matrix_last.txt").read_text("utf-8") == matrix
