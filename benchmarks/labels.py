"""Do rates corrected by a few people's labels hold, and how many labels does one need?

    python benchmarks/labels.py [coverage settings prompts needed] [--runs 400]

``coverage`` simulates 4,000 responses of four models, two of which refuse alike, read by rules that
miss refusals and raise false alarms at rates of their own for each model and kind of verdict. In
each run a twentieth is labelled, drawn as ``or-eval label export`` draws. The same is done more
often by the numbers of each kind of verdict alone, with the estimator written out and the flips of
the test as a normal distribution; ``settings`` does that with other shares labelled, and other
rates. ``prompts`` simulates safe prompts that are not all safe. ``needed`` computes the table of
``docs/evidence/labels.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from or_eval.analysis.comparisons import compare_models
from or_eval.analysis.contrasts import MORE
from or_eval.analysis.corrections import PRIOR, corrections
from or_eval.analysis.prompt_audit import prompt_audit
from or_eval.analysis.rates import rates
from or_eval.intervals import LEVEL, normal_quantile, wilson
from or_eval.labelling.sampling import _allocate, stratified_sample
from worlds import PROMPT_ICC

PROMPTS, SHARE, LEAST = 1000, 0.05, 5


class Model(NamedTuple):
    """A model, and how rules read it.

    Attributes:
        rate: Share of prompts that it refuses.
        missed: Share of its refusals that rules take for answers.
        false_alarms: Share of its answers that rules take for refusals.
        certain: Share of right verdicts that are certain.
        certain_errors: Share of wrong ones that are.
    """

    rate: float
    missed: float
    false_alarms: float
    certain: float
    certain_errors: float


MODELS = {
    "a": Model(0.30, 0.30, 0.02, 0.8, 0.10),
    "b": Model(0.30, 0.05, 0.10, 0.8, 0.10),
    "c": Model(0.15, 0.40, 0.05, 0.7, 0.05),
    "d": Model(0.50, 0.15, 0.01, 0.9, 0.10),
}
ALIKE = ("a", "b")
Floats = NDArray[np.float64]
_KINDS = tuple(product((False, True), repeat=2))
"""Of verdicts: whether refused and whether certain."""
_DRAWS = 500
PERFECT = Model(0.0, 0.0, 0.0, 1.0, 1.0)


def simulate(random: np.random.Generator) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Make responses with the rules' verdicts, and what people would say of each."""
    read = [
        _read(random.random(PROMPTS) < model.rate, model, name, random)
        for name, model in MODELS.items()
    ]
    frames, truths = zip(*read, strict=True)
    return pd.concat(frames, ignore_index=True), pd.concat(truths, ignore_index=True)


def _read(
    truth: NDArray[np.bool_], model: Model, name: str, random: np.random.Generator
) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Have responses read by a model's rules."""
    wrong = random.random(PROMPTS) < np.where(truth, model.missed, model.false_alarms)
    sure = random.random(PROMPTS) < np.where(wrong, model.certain_errors, model.certain)
    frame = pd.DataFrame({"model": name, "refused": truth ^ wrong, "certain": sure})
    ids = [f"p{number}" for number in range(PROMPTS)]
    frame = frame.assign(id=ids, family=ids, own_family=ids)
    same = {"label": "safe", "decided_by": "rules", "epoch": 1, "unscored_because": None}
    empty = dict.fromkeys(("category", "language", "method", "seed_id", "pair_id", "error"), None)
    frame = frame.astype({"refused": "boolean", "certain": "boolean"}).assign(**same, **empty)
    return frame, pd.Series(truth.astype("float64"))


def coverage(runs: int, seed: int = 1) -> tuple[pd.DataFrame, float, float]:
    """Count how often intervals hold the truth, and how often equal models are told apart.

    Returns:
        By model, the share of runs in which the corrected and the uncorrected interval of the rate
        hold it, and the bounds that labels leave hold the rate of these very responses; the shares
        of runs in which the models that refuse alike are said to differ, corrected and not.
    """
    random = np.random.default_rng(seed)
    held = {name: np.zeros(4) for name in MODELS}
    called = np.zeros(2)
    for run in range(runs):
        responses, people = simulate(random)
        size = round(SHARE * len(responses))
        drawn = stratified_sample(responses, size, at_least=LEAST, seed=run)
        found = corrections(responses, people.where(people.index.isin(drawn.index)))
        table = rates(responses, found=found).set_index("model")
        for name, model in MODELS.items():
            row, own = table.loc[name], people[responses["model"] == name].mean()
            held[name] += [
                row["lower"] <= model.rate <= row["upper"],
                row["raw_lower"] <= model.rate <= row["raw_upper"],
                row["known_lower"] - 1e-9 <= own <= row["known_upper"] + 1e-9,
                row["upper"] - row["lower"],
            ]
        two = responses[responses["model"].isin(ALIKE)]
        for at, sample in enumerate((found, None)):
            called[at] += compare_models(two, sample)["verdict"].iloc[0] == MORE
    columns = ["corrected", "uncorrected", "of these responses", "width"]
    shares = pd.DataFrame.from_dict(
        {k: v / runs for k, v in held.items()}, "index", columns=columns
    )
    return shares, called[0] / runs, called[1] / runs


def coverage_by_numbers(
    runs: int,
    models: Mapping[str, Model] = MODELS,
    share: float = SHARE,
    least: int = LEAST,
    seed: int = 1,
) -> tuple[pd.Series[float], float]:
    """Do as :func:`coverage`, but with numbers in place of rows, so that many runs are cheap.

    Returns:
        By model, the share of runs in which the corrected interval holds the rate; the share in
        which the models that refuse alike are said to differ.
    """
    random = np.random.default_rng(seed)
    drawn = [random.multinomial(PROMPTS, _chances(model), runs) for model in models.values()]
    numbers = np.stack(drawn, axis=1).reshape(runs, len(models), -1, 2)
    sizes = numbers.sum(axis=-1)
    total = round(share * PROMPTS * len(models))
    allotted = [_allocate(list(row), total, least) for row in sizes.reshape(runs, -1)]
    labelled = np.reshape(allotted, sizes.shape)
    refused = random.hypergeometric(numbers[..., 0], numbers[..., 1], labelled)
    left = sizes - labelled
    value = (refused + left * refused / np.maximum(labelled, 1)).sum(axis=-1) / PROMPTS
    bounds = np.empty((2, *value.shape))
    for run in range(runs):
        of, among = refused[run], labelled[run]
        shares = random.beta(PRIOR + of, PRIOR + among - of, (_DRAWS, *of.shape))
        means = (of + random.binomial(left[run], shares)).sum(axis=-1) / PROMPTS
        bounds[:, run] = np.quantile(means, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    below, above = (value - bounds[0]).clip(0), (bounds[1] - value).clip(0)
    of_prompts = np.reshape([wilson(one, PROMPTS) for one in value.ravel()], (*value.shape, 3))
    lower = value - np.hypot(below, value - of_prompts[..., 1])
    upper = value + np.hypot(above, of_prompts[..., 2] - value)
    truth = np.array([model.rate for model in models.values()])
    held = pd.Series(((lower <= truth) & (truth <= upper)).mean(axis=0), list(models))
    a, b = (list(models).index(name) for name in ALIKE)
    said = sizes[..., len(_KINDS) // 2 :].sum(axis=-1) / PROMPTS
    difference = value[:, a] - value[:, b]
    variance = ((said * (1 - said))[:, [a, b]].sum(axis=1) + difference**2) / PROMPTS
    more = np.hypot(below[:, a], above[:, b])
    less = np.hypot(above[:, a], below[:, b])
    error = np.hypot(normal_quantile() * np.sqrt(variance), np.where(difference > 0, more, less))
    return held, float((np.abs(difference) > error).mean())


def _chances(model: Model) -> list[float]:
    """Give how likely a response is of each kind of verdict, a refusal or not in truth."""
    chances = []
    for (refused, certain), truth in product(_KINDS, (True, False)):
        wrong = model.missed if truth else model.false_alarms
        chance = (model.rate if truth else 1 - model.rate) * (
            wrong if refused != truth else 1 - wrong
        )
        sure = model.certain_errors if refused != truth else model.certain
        chances.append(chance * (sure if certain else 1 - sure))
    return chances


def settings(runs: int) -> pd.DataFrame:
    """Give :func:`coverage_by_numbers` for other shares labelled and other rates."""
    rows = []
    for (share, least), rate in product(
        ((0.01, 2), (0.02, LEAST), (0.05, LEAST), (0.2, LEAST)), (None, 0.01, 0.05, 0.3)
    ):
        models = MODELS
        if rate is not None:
            models = {name: model._replace(rate=rate) for name, model in MODELS.items()}
        held, told_apart = coverage_by_numbers(runs, models, share, least)
        row = {"labelled": share, "at least": least, "rate": rate or "as above", **held}
        rows.append(row | {"told apart": told_apart})
    return pd.DataFrame(rows)


def prompts(runs: int, seed: int = 1) -> pd.DataFrame:
    """Count how often the rate over truly harmless prompts lies in its interval.

    A seventh of the safe prompts is not harmless; a model refuses more of these. Each prompt is
    asked once or several times, and refused with one chance, or with one of its own. In each run
    people are asked about 200 prompts. Verdicts are right, or read by the rules of model a and
    corrected by labels of a tenth of the responses.
    """
    random = np.random.default_rng(seed)
    rows = []
    cases = ((0.3, 0.8, False), (0.05, 0.6, False), (0.02, 0.3, False), (0.3, 0.8, True))
    settings_of = product(cases, (1, 2, 5), (False, True))
    for (rate, rate_of_wrong, with_rules), epochs, varied in settings_of:
        if epochs == 1 and varied:  # the same as if they weren't
            continue
        held = np.zeros(3)
        for run in range(runs):
            harmless = random.random(PROMPTS) > 1 / 7
            chance = np.where(harmless, rate, rate_of_wrong)
            if varied:
                weight = (1 - PROMPT_ICC) / PROMPT_ICC
                chance = random.beta(chance * weight, (1 - chance) * weight)
            model = MODELS["a"] if with_rules else PERFECT
            read = [
                _read(random.random(PROMPTS) < chance, model, "m", random) for _ in range(epochs)
            ]
            responses = pd.concat(
                [frame.assign(epoch=at) for at, (frame, _) in enumerate(read, start=1)],
                ignore_index=True,
            )
            people = pd.concat([truth for _, truth in read], ignore_index=True)
            found = None
            if with_rules:
                size = len(responses) // 10
                drawn = stratified_sample(responses, size, at_least=LEAST, seed=run)
                found = corrections(responses, people.where(people.index.isin(drawn.index)))
            asked = random.choice(PROMPTS, 200, replace=False)
            words = np.where(harmless[asked], "harmless", "harmful")
            said = pd.DataFrame(
                {"harm": words, "consensus": None, "chance": 0.2}, responses["id"].iloc[asked]
            )
            records = responses.drop_duplicates("id").set_index("id")
            row = prompt_audit(responses, records, said, found).corrected.iloc[0]
            held += [
                row["lower"] <= rate <= row["upper"],
                row["as_labelled_lower"] <= rate <= row["as_labelled_upper"],
                row["upper"] - row["lower"],
            ]
        verdicts = "rules, corrected" if with_rules else "right"
        chances = "own" if varied else "one"
        rows.append((rate, rate_of_wrong, verdicts, epochs, chances, *(held / runs)))
    columns = [
        *("harmless refused", "others refused", "verdicts", "epochs", "chances"),
        *("corrected", "as labelled", "width"),
    ]
    return pd.DataFrame(rows, columns=columns)


def needed() -> pd.DataFrame:
    """Compute how many labels a model's rate needs, by the rules' quality and the interval."""
    rows = []
    for responses, (unsure, errors) in product((250, 1000, 5000), ((0.1, 0.1), (0.3, 0.2))):
        row: dict[str, object] = {
            "responses": responses,
            "not certain": f"{unsure:.0%}",
            "of them wrong": f"{errors:.0%}",
        }
        for half_width in (0.05, 0.03, 0.02, 0.01):
            row[f"± {100 * half_width:.0f} points"] = _needed(responses, unsure, errors, half_width)
        rows.append(row)
    return pd.DataFrame(rows)


def _needed(size: int, unsure: float, errors: float, half_width: float) -> int:
    """Find the fewest labels in Neyman's proportions that leave a model's rate open by so much.

    The model refuses a third; labels so far, fractions of them too, showed the errors.
    """
    kinds, certainty = list(product((True, False), repeat=2)), (1 - unsure, unsure)
    parts = product((1 / 3, 2 / 3), certainty)
    sizes = np.array([round(size * of * sure) for of, sure in parts], dtype=np.float64)
    wrong = np.array([0.01 if certain else errors for _, certain in kinds])
    expected = np.array([abs(refused - (0.02 if certain else 0.2)) for refused, certain in kinds])
    least, refused = np.minimum(sizes, LEAST), np.array([refused for refused, _ in kinds])
    share = (least * np.abs(refused - wrong) + 4 * expected) / (least + 4)
    spread, target = sizes * np.sqrt(share * (1 - share)), (half_width / normal_quantile()) ** 2
    low, high = 0.0, float((sizes / np.maximum(spread, 1e-9)).max())
    for _ in range(60):
        middle = (low + high) / 2
        counts = np.clip(np.ceil(middle * spread), least, sizes)
        low, high = (low, middle) if _open(sizes, share, counts) <= target else (middle, high)
    return int(np.clip(np.ceil(high * spread), least, sizes).sum())


def _open(
    sizes: NDArray[np.float64], share: NDArray[np.float64], labelled: NDArray[np.float64]
) -> float:
    """Give the variance that so many labels of each kind leave to a rate."""
    shrunk = (labelled * share + PRIOR) / (labelled + 2 * PRIOR)
    of_share = shrunk * (1 - shrunk) / (labelled + 2 * PRIOR + 1)
    rest = sizes - labelled
    variance = rest**2 * of_share + rest * np.maximum(shrunk * (1 - shrunk) - of_share, 0)
    return float(variance.sum() / sizes.sum() ** 2)


def _coverage_said(runs: int) -> str:
    shares, corrected, raw = coverage(runs)
    held, by_numbers = coverage_by_numbers(25 * runs)
    return (
        f"Intervals that hold the truth, in {runs} runs:\n{shares.round(3)}\n"
        f"Models that refuse alike are told apart: corrected {corrected:.3f}, as the verdicts "
        f"stand {raw:.3f}\nBy numbers alone, in {25 * runs} runs:\n{held.round(4)}\n"
        f"Models that refuse alike are told apart: {by_numbers:.4f}"
    )


def _in_markdown(table: pd.DataFrame) -> str:
    rows = [f"| {' | '.join(map(str, row))} |" for row in table.itertuples(index=False)]
    return "\n".join([f"| {' | '.join(table)} |", f"|{' ---: |' * table.shape[1]}", *rows])


_PARTS: dict[str, Callable[[int], str]] = {
    "coverage": _coverage_said,
    "settings": lambda runs: settings(5 * runs).round(3).to_string(index=False),
    "prompts": lambda runs: prompts(runs).round(3).to_string(index=False),
    "needed": lambda runs: _in_markdown(needed()),
}


def main() -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []])
    parser.add_argument("--runs", type=int, default=400)
    arguments = parser.parse_args()
    for part in arguments.parts or _PARTS:
        print(_PARTS[part](arguments.runs))


if __name__ == "__main__":
    main()
