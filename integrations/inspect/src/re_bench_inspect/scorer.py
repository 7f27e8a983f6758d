"""The scorer of a session: attempts while the episode goes on, and the score of all attempts at its end.

It scores a copy of the workspace, so that it can be called at any time and any number of times; each call but the last
is an attempt of the session, whoever makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, mean, metric, scorer, stderr

from re_bench.runs.attempts import FinalScore
from re_bench_inspect.samples import record_attempts, report_wait, session_of_sample
from re_bench_inspect.store import SessionStore
from re_bench_server.session import SessionClosedError

if TYPE_CHECKING:
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState
    from inspect_ai.util import Store

    from re_bench_server.responses import ToolResponse
    from re_bench_server.session import Session

_FINAL_TRIES = 3
last_responses: WeakKeyDictionary[Session, ToolResponse] = WeakKeyDictionary()
"""The response to the last attempt that the scorer made of a session, for tools that call the scorer."""


@metric(name="best")
def best() -> Metric:
    """Return the metric that is the highest score of all epochs: best of k runs."""

    def compute(scores: list[SampleScore]) -> float:
        return max((score.score.as_float() for score in scores), default=float("nan"))

    return compute


@scorer(metrics=[mean(), stderr(), best()], name="reward")
def reward() -> Scorer:
    """Return the scorer of the tasks: the reward, 0 at the starting score and 1 at the reference's.

    A sample without a valid attempt is unscored, and no part of a mean.
    """

    async def score(state: TaskState, target: Target) -> Score:
        del target
        session = session_of_sample()
        if session is None:  # a log is scored again
            return _final_score(SessionStore(store=state.store))
        if state.completed:
            return _final_score(await end_episode(state.store, session))
        response = await session.answer(final=False)
        report_wait(response)
        last_responses[session] = response
        await record_attempts(state.store, session)
        metadata, status = {"profile": session.served.profile_name, **response.metadata}, response.metadata["status"]
        if status != "valid":
            return Score.unscored(reason=str(status), explanation=response.text, metadata=metadata)
        return Score(value=response.reward or 0.0, explanation=response.text, metadata=metadata)

    return score


async def end_episode(store: Store, session: Session) -> SessionStore:
    """Score the workspace once more and end the episode, unless it has ended; return what the store has then.

    Raises:
        ReBenchError: if the log cannot be written.
    """
    for _try in range(_FINAL_TRIES):
        if session.record.state == "finished":
            break
        try:
            report_wait(await session.answer(final=True))
        except SessionClosedError:
            break
    return await record_attempts(store, session)


def _final_score(kept: SessionStore) -> Score:
    final = FinalScore(**kept.final) if kept.final else FinalScore(0, None, None, 0, 0)
    metadata = {
        "profile": kept.task.get("profile"),
        "raw": final.raw,
        "attempts": final.attempts,
        "valid": final.valid,
        "hours": kept.hours,
    }
    if final.reward is not None and final.raw is not None:
        unit = kept.task.get("unit")
        text = f"{final.valid} of {final.attempts} attempts were valid; raw score {final.raw:zg} ({unit})"
        return Score(value=final.reward, explanation=text, metadata=metadata)
    if final.raw is not None:
        reason, text = "no_anchors", f"raw score {final.raw:zg}, and no anchors to make a reward of it"
    elif any(attempt["status"] == "error" for attempt in kept.attempts):
        reason, text = "scoring_failed", "no attempt was valid, and one had an internal error: see their messages"
    else:
        reason, text = "no_valid_attempt", f"none of {final.attempts} attempts was valid"
    return Score.unscored(reason=reason, explanation=text, metadata=metadata)
