"""Dependency parsers behind one interface: spaCy's pipelines and UDPipe's models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rich.markup import escape

from or_eval.analysis.extras import needed
from or_eval.inspect_private import PrerequisiteError


class Token(NamedTuple):
    """A word or mark of a sentence.

    Attributes:
        head: Index in the sentence of the token that this one depends on; its own for the root.
        relation: The kind of dependence, as Universal Dependencies or spaCy call it.
        punctuation: Whether it is no word.
    """

    head: int
    relation: str
    punctuation: bool


Sentence: TypeAlias = list[Token]
Parser: TypeAlias = Callable[[Iterable[str]], Iterator[list[Sentence]]]
"""Gives the sentences of each text, in order."""

_SPACY = ("spacy", "structure", "Parsing needs spaCy")
_UNUSED = ("ner", "lemmatizer", "textcat", "entity_linker")


def find_parsers(languages: Iterable[str], named: Mapping[str, str]) -> dict[str, Parser]:
    """Give the parser of each language that has one.

    Args:
        languages: Languages of prompts; one in which English is mixed, as ``zh+en``, is parsed as
            its first.
        named: Models by language: the name or folder of a spaCy pipeline, or the path of a UDPipe
            model (``.udpipe``). Languages without one take an installed spaCy pipeline.

    Raises:
        PrerequisiteError: A model that was named can't be loaded, or no parser is installed that
            could load it.
    """
    found: dict[str, Parser] = {}
    for language in languages:
        base = base_language(language)
        if base in found:
            found[language] = found[base]
        elif model := named.get(language) or named.get(base):
            found[language] = load_parser(model)
        elif parser := _installed(base):
            found[language] = parser
    return found


def load_parser(model: str) -> Parser:
    """Load a parser.

    Args:
        model: Name or folder of a spaCy pipeline, or path of a UDPipe model.

    Raises:
        PrerequisiteError: There is no such model, or it has no parser.
    """
    if model.endswith(".udpipe"):
        return _udpipe(Path(model))
    spacy = needed(*_SPACY)
    try:
        pipeline = spacy.load(model, exclude=_UNUSED)
    except (OSError, ValueError) as error:
        problem = str(error).partition("\n")[0]
        raise PrerequisiteError(escape(f"{model}: isn't a spaCy pipeline ({problem})")) from None
    if "parser" not in pipeline.pipe_names:
        raise PrerequisiteError(escape(f"{model}: this spaCy pipeline has no dependency parser"))
    return _of_spacy(pipeline)


def _installed(language: str) -> Parser | None:
    """Load the first installed spaCy pipeline of a language that parses."""
    spacy = needed(*_SPACY)
    for name in sorted(spacy.util.get_installed_models()):
        if name.partition("_")[0] == language:
            pipeline = spacy.load(name, exclude=_UNUSED)
            if "parser" in pipeline.pipe_names:
                return _of_spacy(pipeline)
    return None


def _of_spacy(pipeline: Any) -> Parser:
    def parse(texts: Iterable[str]) -> Iterator[list[Sentence]]:
        for document in pipeline.pipe(texts):
            yield [
                [
                    Token(
                        token.head.i - sentence.start, token.dep_, token.is_punct or token.is_space
                    )
                    for token in sentence
                ]
                for sentence in document.sents
            ]

    return parse


def _udpipe(path: Path) -> Parser:
    udpipe = needed("ufal.udpipe", "structure", "UDPipe's models need its library")
    model = udpipe.Model.load(str(path)) if path.is_file() else None
    if model is None:
        raise PrerequisiteError(escape(f"{path}: isn't a UDPipe model"))

    def parse(texts: Iterable[str]) -> Iterator[list[Sentence]]:
        for text in texts:
            tokens = model.newTokenizer(model.DEFAULT)
            tokens.setText(text)
            sentences, sentence = [], udpipe.Sentence()
            while tokens.nextSentence(sentence):
                model.tag(sentence, model.DEFAULT)
                model.parse(sentence, model.DEFAULT)
                sentences.append([_token(word) for word in list(sentence.words)[1:]])
                sentence = udpipe.Sentence()
            yield sentences

    return parse


def _token(word: Any) -> Token:
    """Read a word of UDPipe, which counts from 1 and has 0 for the head of the root."""
    head = (word.head or word.id) - 1
    return Token(head, str(word.deprel), word.upostag == "PUNCT")


def base_language(language: str) -> str:
    """Give the first language of a tag without its region: ``zh`` of ``zh-CN+en``."""
    return re.split(r"[+-]", language)[0]
