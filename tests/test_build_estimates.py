"""`--dry-run` beside what a build really asks: recipes whole, on servers that write at real lengths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from or_eval.dataset_builders.engine.dry_run import planned
from or_eval.dataset_builders.engine.models import Asking
from or_eval.dataset_builders.engine.readiness import check_ready
from or_eval.dataset_builders.engine.recipe import load_recipe
from or_eval.dataset_builders.engine.run import Build
from or_eval.dataset_builders.errors import BuildError
from real_lengths import moderator, target, writer
from scripted_builds import servers
from servers import Request


class Measured:
    """A script that keeps how long its replies are."""

    def __init__(self, script) -> None:
        self.script, self.replies = script, []

    def __call__(self, request: Request) -> str:
        self.replies.append(reply := self.script(request))
        return reply


CHANGES = {
    "or_bench": ["seeds.per_category=8", "seeds.batch=5", "seeds.categories=[violence, hate]", "hard.min_refusals=2", "split.subsets={full: {input: moderate}, hard: {input: hard}}"],
    "lto": ["seeds.per_category=2", "seeds.categories=[violence, hate]", "vote.min_refusals=0"],
    "or_bench_checked": ["seeds.per_category=4", "seeds.categories=[violence, hate]", "hard.min_refusals=0"],
}  # fmt: skip


@pytest.mark.parametrize("recipe", list(CHANGES))
def test_a_plan_tells_about_what_is_asked_then(tmp_path: Path, recipe: str) -> None:
    tested = "test_refusal.models=[openai-api/loopback/x, openai-api/loopback/y]"
    scripts = [Measured(script) for script in (writer, target, moderator, moderator)]
    loaded = load_recipe(
        recipe, [*CHANGES[recipe], tested, "dedup.threshold=null", "distinct.threshold=null"]
    )
    with servers(scripts[0], scripts[2:], scripts[1]) as (asking, started):
        asking = replace(
            asking, roles=(*asking.roles, f"responder={started[1].role_option('answerer')}")
        )
        build = Build(loaded, tmp_path / "out", asking, say=lambda line: None)
        plan = [item for stage in planned(build) for item in stage.asked]
        build.run()
        asked = [request for server in started for request in server.requests]
    calls = sum(item.calls for item in plan)
    sent = sum(len(m["content"]) for one in asked for m in one.messages) / 4
    returned = sum(len(reply) for script in scripts for reply in script.replies) / 4
    told = (sum(item.input_tokens for item in plan), sum(item.output_tokens for item in plan))
    assert calls == pytest.approx(len(asked), rel=0.1)
    assert told[0] == pytest.approx(sent, rel=0.25)
    assert told[1] == pytest.approx(returned, rel=0.25)


def test_a_judge_is_reckoned_with_where_one_is_bound(tmp_path: Path) -> None:
    tested = "test_refusal.models=[openai/gpt-4o, openai-api/loopback/y]"
    loaded = load_recipe("or_bench", ["seeds.per_category=20", tested])
    asking = Asking("openai/gpt-4o-mini", ("grader=anthropic/claude-haiku-4-5",))
    stages = {stage.name: stage for stage in planned(Build(loaded, tmp_path, asking))}
    assert [(item.role or item.model, item.calls) for item in stages["test_refusal"].asked] == [
        ("openai/gpt-4o", 1000), ("openai-api/loopback/y", 1000), ("grader", 800),
    ]  # fmt: skip
    dollars = [item.dollars for item in stages["test_refusal"].asked]
    assert dollars[0] == pytest.approx((28 * 2.5 + 300 * 10) / 1000)
    assert dollars[1] is None
    assert (stages["split"].rows_in, stages["publish"].rows_in) == (1000, 1000)


ASKED = {
    "panel": ("{stage: natural}", "moderator", 8),
    "turns": ("{stage: translate, languages: [de]}", "translator", 8),
    "pool": ("{stage: natural}", "moderator", 4),
}


@pytest.mark.parametrize("how", ASKED)
def test_roles_are_reckoned_with_as_they_are_asked(tmp_path: Path, how: str) -> None:
    stage, role, calls = ASKED[how]
    (tmp_path / "four.csv").write_text(
        "prompt,category\n" + "".join(f"How do I do {n}?,hate\n" for n in range(4))
    )
    models = f"{{{how}: [a/{'b, c/d' if how != 'pool' else 'b, a/b'}]}}"
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        f"name: r\ntaxonomy: or_bench\nmodels: {{{role}: {models}}}\nstages:\n"
        f"  - {{stage: seeds, data: {tmp_path}/four.csv, label: toxic}}\n  - {stage}\n"
    )
    _, planned_stage = planned(Build(load_recipe(recipe), tmp_path / "out", Asking()))
    assert sum(item.calls for item in planned_stage.asked) == calls
    assert {item.calls for item in planned_stage.asked} == {4}


@pytest.mark.parametrize("how", ["panel", "turns"])
def test_models_of_another_sense_are_told_before_anything_runs(tmp_path: Path, how: str) -> None:
    other = {"panel": "turns", "turns": "panel"}[how]
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\ntaxonomy: or_bench\nstages:\n  - {stage: seeds, data: x.csv, label: toxic}\n"
        f"  - {ASKED[how][0]}\n"
    )
    asking = Asking(roles=(f"{ASKED[how][1]}={{{other}: [a/b, c/d]}}",))
    with pytest.raises(BuildError, match=f"asks the role '{ASKED[how][1]}' as .*{how}"):
        check_ready(Build(load_recipe(recipe), tmp_path / "out", asking))
