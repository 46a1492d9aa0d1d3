"""The providers ``gguf`` and ``classifier``; what each loads is loaded when a model is named."""

from __future__ import annotations

from importlib.util import find_spec

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="gguf")
def gguf() -> type[ModelAPI]:
    """Run a GGUF file: ``--model gguf/NAME -M n_ctx=… -M n_parallel=… -M n_threads=…``.

    NAME is an alias (``smollm2-135m-instruct``), a path to a .gguf file, or ``REPO:FILE`` on the
    Hugging Face Hub. It runs on llama.cpp's server inside this process, with no key.
    """
    if find_spec("xllamacpp") is None:
        from or_eval.sources.errors import DataError, how_to_install

        raise DataError(
            "Models of gguf/… run on llama.cpp, which isn't installed. "
            f"Install it with: {how_to_install('local')}"
        )
    from or_eval.models.gguf import GgufAPI

    return GgufAPI


@modelapi(name="classifier")
def classifier() -> type[ModelAPI]:
    """Ask a text classifier: ``--model-role grader=classifier/NousResearch/Minos-v1``.

    The server's address, of vLLM or SGLang, stands in ``CLASSIFIER_BASE_URL``.
    """
    from or_eval.models.classifier_api import ClassifierAPI

    return ClassifierAPI
