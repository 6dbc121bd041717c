"""A report: every run directory gets a `tiers.csv`, a line for each target."""

from pytest_openclaw import Report, Summary


class Tiers:
    """The tier of each target, and whether it is conclusive."""

    name = "tiers.csv"

    def render(self, summary: Summary) -> str:
        """Return the file's text."""
        lines = [
            f"{group.target.label},{group.tool_use.tier},{group.tool_use.conclusive}"
            for group in summary.groups
        ]
        return "\n".join(["target,tier,conclusive", *lines, ""])


def pytest_openclaw_reports() -> list[type[Report]]:
    """Register the report."""
    return [Tiers]
