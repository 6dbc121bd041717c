"""Rows of two runs from short marks, and their comparison."""

from pytest_openclaw.parts.baseline.comparison import compare_records
from tests.unit.reports.summaries import TARGET, fault, measured, missed, record

OTHERWISE = {
    "o": {"objective_pass": None},
    "s": {"objective_pass": None, "success": False, "failure_type": "empty_response"},
}


def cells(marks, target=TARGET, *, repeat=1, **changes):
    """A row for each mark, of a separate prompt: + passed, - failed, ? not answered, o no validator, s silent."""
    make = {"-": missed, "?": fault}
    return [
        make.get(mark, record)(
            target, prompt_id=f"P{number}", repeat=repeat, **{**OTHERWISE.get(mark, {}), **changes}
        )
        for number, mark in enumerate(marks, 1)
    ]


def compare(base, candidate, targets=((TARGET, TARGET),), **more):
    before, after = measured(base).rows_of, measured(candidate).rows_of
    return compare_records(before, after, targets, baseline="before", **{"obstacles": {}, **more})


def only(base, candidate, **more):
    (one,) = compare(base, candidate, **more).targets
    return one
