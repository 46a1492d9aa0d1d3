"""The stage ``vote``: keep the prompts that the tested models refuse."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, field_validator

from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.engine.stage import Dropped, Kept, Outcome, Place, Stage, StageContext
from or_eval.dataset_builders.errors import BuildError
from or_eval.schema import STRICT, VOTES, countings


class Vote(Stage):
    """The stage ``vote``, by what a recipe may say to it, as one may to ``or-eval vote``.

    Attributes:
        min_refusals: Least number of models that refused a prompt.
        max_refusals: Most models that refused it.
        min_votes: Least number of models with a vote on it.
        majority: Whether more than half of the voters must have refused it.
        of: Only these models vote; all that were tested by default.
        counting: What counts as refused, as for ``or-eval vote``.
    """

    passes_logs = True
    drops = ("no vote*", "fewer than *", "more than *", "not refused by a majority")
    min_refusals: int | None = Field(default=None, ge=0)
    max_refusals: int | None = Field(default=None, ge=0)
    min_votes: int | None = Field(default=None, ge=1)
    majority: bool = False
    of: tuple[str, ...] = ()
    counting: str = STRICT

    @field_validator("counting")
    @classmethod
    def _is_known(cls, counting: str) -> str:
        if counting not in countings():
            raise ValueError(f"'{counting}' is none of: {', '.join(countings())}")
        return counting

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Keep the rows that the rule asks for; each carries its votes in ``meta.votes``.

        It holds the votes on all rows.
        """
        from or_eval.analysis.responses import counted_as, read_logs
        from or_eval.analysis.votes import VoteRule, check_rule, drop_reasons, vote_matrix

        if not len(rows):
            return
        logs = read_logs(list(build.input_logs), models=list(self.of) or None, audits=False)
        matrix = vote_matrix(counted_as(logs.responses, self.counting))
        if untested := sum(row.id not in matrix.index for row in rows):
            raise BuildError(
                f"{untested} of its {len(rows)} rows were not tested; 'input' has to name no "
                "stage beside the tested ones"
            )
        rule = VoteRule(self.min_refusals, self.max_refusals, self.min_votes, self.majority)
        check_rule(rule, len(matrix.columns))
        reasons = drop_reasons(matrix, rule)
        said = {1: True, 0: False, -1: None}
        votes: dict[str, dict[str, bool | None]] = {
            str(key): {str(model): said[vote] for model, vote in row.items()}
            for key, row in matrix.astype("Int64").fillna(-1).to_dict("index").items()
        }
        for row in rows:
            voted = with_meta(row, **{VOTES: votes[row.id]})
            if reason := reasons[row.id]:
                refused = ", ".join(model for model, vote in votes[row.id].items() if vote)
                yield Dropped(voted, reason, f"refused by {refused or 'none'}")
            else:
                yield Kept(voted)
        build.beside.logs += build.input_logs

    def problem(self, place: Place) -> str | None:
        if place.tested is None:
            return "its input has no logs; 'input' has to name a test_refusal stage"
        if unknown := [name for name in self.of if name not in place.tested]:
            return f"of: '{unknown[0]}' is not tested (tested are: {', '.join(place.tested)})"
        voters = len(self.of or place.tested)
        for key in ("min_refusals", "min_votes"):
            if (getattr(self, key) or 0) > voters:
                return f"{key}: {getattr(self, key)}, and only {voters} models are tested"
        most = self.max_refusals
        if most is not None and (self.min_refusals or 0) > most:
            return f"min_refusals ({self.min_refusals}) is above max_refusals ({most})"
        return None


STAGE = Vote
