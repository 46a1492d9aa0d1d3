"""Methods of rewriting: TOML files with the prompts, the examples and the checks of a method."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from or_eval.dataset_builders.errors import BuildError
from or_eval.dataset_builders.prompt_files import PromptFile, prompt_path, read_prompt
from or_eval.dataset_builders.similarity.bounds import Bounds
from or_eval.dataset_builders.similarity.same_text import same_text
from or_eval.dataset_builders.writing.language import language_name, main_tag

Part = Literal["beginning", "end"]

SAME_LANGUAGE = "same"
"""Among the languages to write in: that of the seed."""

_PREFIX, _FRAME_PREFIX = "rewrite_", "frame_"
_ENGLISH = "en"
_ECHOED_WORDS = 5
_ONE_PARAGRAPH_WORDS = 150
_NOTHING = r"(?!)"
_IN_SYSTEM = {"examples", "instruction"}
_IN_REQUEST = {
    *("key", "seed", "category", "definition", "language", "count", "length", "most", "forms"),
    *("part", "hint"),
}  # fmt: skip


def _in_english(said: Any) -> Any:
    return {_ENGLISH: said} if isinstance(said, str) else said


def _filled_with(known: set[str]) -> AfterValidator:
    def check(texts: Mapping[str, str]) -> Mapping[str, str]:
        for text in texts.values():
            template = Template(text)
            if not template.is_valid():
                raise ValueError("a $ stands for itself where it is written $$")
            if unknown := sorted(set(template.get_identifiers()) - known):
                raise ValueError(
                    f"${unknown[0]} isn't filled in (there are: {', '.join(sorted(known))})"
                )
        return texts

    return AfterValidator(check)


Wording = Annotated[Mapping[str, str], BeforeValidator(_in_english)]
"""A text, or the same text in several languages of those who are asked."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Example(_Part):
    """A seed and what it may be rewritten to.

    Attributes:
        seed: The seed.
        texts: The rewrites.
        sensitive_part: Where their sensitive part stands; such an example is shown only where
            the same is asked for.
        language: Their language; such an example is shown only to those who are asked in it.
    """

    seed: str
    texts: tuple[str, ...] = Field(min_length=1)
    sensitive_part: Part | None = None
    language: str | None = None


class Length(_Part):
    """How long a rewrite may be.

    Attributes:
        min_words: Least length.
        max_words: Greatest length.
        aim: The range that the writer is told to keep to, where it is narrower.
    """

    min_words: int = Field(ge=1)
    max_words: int = Field(ge=1)
    aim: tuple[int, int] | None = None

    @property
    def asked_for(self) -> tuple[int, int]:
        """The range that a writer is asked to keep to."""
        if self.aim is not None:
            return self.aim
        # Writers tend to stop short of what they are asked for, so they are asked for more.
        least = min(_tens(self.min_words * 1.3), self.max_words)
        return least, min(max(_tens(self.min_words * 2), least), self.max_words)


class RewriteMethod(PromptFile):
    """A method of rewriting, as its file gives it.

    Attributes:
        name: Its name for people.
        family: What such methods change of a prompt.
        about: What it does, in a sentence.
        instruction: What is particular about it, put into the system prompt as ``$instruction``.
        count: Rewrites wanted of each seed.
        per_call: Most rewrites asked for at once.
        min_words: Least length of a rewrite.
        max_words: Greatest length of a rewrite.
        system: What the writer is told about its work; ``$examples`` is filled in.
        request: The question about a seed; ``$seed`` and the like are filled in.
        temperature: Sampling temperature of the writer; None for the model's own.
        sensitive_part: For texts with a marked part, where it may stand, and how that is asked
            for; the rewrites are shared out evenly.
        forms: Kinds of text, of which each question names the next ones.
        forbidden: Words that a rewrite must not add to its seed's, by language.
        examples: Examples.
        lengths: Lengths by language, where they are others than ``min_words`` and ``max_words``.
        similarity: Bounds of the similarity to the seed.
        most_edited: Greatest share of the seed's words that may be edited.
        language_names: What languages are called, by the language in which that is said.
        hints: Words that belong to a category, put into the question as ``$hint``.
        frame: What it shares with others, by the name of a file.
        problems: What is said of texts that can't be used, where it is another thing than for
            other methods.
    """

    name: str = ""
    family: str = ""
    about: str = ""
    instruction: Wording = Field(default={})
    count: int = Field(default=5, ge=1)
    per_call: int = Field(default=5, ge=1)
    min_words: int = Field(default=1, ge=1)
    max_words: int = Field(ge=1)
    temperature: float | None = Field(default=None, ge=0)
    system: Annotated[Wording, _filled_with(_IN_SYSTEM)]
    request: Annotated[Wording, _filled_with(_IN_REQUEST)]
    sensitive_part: Mapping[Part, str] = {}
    forms: tuple[str, ...] = ()
    forbidden: Mapping[str, tuple[str, ...]] = {}
    examples: tuple[Example, ...] = ()
    lengths: Mapping[str, Length] = {}
    similarity: Bounds | None = None
    most_edited: float | None = Field(default=None, gt=0, le=1)
    language_names: Mapping[str, dict[str, str]] = {}
    hints: Mapping[str, Wording] = {}
    frame: str | None = None
    problems: Mapping[str, dict[str, str]] = {}

    @model_validator(mode="after")
    def _lengths_fit(self) -> RewriteMethod:
        own = Length(min_words=self.min_words, max_words=self.max_words)
        for length in (own, *self.lengths.values()):
            if length.min_words > length.max_words:
                raise ValueError("min_words is above max_words")
        return self

    def asked_in(self, language: str) -> str:
        """Give the language in which texts of a language are asked for."""
        return (
            main_tag(language) if main_tag(language) in self.request else next(iter(self.request))
        )

    def length_in(self, language: str) -> Length:
        """Give how long a text of a language may be."""
        own = self.lengths.get(language) or self.lengths.get(main_tag(language))
        return own or Length(min_words=self.min_words, max_words=self.max_words)

    def called(self, language: str) -> str:
        """Give what a language is called in the language in which its texts are asked for."""
        names = self.language_names.get(self.asked_in(language), {})
        return names.get(language) or language_name(language)

    @cached_property
    def paragraphs(self) -> bool:
        """Whether a rewrite may have several paragraphs."""
        return self.max_words > _ONE_PARAGRAPH_WORDS

    @cached_property
    def example_texts(self) -> frozenset[str]:
        """The texts of the examples, to tell copies."""
        texts = (text for example in self.examples for text in example.texts)
        return frozenset(same_text(re.sub(r"</?mark>", "", text)) for text in texts)

    @cached_property
    def _request_runs(self) -> frozenset[tuple[str, ...]]:
        texts = (re.sub(r"\$\w+", " ", text) for text in self.request.values())
        return frozenset(run for text in texts for run in _runs(text))

    def echoes_request(self, text: str) -> bool:
        """Tell whether a text repeats some words in a row of the question itself."""
        return not self._request_runs.isdisjoint(_runs(text))

    def system_for(self, part: Part | None, language: str) -> str:
        """Give what the writer is told, with the examples for a language and a sensitive part."""
        asked = self.asked_in(language)
        shown = [
            example
            for example in self.examples
            if example.sensitive_part in (None, part) and example.language in (None, asked)
        ]
        examples = "\n\n".join(
            f"Seed: {example.seed}\n"
            + json.dumps({"texts": [text.strip() for text in example.texts]}, ensure_ascii=False)
            for example in shown
        )
        return Template(in_language(self.system, asked).strip()).substitute(
            examples=examples, instruction=in_language(self.instruction, asked).strip()
        )

    def hint_for(self, category: str, language: str) -> str:
        """Give the words that belong to a category; none where the method has none."""
        return in_language(self.hints.get(category, {}), self.asked_in(language))

    def forbidden_words(self, text: str, language: str, seed: str) -> list[str]:
        """Give the forbidden words of a text in a language that its seed doesn't have."""
        words = [
            self.forbidden.get(tag, self.forbidden.get(main_tag(tag), ()))
            for tag in language.split("+")
        ]
        pattern = _forbidden_pattern(tuple(chain(*words)))
        in_seed = {found.casefold() for found in pattern.findall(seed)}
        found = (word.casefold() for word in pattern.findall(text))
        return [word for word in dict.fromkeys(found) if word not in in_seed]


def in_language(wording: Mapping[str, str], language: str) -> str:
    """Give a text in a language, or else in the first in which there is one."""
    return wording.get(language) or next(iter(wording.values()), "")


def method_path(method: str) -> Path:
    """Give the file of a method by its name, or by its own path, which ends in ``.toml``.

    Raises:
        ValueError: There is no such method.
    """
    if method.endswith(".toml"):
        return Path(method).expanduser()
    if method not in method_names():
        raise ValueError(
            f"there is no such method (there are: {', '.join(method_names())}; one of your own is "
            "a path that ends in .toml)"
        )
    return prompt_path(_PREFIX + method)


def method_names() -> list[str]:
    """Give the names of the bundled methods."""
    folder = prompt_path(_PREFIX).parent
    return sorted(path.stem.removeprefix(_PREFIX) for path in folder.glob(f"{_PREFIX}*.toml"))


def load_method(method: str) -> RewriteMethod:
    """Read a method.

    Raises:
        BuildError: Its file can't be read, or something in it is wrong; the line says what.
    """
    path = method_path(method)
    try:
        said = read_prompt(path)
        return RewriteMethod.model_validate(_frame(said.get("frame")) | said)
    except OSError as error:
        raise BuildError(f"method: {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BuildError(f"method: {path}: isn't TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise BuildError(f"method: {path}: {where + ': ' if where else ''}{problem}") from error


def method_files(methods: Sequence[str]) -> list[Path]:
    """Give the files of methods, with those that they share, each once."""
    frames = dict.fromkeys(load_method(method).frame for method in methods)
    shared = [prompt_path(_FRAME_PREFIX + name) for name in frames if name is not None]
    return [*map(method_path, methods), *shared]


def _frame(name: str | None) -> dict[str, Any]:
    """Give what a method shares with others, which stands in a file of their own."""
    if name is None:
        return {}
    if not prompt_path(_FRAME_PREFIX + name).is_file():
        raise BuildError(f"method: there is no frame '{name}'")
    return read_prompt(prompt_path(_FRAME_PREFIX + name))


@cache
def _forbidden_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Make a pattern of words: whole ones, but in scripts without word edges anywhere."""
    parts = [] if words else [_NOTHING]
    for word in words:
        body = re.escape(word.rstrip("*")).replace(r"\ ", r"\s+")
        if re.search(r"[\u0e01-\u0e4e\u3041-\u30ff\u3400-\u9fff]", word):
            parts.append(body)
        else:
            parts.append(rf"(?<!\w){body}" + (r"\w*" if word.endswith("*") else r"(?!\w)"))
    return re.compile("|".join(parts), re.IGNORECASE)


def _tens(words: float) -> int:
    return max(round(words / 10), 1) * 10


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return zip(*(words[start:] for start in range(_ECHOED_WORDS)), strict=False)
