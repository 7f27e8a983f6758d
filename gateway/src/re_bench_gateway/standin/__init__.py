"""A model that stands in for a weak chat model asked for Rust programs, so that a task runs offline.

It rewards what works with real models: taking a program out of the text around it, sampling more than once, running
public tests, feeding errors back, voting. It knows a pool of programs and recognises problems by their statements.
Whatever is measured with it is labelled stand-in; all odds are ours (:mod:`~re_bench_gateway.standin.choosing`).

====================  ========================================================
``model``             from a request to a completion
``conversation``      which problem a conversation states, which program it shows
``asking``            what a prompt asks for and reports
``choosing``          which program it gets
``phrasing``          in which words
``problems``          what the stand-in knows
``source``            Rust as text
====================  ========================================================
"""

from re_bench_gateway.standin.choosing import ODDS, Odds
from re_bench_gateway.standin.model import FINGERPRINT, StandIn, prompt_tokens, tokens
from re_bench_gateway.standin.problems import Problem, Program

__all__ = ["FINGERPRINT", "ODDS", "Odds", "Problem", "Program", "StandIn", "prompt_tokens", "tokens"]
