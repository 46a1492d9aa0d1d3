"""Tell the language of a prompt whose source doesn't say it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from or_eval.sources.conventions import detected_languages

# Enough for py3langid, which takes time in proportion.
_SAMPLE_CHARS = 1000
_KANA = re.compile(r"[\u3041-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[A-Za-z]")
_ENGLISH_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}(?![A-Za-z])")


def detect_language(text: str) -> str:
    """Give the language tag of a prompt: ``en``, ``zh``, ``zh+en``, ``ko`` …

    Korean, Japanese and Chinese are told by their scripts, unless a name is all there is of it.
    A Chinese text with two or more English words in it is ``zh+en``. Everything else is
    py3langid's guess among the languages of ``conventions.toml``. The answer depends on the text
    alone, so that prompt ids are stable.
    """
    if not text.isascii():
        kana, hangul, han = (len(s.findall(text)) for s in (_KANA, _HANGUL, _HAN))
        if (kana + hangul + han) * 10 > len(_LATIN.findall(text)):
            if hangul > kana + han:
                return "ko"
            if kana > 0.1 * han:
                return "ja"
            return "zh+en" if len(_ENGLISH_WORD.findall(text)) >= 2 else "zh"
    return _guess()(text[:_SAMPLE_CHARS])


@cache
def _guess() -> Callable[[str], str]:
    # Imported here: it brings numpy and its model, and catalogue entries need neither.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(detected_languages()))
    return lambda text: str(identifier.classify(text)[0])
