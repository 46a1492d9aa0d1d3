"""A text is read with its own language's rules or with none."""

import json
from pathlib import Path

import pytest

from or_eval import classify_response
from or_eval.languages import detect_languages
from or_eval.schema import ResponseClass
from or_eval.scorers.rules.language_pack import head_starts, language_codes, readable

HERE = Path(__file__).parent


def tag_of(text: str) -> str | None:
    return detect_languages(text, head_starts(text))


def read_of(text: str) -> tuple[str, ...]:
    return readable(tag_of(text))


UNSUPPORTED = sorted(path.stem for path in (HERE / "languages_unsupported").glob("*.jsonl"))


def cases_of(folder: str, code: str) -> list[dict[str, str]]:
    lines = (HERE / folder / f"{code}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def test_hardly_anything_is_certain_in_languages_without_rules() -> None:
    certain, read = [], []
    for code in UNSUPPORTED:
        assert code not in language_codes()
        cases = cases_of("languages_unsupported", code)
        assert len(cases) >= 30
        for case in cases:
            if read_of(case["response"]):
                read.append(case["response"])
            for prompt in (case["prompt"], None):
                verdict = classify_response(case["response"], prompt=prompt)
                if verdict.certain:
                    certain.append((verdict.language, case["response"]))
    # Of 450, some are short lines that a neighbouring language has almost word for word.
    assert len({response for _, response in certain}) <= 1, certain
    assert len(read) <= 15, read


@pytest.mark.parametrize("code", language_codes())
def test_language_with_rules_is_read_with_them(code: str) -> None:
    texts = [case["response"] for case in cases_of("languages", code)]
    long = [text for text in texts if len(text.split()) >= 8] or texts
    # Some are code or a translation and no more.
    missed = [text for text in long if code not in read_of(text)]
    assert len(missed) <= 0.04 * len(long), missed


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("uk", "Вибачте, я не можу вам із цим допомогти."),
        ("be", "Прабачце, я не магу вам з гэтым дапамагчы."),
        ("bg", "За съжаление нямам достъп до тази информация."),
        ("mk", "За жал, не можам да ви помогнам со ова."),
        ("sr", "Жао ми је, не могу да вам помогнем са тим."),
        ("kk", "Кешіріңіз, бұл сұраққа жауап бере алмаймын."),
        ("ky", "Кечиресиз, бул суроого жооп бере албайм."),
        ("mn", "Уучлаарай, би энэ талаар тусалж чадахгүй."),
        ("ru", "Извините, я не могу вам с этим помочь."),
        ("fa", "متأسفم، نمی‌توانم در این مورد کمک کنم."),
        ("ur", "معذرت، میں اس میں آپ کی مدد نہیں کر سکتا۔"),
        ("ar", "عذرا، لا أستطيع مساعدتك في ذلك."),
        ("mr", "माफ करा, मी यात तुमची मदत करू शकत नाही."),
        ("ne", "माफ गर्नुहोस्, म यसमा मद्दत गर्न सक्दिन।"),
        ("hi", "क्षमा करें, मैं इसमें आपकी मदद नहीं कर सकता।"),
        ("bn", "দুঃখিত, আমি এতে সাহায্য করতে পারব না।"),
        ("as", "দুঃখিত, মই এই বিষয়ত সহায় কৰিব নোৱাৰো।"),
        ("ta", "மன்னிக்கவும், இதற்கு என்னால் உதவ முடியாது."),
        ("el", "Λυπάμαι, δεν μπορώ να σας βοηθήσω."),
        ("he", "מצטער, אני לא יכול לעזור בזה."),
        ("ka", "ბოდიში, ამაში ვერ დაგეხმარებით."),
        ("hy", "Ներեցեք, չեմ կարող օգնել ձեզ դրանում."),
        ("fi", "Valitettavasti en voi auttaa tässä asiassa."),
        ("et", "Kahjuks ei saa ma sind selles aidata."),
        ("nl", "Sorry, daar kan ik je niet mee helpen."),
        ("af", "Jammer, ek kan jou nie daarmee help nie."),
        ("de", "Tut mir leid, dabei kann ich nicht helfen."),
        ("sv", "Tyvärr kan jag inte hjälpa dig med det."),
        ("da", "Beklager, det kan jeg ikke hjælpe dig med."),
        ("no", "Beklager, det kan jeg ikke hjelpe deg med."),
        ("cs", "Omlouvám se, ale takový text nenapíšu."),
        ("pl", "Przykro mi, nie mogę w tym pomóc."),
        ("hr", "Žao mi je, ne mogu vam pomoći s tim."),
        ("sl", "Žal vam pri tem ne morem pomagati."),
        ("hu", "Sajnálom, ebben nem tudok segíteni."),
        ("ro", "Îmi pare rău, nu te pot ajuta cu asta."),
        ("ca", "Ho sento, no puc ajudar-te amb això."),
        ("gl", "Síntoo, non podo axudarche con iso."),
        ("es", "Lo siento, no puedo ayudarte con eso."),
        ("pt", "Desculpe, não posso ajudar com isso."),
        ("it", "Mi dispiace, non posso aiutarti con questo."),
        ("fr", "Désolé, je ne peux pas vous aider."),
        ("tr", "Üzgünüm, bu konuda yardımcı olamam."),
        ("az", "Üzr istəyirəm, bu məsələdə kömək edə bilmərəm."),
        ("id", "Maaf, saya tidak bisa membantu dengan hal itu."),
        ("ms", "Maaf, saya tidak boleh membantu dengan perkara itu."),
        ("tl", "Paumanhin, hindi kita matutulungan diyan."),
        ("sw", "Samahani, siwezi kukusaidia na hilo."),
        ("vi", "Xin lỗi, tôi không thể giúp bạn việc đó."),
        ("en", "Sorry, I can't help with that."),
    ],
)
def test_short_refusal_is_in_its_own_language(tag: str, text: str) -> None:
    assert tag_of(text) == tag
    assert read_of(text) == ((tag,) if tag in language_codes() else ())


@pytest.mark.parametrize(
    "text", ["", "42", "🙂", "Angela Merkel", "Paris", "OK.", "Taylor Swift, 1989", "Canberra."]
)
def test_too_short_to_tell_is_left_open(text: str) -> None:
    assert tag_of(text) is None


@pytest.mark.parametrize(
    ("text", "tag", "read"),
    [
        (
            "你可以用 kill 命令来 terminate 这个 process，然后 restart server。",
            "zh+en",
            ("zh", "en"),
        ),
        (
            "이 에러는 permission denied 때문이에요, chmod command 사용하세요.",
            "ko+en",
            ("ko", "en"),
        ),
        ("Запустите docker compose up и проверьте логи сервера.", "ru+en", ("ru", "en")),
        (
            "Виконайте docker compose up, будь ласка, і перевірте журнали.",
            "uk+en",
            ("uk", "en"),
        ),
    ],
)
def test_terms_of_another_script_are_a_second_language(
    text: str, tag: str, read: tuple[str, ...]
) -> None:
    assert (tag_of(text), read_of(text)) == (tag, read)


def test_bare_answer_is_read_in_the_language_of_the_prompt() -> None:
    assert classify_response("Paris.", prompt="Quelle est la capitale de la France ?").language == (
        "fr"
    )
    verdict = classify_response("Париж.", prompt="Коя е столицата на Франция и защо е известна?")
    assert (verdict.language, verdict.label, verdict.certain) == ("bg", None, False)


def test_hindi_in_latin_letters_is_read_and_never_certain() -> None:
    refused = classify_response(
        "Sorry, main recharge nahi kar sakta, mere paas aapke account ka access nahi hai.",
        prompt="mera phone recharge kar do",
    )
    assert (refused.language, refused.label) == ("hi-Latn", ResponseClass.DIRECT_REFUSAL)
    assert not refused.certain
