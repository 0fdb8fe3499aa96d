"""Generated calls of every public interface, in search of faults: from the root of the repository ::

    make fuzz                                   # 50,000 calls, as many processes as there are cores
    python -m tests.fuzz --calls 2000 --seed 1  # another campaign
    python -m tests.fuzz --only "X values"      # one category
    python -m tests.fuzz --case 1234            # one call, with its traceback

A campaign is a seed. Call number i is a function of (seed, i) alone, whatever ran before it: ``campaign.py`` draws a
category from it, and the category draws an interface, valid arguments, and an oddity.

``interfaces.py``, ``samples.py``
    The calls, with valid arguments. The table comes from the public names: a new estimator or solver is in it at
    once, with the options that its docstring lists; solvers meet the problems that offer the oracles they need.
``changes.py``, ``arrays.py``
    The oddities of an argument: its shape, type, storage or values; and the oddities that must be refused.
``relations.py``
    Calls that must agree: other storage, samples one by one, a call after Ctrl-C.
``checks.py``
    The conditions on every call that returns, and the outcomes of a call; the kinds are listed there.
``campaign.py``, ``__main__.py``
    Each call in a fork with limits of time and memory; the tables.
"""
