"""Flips of columns to other options: the fewest that turn a margin, by branch and bound.

A row has an option in each of its columns. A flip to another option s takes ``gains[s]`` from the margin, and two flips
s and t, of different columns, take ``pairs[s, t]`` more. Loops copy and add entries, as expressions over arrays take
the compiler twice as long.
"""

import numpy as np

from mopn.compiled.jit import inner, jit

# Greedy attacks of a row begin with each of so many single flips.
_STARTS = 32
# How the search for a row ends: no flips change its class, some do, or rounding or the limit of work leaves it open.
_PROVEN, _FOUND, _OPEN = range(3)


@jit()
def attack_flips(P, lines, starts, allowed, current, margins, tolerances, found, picks):  # type: ignore[no-untyped-def]
    """Lower ``found`` (n,) where flips, one after the other, turn the margin of a row by more than rounding.

    P (T, T) is the quadratic part of the margin between the T options, ``lines`` (n, T) are its slopes, ``tolerances``
    (n, C + 1) rounding errors after so many flips. The options of column j begin at ``starts[j]``; ``allowed`` (T,) are
    the targets of flips, ``current`` (n, C) the categories of the rows, ``picks`` (n, C) the flips found, or -1.
    """
    for i in range(len(margins)):
        columns, options, gains, pairs = _game(P, lines[i], starts, allowed, current[i])
        if not _is_finite(margins[i], gains, pairs):
            continue
        trial = np.empty(current.shape[1], np.intp)
        for first in np.argsort(-gains)[:_STARTS]:
            margin, left, at = margins[i], gains.copy(), first
            for count in range(1, min(found[i], current.shape[1] + 1)):
                margin -= left[at]
                trial[count - 1] = at
                if margin < -tolerances[i, count]:
                    found[i] = count
                    _pick(trial, count, columns, options, picks[i])
                    break
                for s in range(len(left)):
                    left[s] = -np.inf if columns[s] == columns[at] else left[s] + pairs[at, s]
                at = left.argmax()
                if left[at] == -np.inf:
                    break


@jit()
def prove_flips(P, lines, starts, allowed, current, margins, tolerances, most_work, proven, found, picks):  # type: ignore[no-untyped-def]
    """Lower ``proven`` (n,) to the largest number of flips that leave the margin above rounding, as far as is proven.

    It stays below ``found``, which is lowered where the search meets fewer flips. A row reads about ``most_work``
    entries at most, a nanosecond each. All else as for :func:`attack_flips`.
    """
    for i in range(len(margins)):
        most = min(proven[i], found[i] - 1)
        columns, options, gains, pairs = _game(P, lines[i], starts, allowed, current[i])
        if not _is_finite(margins[i], gains, pairs):
            proven[i] = 0
            continue
        heads = np.zeros(current.shape[1] + 1, np.intp)
        for j in columns:
            heads[j + 1] += 1
        for j in range(current.shape[1]):
            heads[j + 1] += heads[j]
        bonus = _bonus(pairs, columns, current.shape[1], most)
        trial, work = np.empty(most, np.intp), np.array([most_work])
        proven[i] = most
        for r in range(1, most + 1):
            state = _search(r, margins[i], tolerances[i, r], heads, gains, pairs, bonus, trial, work)
            if state == _FOUND:
                found[i] = r
                _pick(trial, r, columns, options, picks[i])
            if state != _PROVEN:
                proven[i] = r - 1
                break


@inner()
def _game(P, line, starts, allowed, current):  # type: ignore[no-untyped-def]
    """Return the columns (N,), options (N,), gains (N,) and pairs (N, N) of all flips of a row."""
    T, C = len(line), len(current)
    columns, options, N = np.empty(T, np.intp), np.empty(T, np.intp), 0
    for j in range(C):
        for t in range(starts[j], starts[j + 1]):
            if allowed[t] and t != current[j]:
                columns[N], options[N] = j, t
                N += 1
    columns, options = columns[:N], options[:N]
    gains, pairs = np.empty(N), np.zeros((N, N))
    for a in range(N):
        s, c = options[a], current[columns[a]]
        gains[a] = line[c] - line[s] - (P[s, s] - 2.0 * P[s, c] + P[c, c])
        for b in range(a):
            if columns[a] != columns[b]:
                t, e = options[b], current[columns[b]]
                pairs[a, b] = pairs[b, a] = -2.0 * (P[s, t] - P[s, e] - P[c, t] + P[c, e])
    return columns, options, gains, pairs


@inner()
def _is_finite(margin, gains, pairs):  # type: ignore[no-untyped-def]
    nothing = 0.0 * margin  # NaN, unless it is finite
    for a in range(len(gains)):
        nothing += 0.0 * gains[a]
        for b in range(len(gains)):
            nothing += 0.0 * pairs[a, b]
    return nothing == 0.0


@inner()
def _bonus(pairs, columns, C, most):  # type: ignore[no-untyped-def]
    """Return half of what each flip can gain at most by pairs with 0, ..., most - 1 flips of other columns."""
    bonus, best = np.zeros((len(pairs), max(most, 1))), np.empty(C)
    for s in range(len(pairs)):
        best[:] = 0.0
        for t in range(len(pairs)):
            best[columns[t]] = max(best[columns[t]], pairs[s, t])
        ascending = np.argsort(best)
        for count in range(1, most):
            bonus[s, count] = bonus[s, count - 1] + 0.5 * best[ascending[C - count]]
    return bonus


@inner()
def _search(r, margin, tolerance, heads, gains, pairs, bonus, trial, work):  # type: ignore[no-untyped-def]
    """Return whether r flips, at most, turn a margin; ``trial`` then holds them. Depth first.

    A set gains no more than the sum of gains with bonus, as a pair gives half of its gain to either. So the set begins
    with each column, the best first, until even the best ones gain too little.
    """
    N, C = len(gains), len(heads) - 1
    levels, margins, flips, places = np.empty((r, N)), np.empty(r), np.empty((r, N), np.intp), np.empty((r, N), np.intp)
    order, sizes = np.empty((r, C), np.intp), np.empty(r, np.intp)
    counts, tried = np.empty(r, np.intp), np.zeros(r, np.intp)
    margins[0], sizes[0] = margin, C
    for s in range(N):
        levels[0, s] = gains[s]
    for j in range(C):
        order[0, j] = j
    counts[0] = _begin(margin, tolerance, heads, gains, bonus[:, :r], order[0], flips[0], places[0])
    level, state = 0, _PROVEN
    while level >= 0:
        if tried[level] == counts[level]:
            level -= 1
            continue
        s, place = flips[level, tried[level]], places[level, tried[level]]
        tried[level] += 1
        trial[level] = s
        after = margins[level] - levels[level, s]
        if after < -tolerance:
            return _FOUND
        if not after > tolerance:
            state = _OPEN
        if level + 1 < r:
            work[0] -= N
            if work[0] < 0:
                return _OPEN
            rest = order[level, place + 1 : sizes[level]]
            level += 1
            left = order[level, : len(rest)]
            for j in range(len(rest)):
                left[j] = rest[j]
            for t in range(N):
                levels[level, t] = levels[level - 1, t] + pairs[s, t]
            margins[level], sizes[level], tried[level] = after, len(rest), 0
            counts[level] = _begin(
                after, tolerance, heads, levels[level], bonus[:, : r - level], left, flips[level], places[level]
            )
    return state


@inner()
def _begin(margin, tolerance, heads, gains, bonus, order, flips, places):  # type: ignore[no-untyped-def]
    """List the flips that a set of ``bonus.shape[1]`` may begin with, and their places; ``order`` is sorted."""
    budget, count = bonus.shape[1], 0
    best = np.zeros(len(order))
    for place, j in enumerate(order):
        for s in range(heads[j], heads[j + 1]):
            best[place] = max(best[place], gains[s] + bonus[s, -1])
    sort, columns, sizes = np.argsort(-best), order.copy(), best.copy()
    for place, j in enumerate(sort):
        order[place], best[place] = columns[j], sizes[j]
    for place in range(len(order)):
        rest = 0.0
        for j in range(place + 1, min(place + budget, len(order))):
            rest += best[j]
        if margin - best[place] - rest > tolerance:
            break
        for s in range(heads[order[place]], heads[order[place] + 1]):
            if not margin - (gains[s] + bonus[s, -1]) - rest > tolerance:
                flips[count], places[count] = s, place
                count += 1
    return count


@inner()
def _pick(flips, count, columns, options, picks):  # type: ignore[no-untyped-def]
    picks[:] = -1
    for s in flips[:count]:
        picks[columns[s]] = options[s]
