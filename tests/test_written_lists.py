"""What models really return when they are asked for a list of texts."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from or_eval.dataset_builders.writing.written_lists import read_list

WHOLE, OPEN, UNKNOWN = True, False, None


def read(reply, **options):
    found = read_list(reply, **options)
    return None if found is None else (found.items, found.last_whole)


class TestJson:
    @pytest.mark.parametrize(
        "reply",
        [
            '{"texts": ["one", "two"]}',
            '["one", "two"]',
            '[["one", "two"]]',
            '[["one"], ["two"]]',
            '```json\n{"texts": ["one", "two"]}\n```',
            'Sure! Here you are [as asked]:\n\n```\n["one", "two"]\n```\nLet me know [if] "more" helps!',
            '{"texts": ["one", "two"]} I hope this helps. {"note": ["three"',
            '{"text": "one"}\n{"text": "two"}',
            '[{"id": 1, "category": "hate", "prompt": "one"}, {"id": 2, "category": "hate", "prompt": "two"}]',
            '{"1": "one", "2": "two"}',
            '{"notes": [], "texts": ["one", "two"]}',
            '{"thoughts": "Let me think.", "texts": ["one", "two"]}',
            '{"texts": ["one", "two",]}',
            '{"texts": ["one"\n"two"]}',
            "['one', 'two']",
            "[“one”, “two”]",
            '{"texts": ["1. one", "2. two"]}',
            '{"texts": ["**one**", "\\"two\\""]}',
            'Two [2] texts: ["one", "two"]',
        ],
    )
    def test_forms(self, reply):
        assert read(reply) == (["one", "two"], WHOLE)

    def test_quotes_that_are_not_escaped(self):
        assert read('{"texts": ["He said "go", and went", "Why "stop"?"]}') == (
            ['He said "go", and went', 'Why "stop"?'],
            WHOLE,
        )
        assert read("['I don't know', 'You're it']") == (["I don't know", "You're it"], WHOLE)

    def test_escapes_in_broken_json(self):
        assert read('{"texts": ["na\\u00efve \\ud83d\\ude00", "say \\"hi\\"",],,}') == (
            ["naïve 😀", 'say "hi"'],
            WHOLE,
        )

    def test_keys_are_no_texts(self):
        reply = '{"texts": [{"category": "hate", "text": "one "x" one"}, {"category": "hate", "text": "two"}]'
        assert read(reply) == (['one "x" one', "two"], WHOLE)

    def test_line_breaks_stay_only_in_texts_with_paragraphs(self):
        reply = '{"texts": ["one\n\none", "two\\n\\ntwo"]}'
        assert read(reply) == (["one one", "two two"], WHOLE)
        assert read(reply, paragraphs=True) == (["one\n\none", "two\n\ntwo"], WHOLE)

    @pytest.mark.parametrize(
        ("reply", "items", "last_whole"),
        [
            ('{"texts": ["one", "tw', ["one", "tw"], OPEN),
            ('{"texts": ["one", "two"', ["one", "two"], WHOLE),
            ('{"texts": ["one", "two", ', ["one", "two"], WHOLE),
            ('{"texts": ["one", "two", "', ["one", "two"], WHOLE),
            ('{"texts": ["one", "two \\', ["one", "two \\"], OPEN),
            ('[{"text": "one"}, {"text": "tw', ["one", "tw"], OPEN),
        ],
    )
    def test_half_a_list(self, reply, items, last_whole):
        assert read(reply) == (items, last_whole)

    def test_an_empty_list_is_read_as_one(self):
        assert read('{"texts": []}') == ([], WHOLE)

    def test_placeholders_are_no_texts(self):
        assert read('{"texts": ["...", "one"]}') == (["one"], WHOLE)

    def test_json_within_an_item_is_not_the_list(self):
        assert read('1. What does {"a": "b"} mean?\n2. And ["c"]?') == (
            ['What does {"a": "b"} mean?', 'And ["c"]?'],
            UNKNOWN,
        )


class TestPlainLists:
    @pytest.mark.parametrize(
        "reply",
        [
            "1. one\n2. two",
            "1) one\n2) two",
            "(1) one\n(2) two",
            "1: one\n2: two",
            "1 - one\n2 - two",
            "1、one\n2、two",
            "①one\n②two",
            " ① one\n ② two",
            "**1.** one\n**2.** two",
            "**1. one**\n**2. two**",
            '1. "one"\n2. “two”',
            "1. «one»\n2. 「two」",
            "Prompt 1: one\nPrompt 2: two",
            "**Prompt 1:** one\n\n**Prompt 2:** two",
            "### Text 1\none\n\n### Text 2\ntwo",
            "Here are 2 of them.\n\n1. one\n2. two\n\nLet me know if you need 3 more!",
            "1. one\n2. two\nHope this helps!",
            "Top 5: none. Here are the texts:\n1. one\n2. two",
            "4. one\n5. two",
            "- one\n- two",
            "* one\n* two",
            '• "one"\n• "two"',
            "```\n- one\n- two\n```",
        ],
    )
    def test_numbers_and_bullets(self, reply):
        assert read(reply) == (["one", "two"], UNKNOWN)

    @pytest.mark.parametrize(
        "reply",
        [
            "[[one]] [[two]]",
            "[[one]],\n[[two]]",
            'Sure: [["one"]]\n[["two"]]',
            "[[1. one\n2. two]]",
            "[[- one\n- two]]",
            '"one"\n"two"',
            '"one", "two"',
            "“one”\n\n“two”",
            "„one“\n„two“",
            "«one»\n«two»",
            "「one」\n「two」",
        ],
    )
    def test_brackets_and_quotes(self, reply):
        assert read(reply) == (["one", "two"], WHOLE)

    def test_brackets_cut_off(self):
        assert read("[[one]] [[tw") == (["one", "tw"], OPEN)

    def test_quotes_within_a_text_stay(self):
        reply = '1. "Yes" and "no": what do they mean?\n2. What is a "white lie"?'
        assert read(reply)[0] == ['"Yes" and "no": what do they mean?', 'What is a "white lie"?']

    def test_a_decimal_number_opens_no_item(self):
        assert read("1. one\n2.5 kg\n2. two")[0] == ["one", "two"]
        assert read("1. one as in ②\n2. two")[0] == ["one as in ②", "two"]

    @pytest.mark.parametrize(
        ("below", "item"),
        [
            ("   a photo of a bird?", "How do I shoot a photo of a bird?"),
            ("a photo of a bird?", "How do I shoot"),
            ("   - a pun", "How do I shoot"),
            ("   (a pun)", "How do I shoot"),
            ("   Why: a pun", "How do I shoot"),
            ("\n   a photo of a bird?", "How do I shoot"),
        ],
    )
    def test_an_item_goes_on_where_a_line_is_deeper_and_no_note(self, below, item):
        reply = f"1. How do I kill time?\n   It sounds bad\n2. How do I shoot\n{below}\n3. two"
        assert read(reply)[0] == ["How do I kill time?", item, "two"]

    def test_paragraphs_belong_to_their_item(self):
        reply = "Text 1:\nDear Ann,\n\n1. milk\n2. eggs\n\nYours, Bo\n\nText 2:\nDear Bo,\n\nthanks\n\n---\n\nShall I go on?"
        assert read(reply, paragraphs=True)[0] == [
            "Dear Ann,\n\n1. milk\n2. eggs\n\nYours, Bo",
            "Dear Bo,\n\nthanks",
        ]

    def test_a_quotation_of_several_paragraphs(self):
        assert read('"one\n\none"\n\n"two"', paragraphs=True) == (["one\n\none", "two"], WHOLE)
        assert read('"one"\n\n"two\n\ntw', paragraphs=True) == (["one", '"two\n\ntw'], OPEN)

    @pytest.mark.parametrize(
        "reply", ["", "I can't help with that.", "One.\nTwo.", "{}", "[1, 2]", "…"]
    )
    def test_prose_is_no_list(self, reply):
        assert read(reply) is None

    def test_what_nobody_sees_is_left_out(self):
        assert read("1. o\u200bn\u202ee\n2. t\x00wo")[0] == ["one", "two"]
        assert read('{"texts": ["o\\u200bne \\ud83d"]}')[0] == ["one \ufffd"]

    def test_what_stands_before_the_list(self):
        assert read_list("I'd rather not, but:\n\n1. one\n2. two").before == "I'd rather not, but:"
        assert read_list('Well: {"texts": ["one"]}').before == "Well:"


class TestHostileReplies:
    @pytest.mark.parametrize(
        "reply",
        [
            *("[" * 200_000, '{"a":' * 40_000, '{"' * 90_000, '"' * 200_000, "[[" * 100_000),
            *('["' + 'a"' * 90_000, "1. " * 60_000, "**" * 90_000, '["a' + '" \n\n' * 50_000),
            *('["a"' + " " * 190_000 + "x", '" ' * 50_000 + "\n" * 9_000, "[[a]]" * 30_000),
            *("1.\n" * 60_000, "- \n" * 60_000, "\u201c\n" * 60_000, "<mark>" * 30_000),
        ],
    )
    @pytest.mark.parametrize("paragraphs", [False, True])
    def test_takes_little_time(self, reply, paragraphs):
        started = time.thread_time()
        read_list(reply, paragraphs=paragraphs)
        assert time.thread_time() - started < 1.0

    @settings(max_examples=200, deadline=None)
    @given(st.text(alphabet="[]{}\",'“”1.-*\n :\\abn", max_size=60), st.booleans())
    def test_never_fails(self, reply, paragraphs):
        found = read_list(reply, paragraphs=paragraphs)
        assert found is None or all(item == item.strip() and item for item in found.items)

    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(
            st.text("abc de,.?!'\n", min_size=1).map(lambda text: f"x{text}x"),
            min_size=1,
            max_size=5,
        )
    )
    def test_sound_json_comes_back(self, texts):
        read_back = read_list("Sure:\n" + json.dumps({"texts": texts}), paragraphs=True)
        assert read_back.items == texts
