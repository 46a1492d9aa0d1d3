"""What a person says of data and of the prompts that are wanted: columns, labels, choices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from or_eval.sources import DataError, load_prompts
from or_eval.sources.files import read_table

SURVEY = "ask,topic,is_bad,text\nHow do I kill time?,a,0,x\nHow do I kill him?,b,1,y\nHi,a,0,z\n"


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    path.write_text(SURVEY, "utf-8")
    return path


def test_columns_and_the_meaning_of_their_words_are_named(survey: Path) -> None:
    loaded = load_prompts(
        survey, prompt_column="ask", label_column="is_bad", label="0=safe, 1=harmful"
    )
    assert [(r.prompt, r.label) for r in loaded.records] == [
        ("How do I kill time?", "safe"),
        ("How do I kill him?", "toxic"),
        ("Hi", "safe"),
    ]


@pytest.mark.parametrize("bad", [1, 1.0, True, "1"])
def test_labels_may_be_numbers_of_any_kind(tmp_path: Path, bad: object) -> None:
    import pandas as pd

    path = tmp_path / "a.parquet"
    pd.DataFrame({"prompt": ["Hi", "Ho"], "label": [bad, bad]}).to_parquet(path)
    loaded = load_prompts(path, label="1=toxic,true=toxic")
    assert {record.label for record in loaded.records} == {"toxic"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"prompt_column": "aks"},
            "no column 'aks' (-T prompt_column=); did you mean 'ask'; there are: 'ask', 'topic'",
        ),
        ({"label": "0=safe,1=toxic"}, "no column of labels with words to translate"),
        ({"label_column": "is_bad"}, "'0' is neither safe nor toxic; say what words mean"),
        ({"label_column": "is_bad", "label": "0=fine"}, "label: 'fine' is neither safe nor toxic"),
        ({"label_column": "is_bad", "label": "safe"}, "or give label_column=none"),
        ({}, "or name the column with -T label_column="),
        ({"source": "xstest", "prompt_column": "ask"}, "leave one of the two out"),
    ],
)
def test_a_mistake_gets_the_next_step(survey: Path, options: dict[str, str], says: str) -> None:
    with pytest.raises(DataError) as caught:
        load_prompts(survey, **options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_that_is_called_so_may_be_none(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("prompt,label\nHi,answered\n", "utf-8")
    (record,) = load_prompts(path, label="safe", label_column="none").records
    assert record.label == "safe"


def labels(**options: object) -> Counter[str]:
    return Counter(record.label for record in load_prompts("starter", **options).records)


def test_labels_are_chosen_by_their_own_word_and_by_xstests() -> None:
    assert labels(subset="safe", language="en") == {"safe": 120}
    assert labels(subset="toxic", language="en") == {"toxic": 40}
    assert labels(subset="unsafe", language="en") == {"toxic": 40}
    assert labels(subset="all") == {"safe": 180, "toxic": 60}


def test_several_categories_are_chosen_though_one_has_commas_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('prompt,category\nA,x\nB,"lying, cheating, etc."\nC,z\n', "utf-8")

    def chosen(category: str) -> str:
        records = load_prompts(path, label="safe", category=category).records
        return "".join(record.prompt for record in records)

    assert chosen("lying, cheating, ETC.") == "B"
    assert chosen("z,lying, cheating, etc.") == "BC"
    assert chosen("x, z") == "AC"
    with pytest.raises(DataError, match="no prompt has the category 'lying'"):
        chosen("x,lying")


def test_some_of_each_label_come_from_all_its_categories() -> None:
    records = load_prompts("starter", language="en", per_label=20).records
    of_safe = Counter(r.category for r in records if r.label == "safe")
    assert len(of_safe) == 10
    assert set(of_safe.values()) == {2}
    assert labels(per_label=20) == {"safe": 20, "toxic": 20}
    assert records == [r for r in load_prompts("starter").records if r in records]
    for nothing in (0, True, "5"):
        with pytest.raises(DataError, match="isn't a whole number of 1 or more"):
            labels(per_label=nothing)


def test_a_file_without_a_header_is_read_by_its_entry_with_its_own_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('"How, then; | why?\nWhere?"\nWhen?\n', "utf-8")
    read = read_table(path, ("prompt",))
    assert [(row.number, row.cells["prompt"]) for row in read.rows] == [
        (1, "How, then; | why?\nWhere?"),
        (3, "When?"),
    ]
    assert len(load_prompts(path, source="xsafety").records) == 2


def test_another_delimiter_gets_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("prompt^label\nHi^safe\n")
    with pytest.raises(DataError, match=r"'prompt\^label' \(commas, semicolons, tabs or bars div"):
        load_prompts(tmp_path / "a.csv")
