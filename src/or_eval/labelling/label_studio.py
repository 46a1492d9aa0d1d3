"""Label Studio: its tasks, its labelling interface, and the annotations it exports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from or_eval.labelling.history import Annotation
from or_eval.labelling.tasks import Task
from or_eval.labelling.wording import Choice, Wording
from or_eval.schema import ResponseClass
from or_eval.sources.errors import DataError, shown

LABEL, REASON, HARM, NOTE = "label", "reason", "harm", "note"
_HOTKEYS = {REASON: "qwertyuiop", HARM: "zxc"}


def interface(words: Wording) -> str:
    """Give the labelling interface as Label Studio's XML.

    Choices have their definitions as tooltips and a key each: digits for the class, letters for
    the ground (asked of refusals alone) and for the request.
    """
    view = Element("View")
    SubElement(view, "Header", value=words.prompt)
    SubElement(view, "Text", name="prompt", value="$prompt")
    SubElement(view, "Header", value=words.response)
    SubElement(view, "Text", name="response", value="$response")
    SubElement(view, "Header", value=words.label)
    label = _choices(view, LABEL, "response", words.labels, "123456789")
    label.set("required", "true")
    label.set("showInline", "true")
    refused = [words.labels[c].name for c in ResponseClass if c.refused]
    asked = SubElement(
        view,
        "View",
        visibleWhen="choice-selected",
        whenTagName=LABEL,
        whenChoiceValue=",".join(refused),
    )
    SubElement(asked, "Header", value=words.reason)
    _choices(asked, REASON, "response", words.reasons, _HOTKEYS[REASON])
    SubElement(view, "Header", value=words.harm)
    _choices(view, HARM, "prompt", words.harms, _HOTKEYS[HARM])
    SubElement(view, "Header", value=words.note)
    SubElement(view, "TextArea", name=NOTE, toName="response", rows="2", maxSubmissions="1")
    indent(view)
    return tostring(view, encoding="unicode") + "\n"


def _choices(parent: Element, name: str, of: str, choices: dict[str, Choice], keys: str) -> Element:
    tag = SubElement(parent, "Choices", name=name, toName=of, choice="single-radio")
    for (word, choice), key in zip(choices.items(), keys, strict=False):
        # The alias is what an export holds, in every language of the interface.
        SubElement(tag, "Choice", value=choice.name, alias=word, hint=choice.means, hotkey=key)
    return tag


def tasks_json(tasks: Sequence[Task]) -> str:
    """Give tasks as the JSON that Label Studio imports."""
    return json.dumps([{"data": task._asdict()} for task in tasks], ensure_ascii=False, indent=1)


def read_export(path: Path) -> Iterator[Annotation]:
    """Read the annotations of a Label Studio export ("JSON").

    Raises:
        DataError: The file is no such export, or a task in it is not one of ours.
    """
    try:
        tasks = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: can't be read as JSON ({error})") from None
    if not isinstance(tasks, list):
        raise DataError(f"{path}: is no export of Label Studio; export as JSON, not JSON-MIN")
    for number, task in enumerate(tasks, start=1):
        try:
            yield from _of_task(task, path.name)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise DataError(
                f"{path}: task {number} is not as or-eval exported it ({shown(error)}); "
                "export as JSON, not JSON-MIN"
            ) from None


def _of_task(task: dict[str, Any], origin: str) -> Iterator[Annotation]:
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        said = {result["from_name"]: result["value"] for result in annotation["result"]}
        yield Annotation(
            key=task["data"]["key"],
            annotator=_who(annotation.get("completed_by")),
            label=_chosen(said, LABEL),
            reason=_chosen(said, REASON),
            harm=_chosen(said, HARM),
            note=" ".join(said.get(NOTE, {}).get("text", [])),
            at=annotation.get("updated_at") or annotation.get("created_at") or "",
            origin=origin,
        )


def _who(completed_by: Any) -> str:
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return str(completed_by)


def _chosen(said: dict[str, Any], name: str) -> str | None:
    choices = said.get(name, {}).get("choices", [])
    return choices[0] if choices else None
