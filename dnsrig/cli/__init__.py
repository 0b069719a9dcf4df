"""The command line: one file a command.

A command is a module of this folder with a function ``command`` (its docstring is the help) and, where its name is not
the module's, ``NAME``. Standard output is data; progress and prose go to standard error.
"""
