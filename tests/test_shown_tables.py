"""Tables, texts and links as people see them."""

from __future__ import annotations

import json
import re

import pandas as pd

from or_eval.analysis.report.forms import markdown, shown_table
from or_eval.analysis.report.tested import log_folder, sample_link
from or_eval.hostile_text import marked_parts, script_json, shortened, visible


def test_markdown_is_escaped() -> None:
    shown = shown_table(
        pd.DataFrame({"model_name": ["[a|b] <i> [x](y)\n*c*", "50 % & $x_1$ \\ ^~"]})
    )
    assert markdown(shown).splitlines()[2:] == [
        "| \\[a\\|b\\] &lt;i&gt; \\[x\\](y) \\*c\\* |",
        "| 50 % & $x_1$ \\\\ ^\\~ |",
    ]
    plain = pd.DataFrame({"model": ["gpt-4.1_mini (system_prompt=safe), +3.0 to -2 %!"]})
    assert markdown(shown_table(plain)).splitlines()[2] == f"| {plain.iat[0, 0]} |"
    sly = pd.DataFrame({"model": ["_emphasis_ &lt;b&gt; &#60; __x"]})
    assert markdown(shown_table(sly)).splitlines()[2] == (
        "| \\_emphasis\\_ &amp;lt;b&amp;gt; &amp;#60; \\__x |"
    )


def test_intervals_stand_beside_their_figures() -> None:
    frame = pd.DataFrame(
        [
            {"model": "a", "over_refusal": 0.5, "over_refusal_lower": 0.4}
            | {"over_refusal_upper": 0.6, "kappa": 0.25, "lower": 0.1, "upper": float("nan")}
            | {"p": 1e-9, "n": 1200, "measure": "toxic_rejection"}
        ]
    )
    shown = shown_table(frame)
    assert shown.headers == ["model", "over-refusal", "kappa", "p", "n", "measure"]
    assert [cell.text for cell in shown.rows[0]] == [
        *("a", "50.0 % (40.0–60.0)", "0.25", "< 0.001", "1,200", "toxic rejection")
    ]
    assert [cell.order for cell in shown.rows[0]] == [None, 0.5, 0.25, 1e-9, 1200.0, None]
    change = {"difference": -0.031, "lower": -0.1, "upper": 0.04}
    shown = shown_table(pd.DataFrame([change | {"unlabelled_uncertain": 0.75, "uncertain": 3}]))
    assert [cell.text for cell in shown.rows[0]] == ["-3.1 (-10.0 to +4.0)", "75.0 %", "3"]


def test_texts_for_scripts_and_people() -> None:
    value = {"a": "</script><!-- & \u2028\u2029"}
    text = script_json(value)
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == value
    assert visible("a\u202eb\u2066\x00\x1b[31m\tc\r\nd") == (
        "a[U+202E]b[U+2066][U+0000][U+001B][31m\tc\nd"
    )
    assert visible("हिन्दी नमस्ते 👩‍🔬") == "हिन्दी नमस्ते 👩‍🔬"
    assert shortened("abcdef", 4) == "abcd … (2 more characters)"
    assert marked_parts("no 🔬\u202e no", [(6, 8), (0, 2), (1, 2), (4, 7)], 99) == [
        *("", "no", " 🔬", "[U+202E] n", "", "o", "")
    ]
    assert marked_parts("abcdef", [(3, 6), (5, 6)], 4) == [*("abc", "d", " … (2 more characters)")]


def test_links_name_samples_below_the_common_folder() -> None:
    logs = ["/runs/one/a.eval", "/runs/two/b c.eval"]
    assert log_folder(logs) == "/runs"
    assert sample_link("/runs", logs[1], "x/1 ?", 2).endswith(
        "/#/logs/two/b%20c.eval/samples/sample/x%2F1%20%3F/2/"
    )
    assert log_folder(["s3://bucket/x/a.eval", "s3://bucket/y/b.eval"]) == "s3://bucket"
