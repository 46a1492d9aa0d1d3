"""``eval.yaml`` beside a data set: the Hub lists benchmarks by it, and Inspect runs ``hf/NAME``."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import yaml

from or_eval.dataset_builders.publishing.dataset_folder import SPLIT, DatasetFolder
from or_eval.schema import Label

EVAL = "eval.yaml"
_JUDGED = {Label.SAFE.value, Label.TOXIC.value}


def hub_eval(folder: DatasetFolder, repo: str) -> str | None:
    """Write it, as the Hub documents the form for ``evaluation_framework: inspect-ai``.

    Of scorers, Inspect lets such a file name a few of its own: responses are graded by a judge.

    Args:
        folder: The data set.
        repo: ``OWNER/NAME``.

    Returns:
        Its text, with a task for each configuration whose prompts are all safe or toxic; None where
        there is none.
    """
    words = tomllib.loads(
        (files("or_eval.dataset_builders.publishing") / "hub_eval.toml").read_text("utf-8")
    )
    judge = {name: words[name].strip() + "\n" for name in ("template", "instructions")}
    tasks: list[dict[str, Any]] = [
        {
            "id": name,
            "config": name,
            "split": SPLIT,
            "field_spec": {"input": "prompt", "target": "label"},
            "solvers": [{"name": "generate"}],
            "scorers": [{"name": "model_graded_qa", "args": judge}],
        }
        for name in folder.configurations
        if _labels(folder, name) <= _JUDGED
    ]
    if not tasks or folder.is_snapshot:
        return None
    said = {
        "name": str(folder.header.get("pretty_name")),
        "description": " ".join(words["description"].split()).format(repository=repo),
        "evaluation_framework": "inspect-ai",
        "tasks": tasks,
    }
    return yaml.dump(said, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)


def _labels(folder: DatasetFolder, configuration: str) -> set[str]:
    """Give the labels of a configuration; that of no prompt where it can't be read."""
    try:
        return set(folder.table(configuration).column("label").to_pylist())
    except (OSError, ValueError, KeyError):
        return {""}  # a push is refused for it, but its files are shown before


class _Plain(yaml.SafeDumper):
    """Writes what is there twice twice, not as an anchor and its alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
