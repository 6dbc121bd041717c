"""A part: everything of one kind of evidence or act, which the core calls at a few points and never imports.

`parts/__init__.py` has the table of parts. A module with a `PART` takes part in runs: its functions are
called at the points that `Part` names, in the order of the table, and its keys are in the types of the core
that `whole` completes. Every pytest session imports this module, so it imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache
from importlib import import_module
from inspect import cleandoc
from types import FunctionType, UnionType
from typing import (
    Any,
    NamedTuple,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

T = TypeVar("T")

FOLDER = "pytest_openclaw.parts"


class Entry(NamedTuple):
    """A part's line in the table.

    Attributes:
        options: its options and ini keys.
        commands: the names of the commands that the module has in `COMMANDS`.
        in_runs: whether the module has a `PART`.
        is_plugin: whether the module has hooks of pytest; if so, every pytest session imports it.
    """

    options: tuple[Any, ...] = ()
    commands: tuple[str, ...] = ()
    in_runs: bool = False
    is_plugin: bool = False


class PartKey(NamedTuple):
    """A key that a part adds to a type of the core, which is a dataclass or a typed dict.

    Attributes:
        kind: its type, or a function that returns the type.
        about: its description.
        place: the key of the core that it follows in JSON; after `<`, the key that it precedes.
        of: returns its value: in `Settings` of `(config, given)`, the options and ini keys that are given; in
            a `Group` of its `Evidence`; in a `Summary` of `(summary, run)`, with the keys before it.
        default: as in a dataclass.
        rule: its `Rule`, if it is a setting or a label of prompts in `config.json`.
        example: a value in TOML, for messages, if it is a label.
        is_apart: whether the cells of prompts with this label do not count for the tier.
    """

    kind: Any
    about: str = ""
    place: str = ""
    of: Callable[..., Any] | None = None
    default: Any = MISSING
    rule: Any = None
    example: str = ""
    is_apart: bool = False


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a part does in a run; None at the points that it does not need.

    Attributes:
        keys: its keys, by the type of the core to which it adds them. A key of `PromptEntry` is a label: key
            of prompts in suites, or at the top of a suite for all its prompts, and of rows.
        given: `(given)`; checks the options and ini keys that are given, and may add to them.
        pace: `(settings)`; returns a `Pacing`, or None if all cells of the run are asked.
        changes: `(config.json, settings)`; yields what prevents resuming a run, one sentence each.
        resumed: `(config.json, settings, given)`; returns the fields of `Settings` that a resumed run keeps.
        arguments: `(parser)`; adds its options of the commands that summarize a run again.
        held_by: `(arguments, run)`; returns what it holds for a run that a command summarizes again.
        hinders: `(settings)`; returns whether the session sends no request.
        held: `(settings, directory)`; checks settings before the first call, and returns what it holds.
            The directory is that of a resumed run, or None.
        recorded: `(held)`; returns its keys of `config.json` that follow from what it holds.
        testify: `(evidence)`; returns a `Testimony` for the recommendation.
        gates: the gates that it adds, by their fields.
        notes: `(group)`; yields a rank, a label and a text for each finding about a target.
        advise: `(group, outcome)`; returns the fix for the most frequent bad outcome.
        findings: `(summary)`; yields pairs of a rank and a `SummaryFinding`.
        listings: its tables of targets, each a `Listing` by its rank.
        sections: `(summary)`; yields pairs of a rank and a `Section`.
        ruling: `(summary)`; returns the ruling of the whole run, as a word and in words.
        annotations: `(summary)`; yields the title and the text of each error for a CI system.
        join: `(owner, config)`; takes part in a session.
        status: `(ended)`; returns the session's exit status, or None to leave it to the core.
    """

    keys: Mapping[type, Mapping[str, PartKey]] = field(default_factory=dict)
    given: Callable[..., None] | None = None
    pace: Callable[..., Pacing | None] | None = None
    changes: Callable[..., Iterable[str]] | None = None
    resumed: Callable[..., Mapping[str, Any]] | None = None
    arguments: Callable[..., None] | None = None
    held_by: Callable[..., Any] | None = None
    hinders: Callable[..., bool] | None = None
    held: Callable[..., Any] | None = None
    recorded: Callable[..., Mapping[str, Any]] | None = None
    testify: Callable[..., Any] | None = None
    gates: Mapping[str, Gate] = field(default_factory=dict)
    notes: Callable[..., Iterable[tuple[int, str, str]]] | None = None
    advise: Callable[..., str] | None = None
    findings: Callable[..., Iterable[Any]] | None = None
    listings: Mapping[int, Any] = field(default_factory=dict)
    sections: Callable[..., Iterable[Any]] | None = None
    ruling: Callable[..., tuple[str, str] | None] | None = None
    annotations: Callable[..., Iterable[tuple[str, str]]] | None = None
    join: Callable[..., None] | None = None
    status: Callable[..., int | None] | None = None


class Pacing(NamedTuple):
    """How a run asks only as many cells as it needs.

    Attributes:
        repeats_of: `(prompt)`; returns the most repeats of a prompt that does not set its own number.
        positions_of: `(prompts)`; returns the position of each in a repeat, by suite and id.
        stopping: `(cells)`; returns the `Stopping` of a run of these cells, which are in their order.
    """

    repeats_of: Callable[..., int]
    positions_of: Callable[..., Mapping[tuple[str, str], float]]
    stopping: Callable[..., Any]


class Checked(NamedTuple):
    """Figures compared with the limit of a gate.

    Attributes:
        state: `passes`, `fails` or `open`; None if there are no figures.
        text: the figure and the limit; without figures, the kind of cells that are missing.
        found: the figure.
    """

    state: str | None
    text: str
    found: float | None = None


class Gate(NamedTuple):
    """A gate that a part adds; `parts/gates.py` applies it.

    Attributes:
        rank: its place among the gates; 1 to 7 are taken.
        option: the name of its option.
        kind: the type of its limit in `config.json`.
        about: what it requires, for the schema.
        check: `(group, rows, limit, is_conclusive)`; returns `Checked`. It is also called with rows as if
            each unanswered cell had ended well, or wrong.
        rule: `(target, summary, gap)`; returns `GateResult` fields, in place of `check`.
        name: its name in results, if that is not the option.
        usual: the limit that is not shown.
        read: makes a limit of an older run a current one.
        is_final: whether it fails although cells have no row, because each counts for it, or none can mend
            it; else there is no verdict.
        needs: the option of a command without which it cannot be applied.
    """

    rank: int
    option: str
    kind: Any
    about: str
    check: Callable[..., Checked] | None = None
    rule: Callable[..., Mapping[str, Any]] | None = None
    name: str = ""
    usual: float | None = None
    read: Callable[[Any], Any] = lambda limit: limit
    is_final: bool = False
    needs: str = ""


def table() -> Mapping[str, Entry]:
    """Return the table of parts."""
    found: Mapping[str, Entry] = import_module(FOLDER).TABLE
    return found


@cache
def parts() -> Mapping[str, Part]:
    """Return the parts that take part in runs, in the order of the table."""
    return {name: import_module(f"{FOLDER}.{name}").PART for name, entry in table().items() if entry.in_runs}


def called(point: str) -> Iterator[Callable[..., Any]]:
    """Yield the functions of the parts for a point, which is the name of a field of `Part`."""
    return (function for part in parts().values() if (function := getattr(part, point)) is not None)


def pace_of(settings: Any) -> Pacing | None:
    """Return the pace of a run with these settings; None if all its cells are asked."""
    return next(filter(None, (pace(settings) for pace in called("pace"))), None)


# --- types of the core, completed ------------------------------------------------------------------


def _extends(base: type, kind: type) -> bool:
    # A `TypedDict` does not know its bases before Python 3.12.
    both = is_typeddict(base) and is_typeddict(kind)
    return base is kind or (both and kind.__annotations__.keys() <= base.__annotations__.keys())


@cache
def added_to(base: type) -> Mapping[str, PartKey]:
    """Return the keys that parts add to a type of the core, in the order of the table."""
    keys = (keys for part in parts().values() for kind, keys in part.keys.items() if _extends(base, kind))
    return {name: key for each in keys for name, key in each.items()}


def whole(base: type[T]) -> type[T]:
    """Return a type of the core with the keys of all parts, in the order of the published schema."""
    completed: type[T] = _whole(base)  # type: ignore[arg-type]  # a class is hashable
    return completed


@cache
def _whole(base: type) -> Any:
    added = added_to(base)
    own = get_type_hints(base, include_extras=True)
    hints = {name: _completed(hint) for name, hint in own.items()}
    if not added and hints == own:
        return base
    for name, key in added.items():
        hints[name] = _completed(key.kind() if isinstance(key.kind, FunctionType) else key.kind)
    names = in_places([*hints], {name: key.place for name, key in added.items() if key.place})
    made: Any
    if is_typeddict(base):
        make: Any = TypedDict
        made = make(base.__name__, {name: hints[name] for name in names}, total=base.__total__)  # type: ignore[attr-defined]
    else:
        known = {one.name: one for one in fields(base) if hints[one.name] != own[one.name]}
        entries: list[Any] = [(name, hints[name]) for name in known]
        for name, key in added.items():
            entries.append((name, hints[name], *([] if key.default is MISSING else [key.default])))
        pickled = {"__reduce__": lambda self: (_restored, (base, vars(self)))}
        made = make_dataclass(
            base.__name__, entries, bases=(base,), namespace=pickled, frozen=True, kw_only=True
        )
        made.__dataclass_fields__ = {name: made.__dataclass_fields__[name] for name in names}
    lines = [f"    {name}: {key.about}" for name, key in added.items() if key.about]
    made.__doc__ = "\n".join([cleandoc(base.__doc__ or "").rstrip(), *lines])
    made.__module__ = base.__module__
    return made


def in_places(names: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """Return names in their order, those that `places` has after or before the named ones; see `Keys`."""
    index = {name: n for n, name in enumerate(name for name in names if name not in places)}

    def position(name: str) -> float:
        if (place := places.get(name)) is None:
            return index[name]
        return index[place.removeprefix("<")] + (-0.5 if place.startswith("<") else 0.5)

    return sorted(names, key=position)


def _restored(base: type, values: Mapping[str, Any]) -> Any:
    return _whole(base)(**values)


def _completed(hint: Any) -> Any:
    """Return a type with the types of the core in it completed."""
    if isinstance(hint, type) and (is_typeddict(hint) or is_dataclass(hint)):
        return _whole(hint)
    arguments = get_args(hint)
    completed = tuple(map(_completed, arguments))
    if completed == arguments:
        return hint
    origin: Any = Union if isinstance(hint, UnionType) else get_origin(hint)
    return origin[completed if len(completed) > 1 else completed[0]]
