"""Show whether one run is better or worse than another, cell by cell.

Cells with replies in both runs are compared: verdicts by the exact test of
McNemar (with repeats, by a randomization test), times, tokens and cost as
ratios. A word such as "worse" appears only if chance would produce it in fewer
than 5 of 100 pairs of equal runs, over all targets together. Cells that were
asked, judged or served differently are set aside, with the reason; --across
compares them too, to show the effect of a changed prompt, model or server.

Targets that both runs have are compared. If the runs have no target in common
and only one each, these two are compared; --target selects others, also two of
one run.
`gate --baseline` fails a run that is worse.

Example:
  pytest-openclaw compare 20260213_235930 last
  pytest-openclaw compare before after --across serving,validator
  pytest-openclaw compare last --target ollama_native/x=ollama_native/y
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired

import pytest

from pytest_openclaw.cli.result import CliCommand, CommandResult, add_runs_dir, run_path, terminal_width
from pytest_openclaw.conclusions.summary import Summary
from pytest_openclaw.parts.baseline.comparison import (
    NO_DIFFERENCE,
    ComparedRuns,
    Obstacle,
    compare_records,
)
from pytest_openclaw.reports.blocks import Section, SummaryFinding, Table
from pytest_openclaw.reports.facts import CHANGES
from pytest_openclaw.reports.numbers import WIDTH, one_line, shorten, words
from pytest_openclaw.reports.terminal import finding_lines
from pytest_openclaw.runs.directory import is_active
from pytest_openclaw.runs.reading import StoredRun, is_run, load_run, runs_by_age
from pytest_openclaw.stats.intervals import LEVEL
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.parts import Gate, Part, PartKey
from pytest_openclaw.values.prompts import prompt_rules
from pytest_openclaw.values.requests import LISTED, PromptKey, Target
from pytest_openclaw.values.run_files import MeasuredRun, RunEntry, served_in
from pytest_openclaw.values.settings import IDENTITY, LAST, PROVIDERS, Rule, Settings, keys_to, setting_rules

if TYPE_CHECKING:
    import argparse

    from pytest_openclaw.parts.baseline.comparison import Comparison, Reason, VerdictChange

ACROSS = ("prompt", "validator", "serving", "settings", "surface")
"""Differences between two runs in spite of which cells can be compared."""
LONGEST_VALUE = 24
Compare = Callable[["MeasuredRun"], ComparedRuns]
"""Compares a run with the baseline that a session holds, a `partial` of `compare_runs`."""


# --- two runs ---------------------------------------------------------------------------------------
# A cell is compared if its prompt, validator, settings and serving are equal in both runs. Other cells are
# set aside with the reason, unless the user compares `across` this difference.


def compare_runs(
    base: MeasuredRun,
    candidate: MeasuredRun,
    *,
    across: Collection[str] = (),
    targets: Sequence[tuple[Target, Target]] | None = None,
) -> ComparedRuns:
    """Compare two runs; a difference in `across` (see `ACROSS`) does not set cells aside.

    Without `targets`, the targets that both runs have are compared. If the runs share no target and
    each has only one, these two are compared.
    """
    paired = _default_pairs(base, candidate, across) if targets is None else list(targets)
    obstacles: dict[Target | PromptKey, Obstacle] = dict(_prompt_obstacles(base, candidate, across))
    for one, other in paired:
        if found := _target_obstacle(base, candidate, one, other, across):
            obstacles[other] = found
    return compare_records(
        base.rows_of,
        candidate.rows_of,
        paired,
        obstacles,
        baseline=base.run_id,
        same_model="serving" not in across and all(one == other for one, other in paired),
        unfinished=candidate.unfinished,
        notes=[*_notes(base, candidate)],
    )


def _default_pairs(
    base: MeasuredRun, candidate: MeasuredRun, across: Collection[str]
) -> list[tuple[Target, Target]]:
    """Return the targets that are compared if the user names none.

    Across surfaces, a pair is one model on two surfaces, from `listed` to the other one if possible.
    """
    theirs, ours = base.targets, candidate.targets
    if "surface" in across:
        pairs = [(one, two) for two in ours for one in theirs if one != two and one.on(two.surface) == two]
        return [(one, two) for one, two in pairs if one.surface == LISTED] or pairs
    if common := [(target, target) for target in ours if target in theirs]:
        return common
    return [(*theirs, *ours)] if len(theirs) == len(ours) == 1 else []  # type: ignore[list-item]


def parse_across(text: str) -> frozenset[str]:
    """Return the differences that a list such as `serving,validator` names.

    Raises:
        OpenClawError: a difference is unknown.
    """
    named = frozenset(word.strip() for word in text.split(",")) - {""}
    if unknown := sorted(named.difference(ACROSS)):
        raise OpenClawError(f"unknown difference {unknown[0]!r}; choose from {', '.join(ACROSS)}")
    return named


def named_targets(
    base: MeasuredRun, candidate: MeasuredRun, named: Sequence[str]
) -> list[tuple[Target, Target]]:
    """Return the pairs of targets that the user names: `BASE=CANDIDATE`, or one label for both runs.

    Raises:
        OpenClawError: a run has no such target.
    """
    pairs = []
    for text in named:
        one, separator, other = text.partition("=")
        pairs.append((_target(base, one), _target(candidate, other if separator else one)))
    return pairs


def _target(run: MeasuredRun, label: str) -> Target:
    found = next((target for target in run.targets if target.label == label), None)
    if found is None:
        known = ", ".join(target.label for target in run.targets)
        raise OpenClawError(f"--target: {run.run_id} has no target {label}; it has {known}")
    return found


def _target_obstacle(
    base: MeasuredRun, candidate: MeasuredRun, one: Target, other: Target, across: Collection[str]
) -> Obstacle | None:
    if one.surface != other.surface and "surface" not in across:
        return Obstacle("on_another_surface", _change("surface", one.surface, other.surface))
    if "settings" not in across and (differing := [*_setting_changes(base, candidate, one, other)]):
        return Obstacle("asked_differently", "; ".join(differing))
    if one == other and "serving" not in across:
        then, now = _served(base.inventory, one.label), _served(candidate.inventory, one.label)
        changes = [
            _change(key.replace("_", " "), " or ".join(then[key]), " or ".join(now[key]))
            for key in sorted(then.keys() & now.keys())
            if then[key] != now[key]
        ]
        if changes:
            return Obstacle("served_differently", "; ".join(changes))
    return None


def _setting_changes(base: MeasuredRun, candidate: MeasuredRun, one: Target, other: Target) -> Iterator[str]:
    yield from _differing(setting_rules(), "settings", base.config, candidate.config)
    if one.surface == other.surface != LISTED:
        before, after = (run.config.get("surface") or {} for run in (base, candidate))
        if before.get("sha256") != after.get("sha256"):  # other texts, tools or fields
            names = (f"{sent.get('release')} {sent.get('source')}" for sent in (before, after))
            yield _change("surface", *names)
    if one.provider == other.provider:
        before, after = (run.config["providers"].get(one.provider, {}) for run in (base, candidate))
        yield from _differing(PROVIDERS, "settings", before, after)


def _differing(rules: Mapping[str, Rule], need: str, before: JsonObject, after: JsonObject) -> Iterator[str]:
    # The version that wrote a run without a key did not know this key.
    common = sorted((before.keys() & after.keys()) - set(IDENTITY))
    for name in keys_to(rules, "compare", need, common):
        if before[name] != after[name]:
            yield _change(name, _as_text(before[name]), _as_text(after[name]))


def _served(inventory: JsonObject, label: str) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for serving in served_in(inventory, label):
        for server in (serving.get("server"), serving.get("server_when_resumed")):
            for key, value in server.items() if isinstance(server, dict) else ():
                if value is not None:  # null in a merged run whose parts differ, which follow
                    found.setdefault(key, set()).add(_as_text(value))
    return {key: sorted(values) for key, values in found.items()}


def _prompt_obstacles(
    base: MeasuredRun, candidate: MeasuredRun, across: Collection[str]
) -> Iterator[tuple[PromptKey, Obstacle]]:
    obstacles: dict[str, Reason] = {"prompt": "prompt_changed", "validator": "validator_changed"}
    then, now = (
        {(prompt["suite"], prompt["id"]): prompt for prompt in run.config["prompts"]}
        for run in (base, candidate)
    )
    for key in then.keys() & now.keys():
        changed = [name for name in prompt_rules() if then[key].get(name) != now[key].get(name)]
        for need, reason in obstacles.items():
            names = keys_to(prompt_rules(), "compare", need, changed)
            if names and need not in across:
                yield key, Obstacle(reason, ", ".join(names))
                break


def _notes(base: MeasuredRun, candidate: MeasuredRun) -> Iterator[str]:
    for run in (base, candidate):
        if missing := sum(run.n_selected[target] - run.targets[target] for target in run.unfinished):
            yield f"{run.run_id} is not finished: {missing} of its cells have no row"
    yield from _differing(setting_rules(), "noted", base.config, candidate.config)
    before, after = (
        (run.inventory.get("packages") or {}).get("pytest-openclaw") for run in (base, candidate)
    )
    if before and after and before != after:
        yield f"judged by pytest-openclaw {before} -> {after}; `rescore` judges both by one version"


def _change(what: str, before: str, after: str) -> str:
    return f"{what} {shorten(before, LONGEST_VALUE)} -> {shorten(after, LONGEST_VALUE)}"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


# --- in words ----------------------------------------------------------------------------------------

TITLES = {"latency": "latency", "ttft": "TTFT", "output_tokens": "output tokens", "cost": "cost"}
NOT_COMPARED = "no judged cell could be compared"
MOST_PROMPTS = 8
LONGEST_NOTE = 100


def _findings(summary: Any) -> Iterator[tuple[int, SummaryFinding]]:
    compared: ComparedRuns | None = summary.comparison
    if compared is None:
        return
    found = [SummaryFinding(label="compared with", text=compared.baseline)]
    for one in compared.targets:
        verdicts = one.verdicts
        passed = f"{_passed(verdicts)}, p {verdicts.p:.2g}" if verdicts.n_cells else NOT_COMPARED
        changed = [
            f"{TITLES[name]} {ratio.ratio:.2f}x ({ratio.word})"
            for name, ratio in one.ratios.items()
            if ratio.word != NO_DIFFERENCE
        ]
        text = "; ".join([f"{name_of(one)}: {passed}", *changed, *(f"but {note}" for note in one.notes)])
        found.append(SummaryFinding(label=verdicts.word.removesuffix(" seen"), text=text))
    if not compared.targets:
        found.append(SummaryFinding(label="not compared", text="no target is in both runs"))
    counts: Counter[Reason] = Counter()
    for cells in compared.set_aside:
        counts[cells.reason] += cells.n_cells
    if counts:
        apart = (f"{counted(n, 'cell')} {words('set_aside')[reason]}" for reason, n in counts.items())
        found.append(SummaryFinding(label="set aside", text=", ".join(apart)))
    found += [SummaryFinding(label="note", text=note) for note in compared.notes]
    yield from ((CHANGES, finding) for finding in found)


def name_of(comparison: Comparison) -> str:
    """Return the name of a comparison: one target, or a pair of targets."""
    if comparison.base_target == comparison.target:
        return comparison.target
    return f"{comparison.base_target} -> {comparison.target}"


def notes_of(compared: ComparedRuns, option: str) -> Iterator[SummaryFinding]:
    """Yield why cells are set aside, and the notes; `option` is the option that compares such cells."""
    for cells in compared.set_aside:
        detail = f" ({cells.detail})" if cells.detail else ""
        across = words("across").get(cells.reason)
        hint = f"; {option}={across} compares them" if across else ""
        why = f"{words('set_aside')[cells.reason]}{detail}: {first_few(cells.prompts, MOST_PROMPTS)}{hint}"
        text = f"{counted(cells.n_cells, 'cell')} of {cells.target}: {why}"
        yield SummaryFinding(label="set aside", text=text)
    yield from (SummaryFinding(label="note", text=note) for note in compared.notes)


def details_of(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield title and text of each change, with its interval and its p-value."""
    verdicts = comparison.verdicts
    if verdicts.n_cells and verdicts.difference is not None:
        interval = verdicts.interval_95
        limits = f", 95 % {100 * interval.low:+.0f} to {100 * interval.high:+.0f}" if interval else ""
        change = f"{100 * verdicts.difference:+.0f} points{limits}; p {verdicts.p:.2g}"
        yield "passed", f"{_passed(verdicts)}: {change}"
        yield "prompts", f"{verdicts.n_prompts}: {verdicts.n_better} better, {verdicts.n_worse} worse"
    else:
        yield "passed", NOT_COMPARED
    for name, ratio in comparison.ratios.items():
        interval = ratio.interval_95
        limits = f" (95 % {interval.low:.2f}x to {interval.high:.2f}x)" if interval else ""
        counts = f"{counted(ratio.n_prompts, 'prompt')}, p {ratio.p:.2g}"
        yield TITLES[name], f"{ratio.ratio:.2f}x{limits}, {ratio.word}; {counts}"
    if comparison.outcomes:
        changes = (f"{one.outcome} {one.n_base} -> {one.n_candidate}" for one in comparison.outcomes)
        yield "tool use", ", ".join(changes)
    yield from (("note", one_line(note, LONGEST_NOTE)) for note in comparison.notes)


def _passed(verdicts: VerdictChange) -> str:
    return f"{verdicts.n_base}/{verdicts.n_cells} -> {verdicts.n_candidate}/{verdicts.n_cells}"


def _sections(summary: Any) -> Iterator[tuple[int, Section]]:
    compared, title = summary.comparison, "Compared with the baseline"
    if compared is None:
        return
    rows = [
        [name_of(one), what, text]
        for one in compared.targets
        for what, text in [("verdicts", one.verdicts.word), *details_of(one)]
    ]
    head = ("target", "what", "change")
    yield (
        CHANGES,
        Section(
            id="changes",
            title=title,
            is_in_comment=True,
            intro=f"The baseline is {compared.baseline}; ratios are of this run to it.",
            blocks=[
                Table(head=head, rows=rows, words=head, caption=title),
                "" if compared.targets else "No target is in both runs.",
                [*notes_of(compared, "--openclaw-across")],
            ],
        ),
    )


def render_comparison(compared: ComparedRuns, width: int = WIDTH) -> Iterator[str]:
    """Yield all facts of a comparison: each target with its details, then the cells that are set aside."""
    for one in compared.targets:
        yield f"{name_of(one)}: {one.verdicts.word}"
        details = (SummaryFinding(label=f"  {title}", text=text) for title, text in details_of(one))
        yield from finding_lines(details, width)
    if not compared.targets:
        yield "no target is in both runs; select two with --target BASE=CANDIDATE"
    yield from finding_lines(notes_of(compared, "--across"), width)


# --- the gate on a baseline -------------------------------------------------------------------------


def _rule(target: str, summary: Any, gap: str | None) -> dict[str, Any]:
    comparison: ComparedRuns | None = summary.comparison
    compared = comparison.of(target) if comparison else None
    if comparison is None or compared is None or not (verdicts := compared.verdicts).n_cells:
        with_what = f"with {comparison.baseline}" if comparison else "because there is no baseline"
        reason = f"nothing could be compared {with_what}"
        return {"wanted": LEVEL, "found": None, "ruling": "no_verdict", "reason": reason}
    n_targets = sum(one.verdicts.n_cells > 0 for one in comparison.targets)
    passed = f"{verdicts.n_base} -> {verdicts.n_candidate} of {verdicts.n_cells} cells passed"
    found = f"{passed}, p {verdicts.p:.2g}"
    ruling = "no_verdict"
    if verdicts.word == "worse":
        ruling, reason = "failed", f"worse: {found}"
    # Even if every prompt failed now, p would not be below the limit that Holm sets for the first target.
    elif 2 / 2**verdicts.n_prompts >= LEVEL / n_targets:
        prompts = f"{counted(verdicts.n_prompts, 'prompt')} {'is' if verdicts.n_prompts == 1 else 'are'}"
        reason = f"{found}, but {prompts} too few to see any loss"
    elif gap:
        reason = f"{found}, but {gap}"
    elif verdicts.if_failed == "worse":
        cells = counted(verdicts.n_open, "cell")
        reason = f"{found}, but {cells} without an answer might have made it worse"
    else:
        ruling, reason = "passed", f"{verdicts.word}: {found}"
    return {"wanted": LEVEL, "found": verdicts.p, "ruling": ruling, "reason": reason}


# --- the part in a run ------------------------------------------------------------------------------


def _held(settings: Any, resumed: Path | None) -> Compare | None:
    """Read the baseline before any call; reject a gate that needs a baseline that is not named."""
    name, gates = settings.baseline, getattr(settings, "gates", None)
    compares = gates is not None and "fail_on" in gates.of_any_target
    if not name and compares:
        hint = "name the run to compare with: --openclaw-baseline=RUN"
        raise pytest.UsageError(f"--openclaw-fail-on=regression: {hint}")
    if not name:
        return None
    try:
        base = read_baseline(name, settings.runs_dir, besides=resumed)
        return partial(compare_runs, base, across=settings.across)
    except (OpenClawError, OSError) as error:
        first = "--openclaw-baseline=off" + (" --openclaw-fail-on=off" if compares else "")
        hint = f"; a first run is measured with {first}" if name == LAST else ""
        raise pytest.UsageError(f"--openclaw-baseline={name}: {error}{hint}") from None


def read_baseline(name: str, runs_dir: Path, *, besides: Path | None = None) -> MeasuredRun:
    """Read the run to compare with.

    Args:
        name: a path, an id in the folder of runs, or `last`: the newest run that is not active.
        runs_dir: the folder of runs.
        besides: a run to exclude, because this session continues it.

    Raises:
        OpenClawError: the run does not exist, or cannot be read.
    """
    own = besides and besides.resolve()
    if name == LAST:
        ended = (one for one in runs_by_age(runs_dir) if one.resolve() != own and not is_active(one))
        path = next(ended, None)
    else:
        path = next((one for one in (Path(name).expanduser(), runs_dir / name) if is_run(one)), None)
    if path is None:
        other = "other run" if name == LAST else f"run {name}, neither here nor"
        raise OpenClawError(f"there is no {other} in {runs_dir}")
    if path.resolve() == own:
        raise OpenClawError(f"{path.name} is the run that continues; name the one to compare it with")
    return load_run(path)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that compares a run with another one."""
    parser.add_argument("--baseline", metavar="RUN", help="the run to compare with")
    _add_across(parser)


def _add_across(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--across",
        default="",
        metavar="WHAT[,WHAT…]",
        help="also compare cells that differ in prompt, validator, serving, settings or surface",
    )


def _held_by(arguments: argparse.Namespace, run: StoredRun) -> Compare | None:
    across = parse_across(arguments.across)
    if not arguments.baseline:
        return None
    base = read_baseline(arguments.baseline, arguments.runs_dir, besides=run.path)
    return partial(compare_runs, base, across=across)


def _compared(_: Summary, run: MeasuredRun) -> ComparedRuns | None:
    compare: Compare | None = run.held.get("baseline")
    return compare(run) if compare else None


PART = Part(
    keys={
        Settings: {
            "baseline": PartKey(
                str,
                of=lambda _, given: "" if (name := given.get("baseline", "")) == "off" else name,
                default="",
            ),
            "across": PartKey(
                frozenset[str], of=lambda _, given: frozenset(given.get("across", ())), default=frozenset()
            ),
        },
        RunEntry: {
            "across": PartKey(
                NotRequired[list[str] | None],
                place="concurrency",
                rule=Rule("free", "free", lambda settings: sorted(settings.across)),  # type: ignore[attr-defined]
            ),
            # The id of the run that is held.
            "baseline": PartKey(
                NotRequired[str | None], place="budget_usd", rule=Rule("free", "free", lambda _: None)
            ),
        },
        Summary: {
            "comparison": PartKey(
                ComparedRuns | None,
                "with the baseline; None without a baseline.",
                "best",
                _compared,
                default=None,
            )
        },
    },
    arguments=add_arguments,
    held_by=_held_by,
    held=_held,
    recorded=lambda compare: {"baseline": compare.args[0].run_id},
    gates={
        "fail_on": Gate(
            6,
            "fail-on",
            Literal["regression"],
            "`regression` fails a target that is shown to be worse than in the baseline.",
            rule=_rule,
            name="fail-on-regression",
            usual=LEVEL,
            needs="baseline",
        )
    },
    findings=_findings,
    sections=_sections,
)


# --- the command ------------------------------------------------------------------------------------


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", help="the baseline: its directory, its id, or last")
    parser.add_argument(
        "candidate", nargs="?", metavar="CANDIDATE", help="the run to compare with the baseline (BASE itself)"
    )
    _add_across(parser)
    parser.add_argument(
        "--target",
        action="append",
        metavar="BASE=CANDIDATE",
        help="compare this target of BASE with this target of CANDIDATE; may be repeated",
    )
    add_runs_dir(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    across, named = parse_across(arguments.across), (arguments.base, arguments.candidate or arguments.base)
    if not (arguments.candidate or arguments.target):
        raise OpenClawError(f"name a second run, or two targets of {arguments.base}: --target A=B")
    base, candidate = (load_run(run_path(run, arguments.runs_dir), even_active=True) for run in named)
    targets = named_targets(base, candidate, arguments.target) if arguments.target else None
    compared = compare_runs(base, candidate, across=across, targets=targets)
    return CommandResult(
        lines=[
            " -> ".join(dict.fromkeys((base.run_id, candidate.run_id))),
            "",
            *render_comparison(compared, terminal_width()),
        ],
        data={**asdict(compared), "candidate": candidate.run_id},
    )


COMMANDS = (CliCommand(name="compare", help=__doc__, add_arguments=_add_arguments, run=_run),)
