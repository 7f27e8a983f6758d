"""A model that stands in for a weak chat model asked for Rust programs, so that the task runs offline.

It rewards what works with real models: extracting the program from the text around it, sampling more than
once, running public tests, feeding errors back, voting. It has a pool of programs and recognises problems by
their statements. Whatever is measured with it is labelled stand-in; all odds are ours (``program_choice``).

====================  ===============================================================
``model``             from a request to a completion
``prompt_reading``    which problem a conversation states, what it asks for and shows
``program_choice``    which program it gets
``reply_text``        in which words
``problems``          problems and programs
====================  ===============================================================
"""
