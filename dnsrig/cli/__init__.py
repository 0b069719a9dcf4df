"""The command line: one file for each command.

A command is a module of this folder with a function ``command``, whose docstring is the help, and a function ``add``,
which registers it. Standard output is data; progress and prose go to standard error.
"""
