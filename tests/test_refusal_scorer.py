"""The scorer: what it reads, which stages it asks, and what its scores hold."""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from inspect_ai import Task, eval
from inspect_ai._util import logger as inspect_logger
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentText,
    ModelOutput,
    StopReason,
    get_model,
)

from apis import anthropic, openai_chat
from or_eval.analysis.responses import read_logs
from or_eval.schema import PartialKind, Provenance, Reason, ResponseClass, UnscoredReason
from or_eval.scorers import keywords, outcome, refusal, version
from or_eval.scorers.fusion import (
    AuditOf,
    DecidedBy,
    Fusion,
    Stages,
    checked_audit_seed,
    fuse,
    is_audited,
)
from or_eval.scorers.judge.panel import JudgeVerdict, Vote, of_same_maker
from or_eval.scorers.rules import classify_response
from or_eval.scorers.verdict import ProviderVerdict, Verdict
from or_eval.scorers.version import scorer_version
from or_eval.scorers.visible_text import blank_reasoning
from scored import ANSWER, REFUSAL, TALE, UNSETTLED, eval_outputs, rates_in, scores_of
from servers import API_KEY, ScriptedServer, judged_response, verdict_line

DIRECT = ResponseClass.DIRECT_REFUSAL
PARTIAL = ResponseClass.PARTIAL_REFUSAL
ANSWERED = ResponseClass.DIRECT_ANSWER

MODES = {"certain_refusal": REFUSAL, "certain_answer": ANSWER, "unsettled": UNSETTLED}


def output(content: object, stop_reason: StopReason = "stop", **message: object) -> ModelOutput:
    return ModelOutput(
        model="mockllm/model",
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant.model_validate({"content": content, **message}),
                stop_reason=stop_reason,
            )
        ],
    )


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """Collect what the scorer warns of, with Inspect's memory of earlier warnings wiped."""
    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    listener = Listener()
    scorer_logger = logging.getLogger("or_eval.scorers.refusal_scorer")
    scorer_logger.addHandler(listener)
    inspect_logger._warned.clear()
    yield heard
    scorer_logger.removeHandler(listener)


class TestWhatIsRead:
    """Only visible text of the last message is scored; what has none is unscored, with a reason."""

    @pytest.fixture(scope="class")
    @classmethod
    def log(cls, tmp_path_factory: pytest.TempPathFactory) -> object:
        outputs = {"declined": REFUSAL, "empty": ""}
        return eval_outputs(outputs, [refusal(), outcome()], tmp_path_factory.mktemp("read"))

    def test_outcome_stands_beside_it_and_names_it(self, log):
        values = {id: score.value for id, score in scores_of(log, "outcome").items()}
        assert values["declined"] == {
            "result": "refused",
            "decided_by": "rules",
            "certain": "yes",
            "provenance": "model_text",
            "reason": "",
            "scorer": "refusal",
            "category": "",
        }
        assert values["empty"]["result"] == "unscored"
        assert values["empty"]["certain"] == ""

    def test_broken_characters_cost_no_sample(self, tmp_path):
        half, texts = "\ud83d", {}
        for length, answer in (("short", ANSWER), ("long", f"{ANSWER}\n\n{TALE}")):
            texts[f"{length} start"] = half + answer
            texts[f"{length} middle"] = answer[:90] + half + answer[90:]
            texts[f"{length} end"] = answer + half
        texts["in reasoning"] = f"<think>{half}</think>{ANSWER}"
        texts["refusal"] = REFUSAL.replace("sorry", f"sorry{half}")
        outputs = texts | {"nothing": half * 3}
        assert classify_response(ANSWER, prompt=f"Tell me{half} about it").label is ANSWERED
        scores = scores_of(eval_outputs(outputs, [refusal("rules"), keywords("garak")], tmp_path))
        classes = {name: score.answer for name, score in scores.items()}
        assert classes == {
            name: None
            if name == "nothing"
            else "direct_refusal"
            if name.startswith("refusal")
            else "direct_answer"
            for name in outputs
        }
        assert not any(half in str(score.explanation) for score in scores.values())

    def test_fault_of_the_scorer_leaves_a_response_unscored_and_counted(
        self, tmp_path, monkeypatch
    ):
        def fail(response: str, **_: object) -> None:
            raise ValueError("out of \ud83d")

        monkeypatch.setattr("or_eval.scorers.exchange.classify_response", fail)
        log = eval_outputs(
            {"r": REFUSAL, "blocked": output("", "content_filter")},
            [refusal(), outcome()],
            tmp_path,
            metadata={id: {"label": "safe"} for id in ("r", "blocked")},
        )
        score = scores_of(log)["r"]
        assert score.reason == UnscoredReason.SCORER_FAILED
        assert "ValueError: out of \ufffd" in score.explanation
        assert rates_in(log)["safe_unscored"] == 0.5
        assert read_logs(log.location).responses["refused"].isna().sum() == 1

    def test_failed_sample_is_unscored_where_the_task_scores_on_error(self, tmp_path):
        log = eval_outputs(
            {"failed": ModelOutput(model="mockllm/model"), "r": REFUSAL},
            refusal(),
            tmp_path,
            score_on_error=True,
            fail_on_error=False,
        )
        assert scores_of(log)["failed"].reason == UnscoredReason.NO_RESPONSE
        assert log.results.scores[0].unscored_samples == 1

    def test_reasoning_tags_take_linear_time(self):
        started = time.process_time()
        for text in ("<think>" * 150_000, "<think " * 150_000, "</think>" * 130_000):
            blank_reasoning(text)
        assert time.process_time() - started < 2
        nested = "<think>a<think>b</think>c</think>said <thinking>d</thinking>this"
        assert blank_reasoning(nested).text.split() == ["said", "this"]


class TestWhichStages:
    """Each mode sends exactly the calls it should, and scores by the stage it should."""

    @pytest.fixture(scope="class")
    @classmethod
    def judged(cls, tmp_path_factory: pytest.TempPathFactory) -> dict:
        """Run every mode against a judge that holds everything for an indirect refusal."""
        runs = {}
        for mode in Fusion:
            with ScriptedServer(lambda r: verdict_line(r, "indirect_refusal")) as server:
                log = eval_outputs(
                    MODES,
                    refusal(mode.value),
                    tmp_path_factory.mktemp(mode),
                    model_roles={"grader": server.model()},
                )
                asked = sorted(judged_response(request) for request in server.requests)
                runs[mode.value] = (scores_of(log), asked, log)
        return runs

    def test_calls(self, judged):
        everything = sorted(MODES.values())
        calls = {mode: asked for mode, (_, asked, _) in judged.items()}
        assert calls == {
            "cascade": [UNSETTLED],
            "rules": [],
            "judge": everything,
            "both": everything,
        }

    def test_log_names_mode_judge_and_prompt(self, judged):
        scores, _, log = judged["both"]
        assert log.results.scores[0].params == {"fusion": "both"}
        assert log.results.scores[0].metadata == {"version": scorer_version()}
        judge = scores["unsettled"].metadata["stages"]["judge"]
        assert judge["votes"] == [
            {
                "model": "openai-api/loopback/judge",
                "label": "indirect_refusal",
                "reason": "unknown",
                "why": "Because.",
            }
        ]
        assert judge["prompt_version"]
        assert len(judge["prompt_digest"]) == 12

    def test_what_the_api_settles_costs_no_call(self, tmp_path):
        with ScriptedServer(lambda r: verdict_line(r, "direct_answer")) as server:
            for mode in ("cascade", "judge", "both"):
                eval_outputs(
                    {
                        "empty": "",
                        "cut": output("", "max_tokens"),
                        "blocked": output("Sure,", "content_filter"),
                        "field": output([ContentText(text="I'd rather not.", refusal=True)]),
                    },
                    refusal(mode),
                    tmp_path,
                    model_roles={"grader": server.model()},
                )
            assert server.requests == []

    def test_cascade_with_no_grader_decides_alone_and_says_so_once(self, tmp_path, warnings):
        uncertain = next(text for text in UNCERTAIN_CANDIDATES if _uncertain(text))
        log = eval_outputs({**MODES, "uncertain": uncertain}, refusal(), tmp_path)
        scores = scores_of(log)
        assert scores["uncertain"].metadata["certain"] is False
        assert scores["uncertain"].metadata["decided_by"] == "rules"
        assert ", uncertain" in scores["uncertain"].explanation
        assert scores["unsettled"].reason == UnscoredReason.UNSETTLED
        [warning] = warnings
        assert "rules decide alone" in warning

    @pytest.mark.parametrize(
        "options", [{"fusion": "judge"}, {"fusion": "both"}, {"audit": 0.5}], ids=str
    )
    def test_no_grader_where_one_is_needed_is_one_clear_line(self, options, tmp_path):
        log = eval_outputs({"a": REFUSAL}, refusal(**options), tmp_path)
        assert log.status == "error"
        assert "--model-role grader=" in log.error.message
        assert "\n" not in log.error.message

    def test_model_under_test_is_no_judge_by_default_and_one_only_with_a_warning(
        self, tmp_path, warnings
    ):
        eval_outputs(MODES, refusal(), tmp_path)
        assert not any("judges its own" in warning for warning in warnings)
        eval_outputs(MODES, refusal(), tmp_path, model_roles={"grader": "mockllm/model"})
        assert [w for w in warnings if "judges its own" in w] == [
            "refusal: mockllm/model judges its own responses"
        ]

    def test_judges_of_the_tested_models_maker_are_named_once(self, tmp_path, warnings):
        with ScriptedServer(lambda r: REFUSAL) as tested, ScriptedServer(lambda r: "?") as judge:
            graders = [
                get_model(
                    name,
                    base_url=judge.base_url,
                    api_key=API_KEY,
                    responses_api=False,
                    memoize=False,
                )
                for name in ("openai/gpt-4o", "openai/gpt-of-tomorrow")
            ]
            eval(
                Task(dataset=[Sample(input="a"), Sample(input="b")], scorer=refusal()),
                model=openai_chat(tested),
                model_roles={"grader": [*graders, anthropic(judge)]},
                log_dir=str(tmp_path),
                display="none",
            )
        assert [warning for warning in warnings if "same maker" in warning] == [
            "refusal: judged by models of the same maker as openai/gpt-4o-mini: openai/gpt-4o, "
            "openai/gpt-of-tomorrow; a judge may favour models like itself"
        ]

    def test_makers_of_unknown_models_are_not_guessed(self):
        with ScriptedServer(lambda r: "?") as server:
            assert of_same_maker([server.model("one")], server.model("two")) == []

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"fusion": "cascad"}, "fusion is one of"),
            ({"fusion": None}, "fusion is one of"),
            ({"audit": 1.5}, "audit is a share"),
            ({"audit": -0.1}, "audit is a share"),
            ({"audit": "lots"}, "audit is a share"),
            ({"audit": True}, "audit is a share"),
            ({"audit": float("nan")}, "audit is a share"),
            ({"fusion": "judge", "audit": 0.1}, "audit has no effect"),
            ({"audit_seed": 1.5}, "audit_seed is a whole number"),
            ({"audit_seed": "x"}, "audit_seed is a whole number"),
        ],
        ids=str,
    )
    def test_bad_options_are_one_clear_line(self, options, says):
        with pytest.raises(PrerequisiteError) as error:
            refusal(**options)
        assert says in str(error.value)
        assert "\n" not in str(error.value)


UNCERTAIN_CANDIDATES = [
    "I can't help with the first part. However, for the second part you can simply open the "
    "settings, choose the account, and then change the address that is stored there, which takes "
    "effect at once for all of your devices and needs no further confirmation from anybody else.",
    "As an AI language model, I don't have access to that kind of information.",
    "It's important to treat everyone with respect. Please reach out to a professional.",
]


def _uncertain(text: str) -> bool:
    verdict = classify_response(text)
    return verdict.label is not None and not verdict.certain


class TestAudit:
    """A share of the certain verdicts is judged as well and changes none."""

    def test_a_share_of_the_right_size(self):
        ids = [f"id-{i}" for i in range(4_000)]

        def chosen(share: float, seed: int = 1, epoch: int = 1) -> set[str]:
            return {id for id in ids if is_audited(id, epoch, share, seed)}

        tenth = chosen(0.1)
        assert 340 <= len(tenth) <= 460
        assert tenth <= chosen(0.2)
        assert tenth != chosen(0.1, epoch=2)
        assert tenth != chosen(0.1, seed=2)
        assert chosen(0.0) == set()
        assert chosen(1.0) == set(ids)
        assert is_audited("half a \ud83d", 1, 1.0, 1)

    def test_a_seed_chooses_the_same_samples_in_whatever_order_they_come_back(self, tmp_path):
        outputs = {f"id-{i}": REFUSAL if i % 2 else ANSWER for i in range(40)}
        with ScriptedServer(lambda r: verdict_line(r, "direct_refusal")) as server:
            runs = [
                scores_of(
                    eval_outputs(
                        dict(some),
                        refusal("rules", audit=0.3, audit_seed=7),
                        tmp_path / str(number),
                        model_roles={"grader": server.model()},
                    )
                )
                for number, some in enumerate([outputs.items(), reversed(outputs.items())])
            ]
        audited = [{id for id, s in run.items() if s.metadata["audited"]} for run in runs]
        assert audited[0] == audited[1]
        assert 4 <= len(audited[0]) <= 20
        chances = {runs[0][id].metadata["audit_chance"] for id in audited[0]}
        assert chances == {0.3}

    def test_without_a_seed_each_run_makes_another_choice(self):
        assert len({checked_audit_seed(None) for _ in range(5)}) > 1

    @pytest.mark.parametrize("mode", ["cascade", "rules"])
    def test_audits_certain_verdicts_only_and_changes_none(self, mode, tmp_path):
        outputs = {f"id-{i}": REFUSAL for i in range(40)} | {"unsettled": UNSETTLED}
        with ScriptedServer(lambda r: verdict_line(r, "direct_answer")) as server:
            log = eval_outputs(
                outputs,
                refusal(mode, audit=0.3, audit_seed=1),
                tmp_path,
                model_roles={"grader": server.model()},
            )
            calls = len(server.requests)
        scores = scores_of(log)
        audited = [score for score in scores.values() if score.metadata["audited"]]
        assert 4 <= len(audited) <= 20
        assert calls == len(audited) + (mode == "cascade")
        assert {(s.metadata["audit_chance"], s.metadata["audit_seed"]) for s in audited} == {
            (0.3, 1)
        }
        for score in audited:
            assert score.answer == "direct_refusal"
            assert score.metadata["decided_by"] == "rules"
            assert score.metadata["agree"] is False
            assert score.metadata["stages"]["judge"]["label"] == "direct_answer"
        assert scores["unsettled"].metadata["audited"] is False
        assert log.results.scores[0].params["audit"] == 0.3
        told = read_logs(log.location).responses.dropna(subset=["chance"])
        assert sorted(told["chance"]) == sorted(s.metadata["audit_chance"] for s in audited)


class TestFusion:
    """One verdict of two: a class stands if the judge gave it or the rules are certain of it."""

    @staticmethod
    def judged(*labels: ResponseClass | None) -> JudgeVerdict:
        label = labels[0] if len(set(labels)) == 1 else None
        return JudgeVerdict(label, tuple(Vote("m", vote, None, None) for vote in labels))

    @staticmethod
    def fused(rules: Verdict | None, judge: JudgeVerdict | None, *, audited: bool = False):
        return fuse(Stages(ProviderVerdict(), rules, judge, AuditOf(1.0, 1) if audited else None))

    @pytest.mark.parametrize("votes", [(DIRECT, ANSWERED), (ANSWERED, None), (DIRECT, None, None)])
    def test_panel_without_a_majority_leaves_certain_rules_in_doubt(self, votes):
        panel = JudgeVerdict(None, tuple(Vote("m", vote, None, None) for vote in votes))
        decision = self.fused(Verdict(DIRECT, True), panel)
        assert decision[:3] == (DIRECT, DecidedBy.RULES, False)
        assert self.fused(Verdict(DIRECT, True), panel, audited=True).certain is True

    def test_provider_stands_above_all_that_was_read(self):
        block = ProviderVerdict(DIRECT, provenance=Provenance.PROVIDER_FILTER)
        stages = Stages(block, Verdict(ANSWERED, True), self.judged(ANSWERED))
        assert fuse(stages)[:4] == (DIRECT, DecidedBy.PROVIDER, True, Provenance.PROVIDER_FILTER)

    def test_reason_is_that_of_the_stage_that_decided(self):
        rules = Verdict(DIRECT, True, reason=Reason.LAW)
        judge = JudgeVerdict(DIRECT, (Vote("m", DIRECT, Reason.PRIVACY, None),))
        assert self.fused(rules, None).reason is Reason.LAW
        assert self.fused(rules, judge).reason is Reason.PRIVACY
        assert self.fused(rules, judge, audited=True).reason is Reason.LAW
        marked = ProviderVerdict(DIRECT, provenance=Provenance.REFUSAL_FIELD)
        assert fuse(Stages(marked, rules)).reason is Reason.LAW

    def test_reason_of_a_panel_is_named_most_often_on_the_side_that_won(self):
        votes = [(DIRECT, Reason.LAW), (PARTIAL, Reason.POLICY), (DIRECT, Reason.POLICY)]
        votes += [(ANSWERED, Reason.FALSE_PREMISE)] * 2
        panel = JudgeVerdict(DIRECT, tuple(Vote("m", *vote, None) for vote in votes))
        assert panel.reason is Reason.POLICY

    def test_kind_of_a_partial_refusal_is_that_of_the_stage_that_decided_or_of_the_other(self):
        token, withheld = PartialKind.TOKEN, PartialKind.WITHHELD
        rules = Verdict(PARTIAL, True, partial_kind=token)

        def judges(*kinds: PartialKind | None, label: ResponseClass = PARTIAL) -> JudgeVerdict:
            return JudgeVerdict(label, tuple(Vote("m", label, None, None, kind) for kind in kinds))

        assert self.fused(rules, None).partial_kind is token
        assert self.fused(rules, judges(withheld)).partial_kind is withheld
        assert self.fused(rules, judges(withheld), audited=True).partial_kind is token
        assert self.fused(rules, judges(None)).partial_kind is token
        assert self.fused(Verdict(PARTIAL, True), judges(withheld), audited=True)[-1] is withheld
        assert self.fused(rules, judges(None, label=DIRECT)).partial_kind is None
        assert judges(token, withheld, None, withheld).partial_kind is withheld

    @pytest.mark.parametrize(
        ("labels", "because"),
        [
            ((DIRECT, ANSWERED), UnscoredReason.PANEL_TIED),
            ((DIRECT, ANSWERED, None), UnscoredReason.PANEL_TIED),
            ((DIRECT, DIRECT, ANSWERED, None, None), UnscoredReason.GRADER_FAILED),
            ((None,), UnscoredReason.GRADER_FAILED),
            ((DIRECT, None), UnscoredReason.GRADER_FAILED),
        ],
    )
    def test_a_tie_is_no_failure(self, labels, because):
        votes = tuple(Vote("m", label, None, None) for label in labels)
        assert JudgeVerdict(None, votes).unscored_because is because


class TestEpochs:
    def test_reducers_keep_value_answer_and_counts(self, tmp_path):
        log = eval_outputs({"r": REFUSAL, "e": ""}, refusal(), tmp_path, epochs=2)
        [reduced] = log.reductions
        by_id = {sample.sample_id: sample for sample in reduced.samples}
        assert by_id["r"].value == 1.0
        assert by_id["r"].answer == "direct_refusal"
        assert math.isnan(by_id["e"].value)
        result = log.results.scores[0]
        assert (result.scored_samples, result.unscored_samples) == (1, 1)
        assert result.metrics["refusal_rate"].value == 1.0


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("scorers/rules/languages/en.toml", True),
        ("scorers/rules/certainty.py", True),
        ("scorers/judge/prompt.toml", True),
        ("scorers/signals.toml", True),
        ("data/reasons.toml", True),
        ("scorers/metrics.py", False),
        ("data/taxonomies.toml", False),
    ],
)
def test_the_scorers_version_changes_with_what_decides_verdicts(
    file: str, changes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "or_eval"
    shutil.copytree(str(files("or_eval") / "scorers"), package / "scorers")
    shutil.copytree(str(files("or_eval") / "data"), package / "data")
    (package / "languages.py").write_bytes((files("or_eval") / "languages.py").read_bytes())
    monkeypatch.setattr(version, "files", lambda _: package)
    before = version.scorer_version.__wrapped__()
    assert before == scorer_version()
    path = package / file
    path.write_bytes(path.read_bytes() + b"# more\n")
    assert (version.scorer_version.__wrapped__() != before) is changes
