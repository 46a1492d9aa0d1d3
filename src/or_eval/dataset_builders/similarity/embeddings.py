"""Texts to vectors, with sentence-transformers; what is computed once is kept."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from or_eval.dataset_builders.engine.models import digest_of
from or_eval.dataset_builders.engine.rows import in_batches
from or_eval.dataset_builders.engine.workers import Map, here
from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.similarity.near_duplicates import Vectors
from or_eval.sources.errors import how_to_install

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_CHUNK = 4096
_DIGEST_BYTES = 16
_REMEMBERED = 1024
_NEEDED = {"sentence-transformers": "sentence_transformers", "faiss-cpu": "faiss"}


def check_needs() -> None:
    """Check that the extra ``[embed]`` is installed.

    Raises:
        BuildError: Some of it is missing.
    """
    missing = [name for name, module in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise BuildError(f"needs {' and '.join(missing)}: {how_to_install('embed')}")


def shown_model(model: str) -> str:
    """Name a model without the folder that it happens to lie in."""
    folder = Path(model).expanduser()
    return folder.name if folder.is_dir() else model


def embed(texts: Sequence[str], model: str, kept: Path, workers: Map = here) -> Vectors:
    """Give the embeddings of texts.

    A text that is longer than the model reads is embedded in parts of equal length; the parts'
    mean stands for it. Embeddings are kept by text, every 4,096 as soon as they are done: a text
    that was embedded before, by whatever stage, isn't embedded again.

    Args:
        texts: The texts; at least one.
        model: Name on the Hub, or the path of a folder.
        kept: Folder where embeddings are kept.
        workers: Where they are computed.

    Returns:
        A row of length 1 for each text (of zeros where the model sees nothing in a text).

    Raises:
        BuildError: The model can't be had, or gives no numbers.
    """
    folder = kept / digest_of(_origin(model))[:16]
    parts = _kept(folder)
    digests = [_digest(text) for text in texts]
    there = {key.tobytes() for part in parts for key in part["digest"]}
    missing = {d: text for d, text in zip(digests, texts, strict=True) if d not in there}
    if missing:
        check_needs()
        chunks = list(in_batches(missing.items(), _CHUNK))
        made = workers(partial(_encoded, model), ([text for _, text in one] for one in chunks))
        for chunk, vectors in zip(chunks, made, strict=True):
            if not np.isfinite(vectors).all():
                raise BuildError(f"model {model}: gives embeddings that aren't numbers")
            parts.append(_keep(folder, [digest for digest, _ in chunk], vectors))
        _load.cache_clear()
    places = {
        key.tobytes(): (part, row) for part in parts for row, key in enumerate(part["digest"])
    }
    return np.stack([part["vector"][row] for part, row in map(places.__getitem__, digests)])


def _kept(folder: Path) -> list[npt.NDArray[Any]]:
    """Give the embeddings that are kept in a folder; a file that can't be read is removed."""
    parts = []
    for path in sorted(folder.glob("*.npy")):
        try:
            parts.append(np.load(path, mmap_mode="r"))
        except (OSError, ValueError, EOFError):
            path.unlink()
    return parts


def _keep(folder: Path, digests: Sequence[bytes], vectors: Vectors) -> npt.NDArray[Any]:
    part = np.empty(
        len(digests), [("digest", f"V{_DIGEST_BYTES}"), ("vector", np.float32, vectors.shape[1])]
    )
    part["digest"] = np.frombuffer(b"".join(digests), f"V{_DIGEST_BYTES}")
    part["vector"] = vectors
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(b''.join(digests)).hexdigest()[:32]}.npy"
    partial_file = path.with_suffix(".partial")
    with partial_file.open("wb") as file:
        np.save(file, part)
    partial_file.replace(path)
    return part


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]


def check_loads(model: str) -> None:
    """Make sure that a model can be loaded; it isn't held.

    Raises:
        BuildError: It can't.
    """
    check_needs()
    _load(model)
    _load.cache_clear()


class Likeness:
    """Measures how similar two texts are, a pair at a time, and remembers what it found.

    Args:
        model: Name on the Hub, or the path of a folder; it is loaded at the first use.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._encoder = cache(lambda: _load(model))
        self._vector = lru_cache(_REMEMBERED)(lambda text: _encode([text], self._encoder())[0])
        self._known: dict[tuple[bytes, bytes], float] = {}

    def __reduce__(self) -> tuple[type[Likeness], tuple[str]]:
        """Begin anew in another process."""
        return Likeness, (self._model,)

    def __call__(self, text: str, other: str) -> float:
        """Give the cosine of the embeddings of two texts."""
        mark = (_digest(text), _digest(other))
        if mark not in self._known:
            cosine = float(self._vector(text) @ self._vector(other))
            self._known[mark] = round(cosine, 3)
        return self._known[mark]


def _encoded(model: str, texts: Sequence[str]) -> Vectors:
    return _encode(texts, _load(model))


@lru_cache(1)
def _load(model: str) -> SentenceTransformer:
    # With a choice made, tokenizers neither warns nor deadlocks where a process forks later.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    folder = Path(model).expanduser()
    if not folder.is_dir() and (folder.is_absolute() or model.startswith((".", "~"))):
        raise BuildError(f"model {model}: there is no such folder")
    from sentence_transformers import SentenceTransformer

    try:
        with _quiet():
            if folder.is_dir():
                return SentenceTransformer(str(folder), local_files_only=True)
            return SentenceTransformer(model)
    except Exception as error:
        # Its loaders raise errors of four libraries; whichever it is, the user can do the same.
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise BuildError(
            f"model {model}: can't be loaded ({said}); check the name and the network, or give "
            "the folder of a sentence-transformers model"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from drawing bars and reporting on weights while it loads a model."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _encode(texts: Sequence[str], encoder: SentenceTransformer) -> Vectors:
    parts = [_parts(text, spans) for text, spans in zip(texts, _spans(texts, encoder), strict=True)]
    vectors = encoder.encode(
        [part for whole in parts for part in whole],
        normalize_embeddings=True,
        show_progress_bar=False,
    ).astype(np.float32)
    starts = np.cumsum([0, *(len(whole) for whole in parts[:-1])])
    sums = np.add.reduceat(vectors, starts, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def _spans(texts: Sequence[str], encoder: SentenceTransformer) -> list[list[int]]:
    """Give, for each text, the characters at which a new part starts; none where one will do."""
    tokenizer: Any = encoder.tokenizer
    longest = encoder.max_seq_length
    if not longest or not math.isfinite(longest) or not getattr(tokenizer, "is_fast", False):
        return [[] for _ in texts]
    room = int(longest) - tokenizer.num_special_tokens_to_add()
    read = tokenizer(
        list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    found = []
    for offsets in read["offset_mapping"]:
        number = math.ceil(len(offsets) / room)
        firsts = [part * len(offsets) // number for part in range(1, number)]
        found.append([offsets[first][0] for first in firsts])
    return found


def _parts(text: str, starts: list[int]) -> list[str]:
    bounds = [0, *starts, len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


def _origin(model: str) -> list[Any]:
    """Give what tells a model from others, also from another one in the same folder."""
    folder = Path(model).expanduser()
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    return [model, *((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)]
