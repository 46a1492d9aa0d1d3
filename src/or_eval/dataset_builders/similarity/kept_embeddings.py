"""Embeddings that were computed once, by the digest of their text: Parquet files in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from or_eval.dataset_builders.similarity.near_duplicates import Vectors

if TYPE_CHECKING:
    import pyarrow as pa

_DIGEST_BYTES = 16


def digest_of_text(text: str) -> bytes:
    """Give what a text's embedding is kept under."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]


class KeptEmbeddings:
    """The embeddings that one model gave, in a folder of their own.

    It holds 16 bytes of each.

    Args:
        folder: The folder; a file in it that can't be read is removed.
    """

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._folder = folder
        self._parts: list[tuple[Path, pa.ChunkedArray]] = []
        for path in sorted(folder.glob("*.parquet")):
            try:
                self._parts.append((path, pq.read_table(path, columns=["digest"])["digest"]))
            except (pa.ArrowException, OSError):
                path.unlink()

    def missing(self, digests: Sequence[bytes]) -> list[bytes]:
        """Give the digests, each once, of which no embedding is kept."""
        distinct = list(dict.fromkeys(digests))
        return [distinct[number] for number in np.flatnonzero(self._places(distinct) < 0)]

    def vectors(self, digests: Sequence[bytes]) -> Vectors:
        """Give the embeddings of texts that are all kept."""
        import pyarrow.parquet as pq

        places, found, start = self._places(digests), None, 0
        for path, kept in self._parts:
            rows = np.flatnonzero((places >= start) & (places < start + len(kept)))
            if len(rows):
                column = pq.read_table(path, columns=["vector"])["vector"].combine_chunks()
                part = column.flatten().to_numpy().reshape(len(kept), -1)
                if found is None:
                    found = np.empty((len(digests), part.shape[1]), np.float32)
                found[rows] = part[places[rows] - start]
            start += len(kept)
        if found is None:
            raise KeyError("no embedding of these texts is kept")
        return found

    def add(self, digests: Sequence[bytes], vectors: Vectors) -> None:
        """Keep embeddings, in a file of their own."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        digest = pa.array(digests, pa.binary(_DIGEST_BYTES))
        vector = pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{hashlib.sha256(b''.join(digests)).hexdigest()[:32]}.parquet"
        partial = path.with_suffix(".partial")
        try:
            table = pa.table({"digest": digest, "vector": vector})
            pq.write_table(table, partial, use_dictionary=False)
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        self._parts.append((path, pa.chunked_array([digest])))

    def _places(self, digests: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Give where embeddings stand among all that are kept; -1 for those that are not."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._parts:
            return np.full(len(digests), -1)
        kept = pa.concat_arrays([chunk for _, column in self._parts for chunk in column.chunks])
        found = pc.index_in(pa.array(digests, pa.binary(_DIGEST_BYTES)), value_set=kept)
        places: npt.NDArray[np.int64] = found.fill_null(-1).to_numpy().astype(np.int64)
        return places
