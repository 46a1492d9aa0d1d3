"""The ``classifier`` provider: a text classifier behind the ``/classify`` of vLLM or SGLang."""

from __future__ import annotations

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="classifier")
def classifier() -> type[ModelAPI]:
    """Ask a text classifier: ``--model-role grader=classifier/NousResearch/Minos-v1``.

    The server's address stands in ``CLASSIFIER_BASE_URL``.
    """
    from or_eval.models.classifier_api import ClassifierAPI

    return ClassifierAPI
