"""The stage ``label``: what rules and every judge say of each response, and most of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from or_eval.dataset_builders.engine.rows import Rows, with_meta
from or_eval.dataset_builders.engine.stage import Kept, Outcome, Place, Stage, StageContext
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.panel.moderators import numbered
from or_eval.schema import ResponseClass

_RULES, _PROVIDER = "rules", "provider"


class LabelResponses(Stage):
    """The stage ``label``: who votes is said where the models are tested, and here nothing."""

    passes_logs = True
    drops = ()

    def run(self, rows: Rows, build: StageContext) -> Iterator[Outcome]:
        """Give the rows with each model's majority in ``meta.labels``, and all votes as a table.

        It holds the responses.
        """
        from or_eval.analysis.responses import read_logs
        from or_eval.analysis.samples import read_details

        if not len(rows):
            return
        responses = read_logs(list(build.input_logs), audits=False).responses
        responses = responses[responses["id"].isin({row.id for row in rows})]
        details = read_details(responses)
        table: list[dict[str, Any]] = []
        by_row: dict[str, dict[str, Any]] = {}
        for one in responses.itertuples():
            votes = votes_in(details.at[one.Index, "stages"])
            found = majority(votes)
            label = found.label and found.label.value
            said = {"refused": found.refused, "label": label, "agreement": found.agreement}
            name = f"{one.model}" if one.epoch == 1 else f"{one.model} ({one.epoch})"
            by_row.setdefault(str(one.id), {})[name] = said
            table.append(
                {
                    "id": one.id,
                    "model": one.model,
                    "epoch": one.epoch,
                    "response": details.at[one.Index, "response"],
                    **said,
                    "voters": found.voters,
                    **{f"vote of {voter}": vote and vote.value for voter, vote in votes.items()},
                }
            )
        if missing := [row.id for row in rows if row.id not in by_row]:
            raise BuildError(f"{len(missing)} of its {len(rows)} rows have no response in the logs")
        for row in rows:
            yield Kept(with_meta(row, labels=by_row[row.id]))
        build.beside.logs += build.input_logs
        build.table("responses", table)
        build.table("agreement", _agreement(table))

    def problem(self, place: Place) -> str | None:
        if place.tested is not None:
            return None
        return "its input has no logs; 'input' has to name a test_refusal stage"


class Majority(NamedTuple):
    """What most voters say of a response.

    Attributes:
        refused: Whether it is a refusal; None where as many say so as say the opposite.
        label: The class that most of these name, of equals the first voter's.
        agreement: Share of the voters that are on this side; None where no two voted.
        voters: How many gave a class.
    """

    refused: bool | None
    label: ResponseClass | None
    agreement: float | None
    voters: int


def votes_in(stages: Any) -> dict[str, ResponseClass | None]:
    """Give what each voter said of a response, by its name; a provider that blocked it decides."""
    found: Mapping[str, Any] = stages if isinstance(stages, Mapping) else {}
    if label := found.get(_PROVIDER, {}).get("label"):
        return {_PROVIDER: ResponseClass(label)}
    votes = {_RULES: found.get(_RULES, {}).get("label")}
    judges = found.get("judge", {}).get("votes", ())
    names = numbered(str(vote["model"]) for vote in judges)
    votes |= {name: vote["label"] for name, vote in zip(names, judges, strict=True)}
    return {name: None if label is None else ResponseClass(label) for name, label in votes.items()}


def majority(votes: Mapping[str, ResponseClass | None]) -> Majority:
    """Give what most voters say: first whether it is a refusal, then of which class."""
    given = [vote for vote in votes.values() if vote is not None]
    sides = Counter(vote.refused for vote in given)
    if not given or sides[True] == sides[False]:
        return Majority(None, None, 0.5 if given else None, len(given))
    refused = sides[True] > sides[False]
    label, _ = Counter(vote for vote in given if vote.refused is refused).most_common(1)[0]
    agreement = round(sides[refused] / len(given), 3) if len(given) > 1 else None
    return Majority(refused, label, agreement, len(given))


def _agreement(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say of each model how its responses were settled."""
    models = dict.fromkeys(str(one["model"]) for one in table)
    return [
        {
            "model": model,
            "responses": len(own := [one for one in table if one["model"] == model]),
            "refused": sum(one["refused"] is True for one in own),
            "answered": sum(one["refused"] is False for one in own),
            "tied or without a vote": sum(one["refused"] is None for one in own),
            "unanimous": sum(one["agreement"] == 1 for one in own),
        }
        for model in models
    ]


STAGE = LabelResponses
