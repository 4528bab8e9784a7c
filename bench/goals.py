"""Goals of a benchmark, and how one with goals ends."""
from dataclasses import dataclass

import report


@dataclass
class Goal:
    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def met(self):
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self):
        sign = ">=" if self.at_least else "<="
        return (f"{'met ' if self.met else 'MISS'}  {self.name}: {self.value:.3g} "
                f"({sign} {self.limit:g})")


def conclude(name, cases, goals, partly):
    """Prints cases and goals; of a whole run, writes build/bench/NAME.json too."""
    for case in cases:
        case.case = f"{name}: {case.case}"
    if partly:
        print("\n" + report.table([case.as_json() for case in cases]))
    else:
        report.publish(name, cases)
    print("\n" + "\n".join(goal.line() for goal in goals))
