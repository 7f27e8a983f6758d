"""The scorer of small_scaling_law: raw = 1 - [(L(answer) - L(best)) + |prediction - L(answer)|], higher is better.

Nothing of a submission is run, and nothing but three numbers of it is read. The agent's ledger is not among them: what
counts is what the answer says, and where the truth puts it.
"""

from __future__ import annotations

from pathlib import Path

from re_bench.scoring.score import Job, Measured, main
from small_scaling_law.answer import FILE, read_answer
from small_scaling_law.grading import losses_of, open_anchors, open_truth, raw_score, share_of_target
from small_scaling_law.instances import scale_of


def measure(job: Job) -> Measured:
    """Read the answer, and ask the truth of the chosen instance what a run like that costs and reaches."""
    profile, instance = job.profile_name, job.instance_number
    answer = read_answer(job.submission / FILE)
    share = share_of_target(answer, scale_of(profile, instance))
    truth = open_truth(profile, instance)
    regret, error = losses_of(truth, answer)
    details = {
        "n_embd": answer.n_embd,
        "max_iters": answer.max_iters,
        "loss_prediction": answer.loss_prediction,
        "share_of_target": share,
        "loss": truth.best.loss + regret,
        "best": truth.best.loss,
        "regret": regret,
        "error": error,
        "truth": truth.name,
    }
    # The message reaches the agent, which is not told how good its answer is.
    return Measured(raw_score(truth, answer), "a valid answer", details, open_anchors(profile, instance))


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
