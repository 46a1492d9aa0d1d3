"""Label Studio: its tasks, its labelling interface, and the annotations it exports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from or_eval.labelling.labels import Annotation
from or_eval.labelling.tasks import Task, check_task
from or_eval.labelling.wording import Asks, Choice, Wording
from or_eval.schema import ResponseClass
from or_eval.scorers.visible_text import visible_text
from or_eval.sources.errors import DataError, shown

LABEL, REASON, HARM, NOTE = "label", "reason", "harm", "note"


def interface(words: Wording, asks: Asks = "responses") -> str:
    """Give the labelling interface as Label Studio's XML.

    Choices have their definitions as tooltips and a key each: digits for the class, letters for
    the ground (asked of refusals alone) and for the request.
    """
    view = Element("View")
    SubElement(view, "Header", value=words.prompt)
    SubElement(view, "Text", name="prompt", value="$prompt")
    if asks == "responses":
        _ask_about_response(view, words)
    _choices(view, words.harm, (HARM, "prompt"), words.harms, "zxc", needed=asks == "prompts")
    SubElement(view, "Header", value=words.note)
    SubElement(view, "TextArea", name=NOTE, toName="prompt", rows="2", maxSubmissions="1")
    indent(view)
    return tostring(view, encoding="unicode") + "\n"


def _ask_about_response(view: Element, words: Wording) -> None:
    SubElement(view, "Header", value=words.response)
    SubElement(view, "Text", name="response", value="$response")
    _choices(view, words.label, (LABEL, "response"), words.labels, "123456789", needed=True)
    refused = ",".join(words.labels[c].name for c in ResponseClass if c.refused)
    when = {"visibleWhen": "choice-selected", "whenTagName": LABEL, "whenChoiceValue": refused}
    asked = SubElement(view, "View", when)
    _choices(asked, words.reason, (REASON, "response"), words.reasons, "qwertyuiop")


def _choices(
    parent: Element,
    title: str,
    names: tuple[str, str],
    choices: dict[str, Choice],
    keys: str,
    *,
    needed: bool = False,
) -> None:
    """Ask for one of some choices, under a name, of what stands under another."""
    SubElement(parent, "Header", value=title)
    said = {"name": names[0], "toName": names[1], "choice": "single-radio", "showInline": "true"}
    tag = SubElement(parent, "Choices", said | ({"required": "true"} if needed else {}))
    for (word, choice), key in zip(choices.items(), keys, strict=False):
        # The alias is what an export holds, in every language of the interface.
        SubElement(tag, "Choice", value=choice.name, alias=word, hint=choice.means, hotkey=key)


def tasks_json(tasks: Sequence[Task]) -> str:
    """Give tasks as the JSON that Label Studio imports."""
    return json.dumps([{"data": task._asdict()} for task in tasks], ensure_ascii=False, indent=1)


def read_export(
    path: Path, tasks: Mapping[str, Task], names: Mapping[str, str]
) -> Iterator[Annotation]:
    """Read the annotations of a Label Studio export ("JSON").

    Raises:
        DataError: The file is no such export, or a task in it is not one of ours.
    """
    try:
        exported = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: can't be read as JSON ({error})") from None
    yield from annotations_of(exported, tasks, names, path.name)


def annotations_of(
    exported: Any, tasks: Mapping[str, Task], names: Mapping[str, str], origin: str
) -> Iterator[Annotation]:
    """Read exported tasks, as :func:`read_export` does."""
    if not isinstance(exported, list):
        raise DataError(f"{origin}: isn't an export of Label Studio; export as JSON, not JSON-MIN")
    for number, task in enumerate(exported, start=1):
        where = f"{origin}, task {number}"
        try:
            yield from _of_task(task, tasks, names, where)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise DataError(
                f"{where}: is not as or-eval exported it ({shown(error)}); "
                "export as JSON, not JSON-MIN"
            ) from None


def _of_task(
    task: dict[str, Any], tasks: Mapping[str, Task], names: Mapping[str, str], where: str
) -> Iterator[Annotation]:
    data = task["data"]
    check_task(tasks.get(data["key"]), data["key"], data["prompt"], data["response"], where)
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        said = {result["from_name"]: result["value"] for result in annotation["result"]}
        account = _account(annotation.get("completed_by"))
        yield Annotation(
            key=data["key"],
            annotator=visible_text(names.get(account, account)),
            label=_chosen(said, LABEL),
            reason=_chosen(said, REASON),
            harm=_chosen(said, HARM),
            note=visible_text(" ".join(map(str, said.get(NOTE, {}).get("text", [])))),
            at=visible_text(
                str(annotation.get("updated_at") or annotation.get("created_at") or "")
            ),
            origin=where,
        )


def _account(completed_by: Any) -> str:
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return str(completed_by)


def _chosen(said: dict[str, Any], name: str) -> str | None:
    choices = said.get(name, {}).get("choices", [])
    return str(choices[0]) if choices else None
