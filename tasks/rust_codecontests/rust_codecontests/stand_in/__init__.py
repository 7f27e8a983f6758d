"""A stand-in for a weak chat model that writes Rust programs, so that the task runs offline.

The stand-in recognises problems by their statements, and answers with programs from a pool. It rewards methods that
work with real models: extracting the program from the surrounding text, sampling several answers, running the public
tests, feeding errors back, and voting. We chose all probabilities (``program_choice``). Every result measured with the
stand-in is therefore labelled as such.

====================  ==============================================================================
``model``             turn a request into a completion
``prompts``           find the problem, the request and the shown program in a conversation
``program_choice``    choose the program for a reply
``reply_text``        write the text of a reply
``problems``          problems and their programs
====================  ==============================================================================
"""
