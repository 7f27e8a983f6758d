"""The agent: it asks the model for a step, carries the action out, and shows what came of it, until the work ends."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlab_agent import prompt
from mlab_agent.actions import FINAL_ANSWER, Context, Limits, actions_for
from mlab_agent.asking import Asking
from mlab_agent.conversation import Conversation
from mlab_agent.homes import HomeError, HomeLostError
from mlab_agent.models import BudgetSpent, ContextFull, Model, ModelError, Reply
from mlab_agent.parsing import MalformedReply, Parsed, parse, parse_fields, parse_input, plain
from mlab_agent.state import STEP, InFlight, RunState

if TYPE_CHECKING:
    from pathlib import Path

    from mlab_agent.budget import Budget
    from mlab_agent.homes import Home
    from mlab_agent.journal import Journal
    from mlab_agent.tracing import Trace

__all__ = ["Agent", "Outcome", "Response", "Stopped"]

_NO_WRITES = frozenset({"List Files", "Read File", "Inspect Script Lines", "Understand File", "Score", "Final Answer"})
_CONTEXT_TRIES = 6
_REPEATS = 3  # an action during which the agent was killed so often is not tried again
_TRIES_TO_ACT = re.compile(r"^\W*Action\W*:", re.MULTILINE | re.IGNORECASE)


class Stopped(BaseException):
    """The run is to end now, because of a signal or of its time limit; the text says which."""


@dataclass(frozen=True)
class Response:
    """A reply of the model, read."""

    reply: Reply
    parsed: Parsed | None
    tool: str | None = None
    complaint: str = ""
    """Why it cannot be acted on, in words for the model."""

    @property
    def tries_to_act(self) -> bool:
        """Whether it has an action, be it malformed."""
        return self.parsed is not None or self.reply.call is not None or bool(_TRIES_TO_ACT.search(self.reply.text))


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    reason: str
    """``final answer``, a limit (``steps``, ``time``, ``cost``, ``tokens``), ``malformed``, ``model``, ``home``,
    ``stopped`` or ``failure``."""
    answer: str
    detail: str = ""


class Agent:
    """The research agent of MLAgentBench. Everything it does goes through its trace."""

    def __init__(
        self,
        *,
        home: Home,
        model: Model,
        fast_model: Model,
        state: RunState,
        trace: Trace,
        budget: Budget,
        journal: Journal,
        snapshots: Path,
        limits: Limits | None = None,
        tools: str = "auto",
        max_malformed: int = 10,
        fresh_home: bool = False,
    ) -> None:
        """Put an agent together.

        Args:
            home: where the files are.
            model: what is asked for the steps.
            fast_model: what is asked for compound actions and summaries; may be the same.
            state: where the run stands; empty, or resumed from its trace.
            trace: where everything is written down.
            budget: how much may be used.
            journal: what undo takes from.
            snapshots: a directory for snapshots of the workspace.
            limits: of actions.
            tools: ``auto``, ``native`` or ``text``.
            max_malformed: so many malformed replies in a row end the run.
            fresh_home: whether the workspace is not the one of the trace, so that it is to be restored.
        """
        self.home = home
        self.state = state
        self._model = model
        self._trace = trace
        self._budget = budget
        self._journal = journal
        self._snapshots = snapshots
        self._tools = tools
        self._max_malformed = max_malformed
        self._fresh_home = fresh_home
        self._rewards = 0
        self._actions = actions_for(home)
        self._asking = Asking(fast_model, state, self.emit)
        self._conversation = Conversation(state, model, self._asking)
        self._context = Context(
            home=home,
            journal=journal,
            ask=self._asking.ask,
            limits=limits or Limits(),
            seconds_left=budget.working_seconds_left,
        )

    def emit(self, kind: str, **fields: Any) -> None:
        """Write an event into the trace, and change the state as it says."""
        self.state.apply(self._trace.add(kind, **fields))

    def run(self) -> Outcome:
        """Work until the end; an answer is handed in on every way out."""
        try:
            self.prepare()
            while self.state.end is None:
                self._step()
        except BudgetSpent as error:
            self._end(error.cap, detail=str(error))
        except ModelError as error:
            self._end("model", detail=str(error))
        except HomeLostError as error:
            self._end("home", detail=str(error))
        except Stopped as error:
            self._end("time" if str(error) == "time" else "stopped", detail=str(error))
        except KeyboardInterrupt:
            self._end("stopped", detail="interrupted")
        except Exception:  # noqa: BLE001 - whatever it is, an answer is handed in
            self._end("failure", detail=traceback.format_exc())
        return self.outcome()

    def prepare(self) -> None:
        """Make sure that the workspace is what the state says, and finish what a killed run had begun."""
        state = self.state
        if state.handed_in is not None:
            self._end("final answer", answer=state.handed_in)
            return
        if state.snapshot is None:
            self.emit("snapshot", name=self.home.snapshot(self._snapshots))
        elif state.in_flight is not None or self._fresh_home:
            self.home.restore(self._snapshots, state.snapshot)
        if state.in_flight is not None:
            self._journal.rewind(state.in_flight.journal)
            self._again(state.in_flight)

    def outcome(self) -> Outcome:
        """Return how the run ended.

        Raises:
            ValueError: if it did not end yet.
        """
        end = self.state.end
        if end is None:
            raise ValueError("the run has not ended")
        return Outcome(end["reason"], end["answer"], end["detail"])

    def get_response(self, tail: str = "", only: str | None = None) -> Response:
        """Ask for one completion with the history until now, and read it.

        Args:
            tail: what else is said to the model at the end.
            only: the name of the one action that is allowed; None for all.
        """
        if self.state.waiting is not None:  # a killed run had it already
            return self._read(self.state.waiting)
        actions = {only: self._actions[only]} if only else self._actions
        task = prompt.task_text(self.state.task, self.home.root, self._budget_at_start())
        for left in reversed(range(_CONTEXT_TRIES)):
            native = self._native
            tools = prompt.native_tools(actions) if native else []
            header = prompt.system_text(self._actions, native=native)
            messages = self._conversation.messages(header, task, tail, tools)
            try:
                reply = self._model.complete(messages, purpose=STEP, tools=tools, stop=() if native else prompt.STOP)
            except ContextFull:
                if not left:
                    raise
            else:
                return self._read(reply)
        raise AssertionError

    def execute(self, response: Response) -> str:
        """Carry out the action of a response, or answer what is wrong with it; return the observation.

        Both are appended to the history.
        """
        parsed = response.parsed
        if parsed is None:
            return self._complain(response)
        self.emit(
            "action",
            fields={name: plain(text) for name, text in parsed.fields.items()},
            action=parsed.action,
            input=parsed.input,
            notes=list(parsed.notes),
            tool=response.tool,
            journal=self._journal.mark(),
        )
        assert self.state.in_flight is not None
        return self._carry_out(self.state.in_flight)

    def reply(self, message: str) -> str:
        """Take a message, and go on until a reply has no action in it or the work ends; return that text.

        The first message is the task.
        """
        if not self.state.task:
            self.emit("start", task=message, settings=None)
        else:
            self.emit("message", text=message)
        if self.state.snapshot is None:
            self.prepare()
        while self.state.end is None:
            if reached := self._budget.reached(self.state.steps):
                self._last_word(reached)
                break
            response = self.get_response()
            if not response.tries_to_act:
                self._complain(response)
                return response.reply.text
            self.execute(response)
            self._check_malformed()
        return self.outcome().answer

    @property
    def _native(self) -> bool:
        return self._tools != "text" and self._model.dialect.tools

    def _budget_at_start(self) -> str:
        return "Each observation says what is left of your budget." if self.state.steps else self._budget.line(0)

    def _step(self) -> None:
        if reached := self._budget.reached(self.state.steps):
            self._last_word(reached)
            return
        self.execute(self.get_response())
        self._check_malformed()

    def _check_malformed(self) -> None:
        if self.state.end is None and self.state.malformed_in_row >= self._max_malformed:
            self._end("malformed", detail=f"{self._max_malformed} replies in a row could not be acted on")

    def _last_word(self, reached: str) -> None:
        """Give the model one call for its final answer, then end."""
        response = self.get_response(prompt.last_call(reached), only=FINAL_ANSWER.name)
        if response.parsed is not None and response.parsed.action == FINAL_ANSWER.name:
            self.execute(response)
        if self.state.end is None:
            self._end(reached, detail="the limit was reached before a final answer")

    def _read(self, reply: Reply) -> Response:
        try:
            if reply.call is None:
                return Response(reply, parse(reply.text, self._actions))
            return self._read_call(reply, reply.call.name, reply.call.arguments)
        except MalformedReply as error:
            cut = "The reply ended at its token limit; write less at a time.\n" if reply.cut else ""
            how = ""
            if self._native and reply.call is None:
                how = "\nEnd the reply with a call of exactly one tool."
            return Response(reply, None, complaint=f"{cut}{error.text}{how}")

    def _read_call(self, reply: Reply, name: str, arguments: str) -> Response:
        action = next((each for each in self._actions.values() if each.tool_name == name), None)
        if action is None:
            known = ", ".join(each.tool_name for each in self._actions.values())
            raise MalformedReply(f"There is no tool {name!r}. The tools are: {known}.")
        if reply.cut:
            raise MalformedReply(f"The call of {name} was cut off and was not carried out.")
        given, notes = parse_input(action, arguments or "{}")
        return Response(reply, Parsed(parse_fields(reply.text), action.name, given, notes), tool=name)

    def _complain(self, response: Response) -> str:
        reply = response.reply
        shown = reply.text if reply.call is None else f"{reply.text}\n[call] {reply.call.name}({reply.call.arguments})"
        text = f"{response.complaint}\n{self._budget.line(self.state.steps)}"
        self.emit("malformed", reply=shown.strip(), text=text)
        return text

    def _again(self, action: InFlight) -> None:
        """Carry out what a killed run had begun, unless it keeps killing the agent."""
        if action.attempt >= _REPEATS:
            said = (
                "The agent was stopped each time that this was carried out; it was not tried again, and the workspace"
            )
            self._observe(action, f"{said} is as it was before.")
            return
        self.emit(
            "action",
            fields=action.fields,
            action=action.action,
            input=action.input,
            notes=list(action.notes),
            tool=action.tool,
            journal=action.journal,
        )
        assert self.state.in_flight is not None
        self._carry_out(self.state.in_flight)

    def _carry_out(self, action: InFlight) -> str:
        handed_in = None
        try:
            said = self._actions[action.action].run(self._context, action.input)
            if action.action == FINAL_ANSWER.name:
                handed_in = str(action.input[FINAL_ANSWER.arguments[0].name])
        except HomeLostError:
            raise
        except HomeError as error:
            said = f"Error: {error}"
        except ModelError as error:
            said = f"Error: the model that this action asks could not be asked: {error}"
        except (BudgetSpent, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a mistake in one action is no reason to end the work
            self.emit("mistake", where=action.action, traceback=traceback.format_exc())
            said = f"Error: {action.action} failed: {type(error).__name__}: {error}"
        text = self._observe(action, said, handed_in)
        if handed_in is not None:
            self._end("final answer", answer=handed_in)
        elif self.home.finished:
            self._end("final answer", detail="the home has ended the episode")
        return text

    def _observe(self, action: InFlight, said: str, handed_in: str | None = None) -> str:
        notes = [f"[{note}]" for note in action.notes]
        line = self._budget.line(self.state.steps + 1)
        text = "\n".join([*notes, said, line])
        self._note_rewards()
        self.emit("observation", text=text, snapshot=self._snapshot(action.action), handed_in=handed_in)
        return text

    def _note_rewards(self) -> None:
        """Write down the rewards of attempts, where the home has them; the model is told what the scorer says."""
        rewards: list[float] = getattr(self.home, "rewards", [])
        for reward in rewards[self._rewards :]:
            self.emit("reward", reward=reward)
        self._rewards = len(rewards)

    def _snapshot(self, action: str) -> str | None:
        """Keep the workspace after an action; None if it cannot have changed, or cannot be kept."""
        if action in _NO_WRITES:
            return None
        try:
            return self.home.snapshot(self._snapshots)
        except HomeLostError:
            raise
        except (HomeError, OSError) as error:
            self.emit("mistake", where="snapshot", traceback=str(error))
            return None

    def _end(self, reason: str, answer: str | None = None, detail: str = "") -> None:
        """End the run; unless the model did, hand in what is best known of the work."""
        if self.state.end is not None:
            return
        if answer is None:
            answer = self.state.memory.plan or f"No final answer was given: {reason}."
            try:
                if not self.home.finished:
                    self.home.finish(answer)
            except Exception:  # noqa: BLE001 - the run ends all the same, and the trace says why
                detail += f"\nThe answer could not be handed in:\n{traceback.format_exc()}"
            self._note_rewards()
        final = getattr(self.home, "final", None)
        self.emit("end", reason=reason, answer=answer, detail=detail, final=dict(final) if final else None)
