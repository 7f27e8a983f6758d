#!/usr/bin/env bash
# Runs the agent in a container of METR's workbench: the task is in /home/agent/instructions.txt, the answer goes to
# /home/agent/submission.txt, which exists from the start, whatever happens. Started again, it resumes a run that was
# killed. Arguments are those of `mlab-agent`; `main.sh --model NAME --max-time 2h`, for example.
set -u

# The key of the model's server. What the environment has goes first, and is the better place: this file lies in the
# container, where the scripts that the agent writes can read it.
OPENAI_API_KEY="${OPENAI_API_KEY:-}"
MODEL="${MLAB_AGENT_MODEL:-gpt-4.1}"

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
home="${MLAB_AGENT_HOME:-/home/agent}"
environment="${MLAB_AGENT_VENV:-/var/tmp/mlab-agent-venv}"
submission="$home/submission.txt"
(set -C; printf 'The agent ended before it gave an answer.' > "$submission") 2> /dev/null # unless there is one

works() { PYTHONPATH="$here/src" "$1" -c 'import sys, cyclopts, httpx2, json_repair, openai, pydantic; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; }

python=""
for candidate in "${MLAB_AGENT_PYTHON:-}" python3 python "$environment/bin/python"; do
    if [ -n "$candidate" ] && works "$candidate"; then python="$candidate"; break; fi
done
if [ -z "$python" ]; then # needs the package index, so a task without network should bring the packages
    python="$environment/bin/python"
    python3 -m venv "$environment" && "$python" -m pip install --quiet "cyclopts>=5" "httpx2>=2" "json-repair>=0.50" "openai>=1.50" "pydantic>=2.4" && works "$python" || {
        echo "main.sh: needs Python 3.11 or newer with cyclopts, httpx2, json-repair, openai and pydantic, and could not install them" >&2
        exit 2
    }
fi

command -v git > /dev/null || { echo "main.sh: needs git, which keeps the snapshots: install it" >&2; exit 2; }
export OPENAI_API_KEY
case " $* " in *" --model"*) ;; *) set -- --model "$MODEL" "$@" ;; esac
PYTHONPATH="$here/src${PYTHONPATH:+:$PYTHONPATH}" exec "$python" -P -m mlab_agent.metr "$@"
