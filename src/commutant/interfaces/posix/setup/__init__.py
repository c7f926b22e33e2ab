"""How a test builds a state: the calls that only set-ups make, by area, and the state as a sequence of them.

Files and pipes under construction have small numbers of their own (`_files`, `_pipes`), which no call under test sees,
and are kept alive by the set-up: a file by a name outside of all directories, a pipe by both of its ends. In the end
the set-up lets go of them.
"""
