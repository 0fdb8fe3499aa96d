"""Flips of columns to other options: the fewest that turn a margin, by branch and bound.

A row has one option in each of its columns. A flip to another option s takes ``gains[s]`` from the margin. Two flips s
and t, of different columns, take ``pairs[s, t]`` more. Loops copy and add entries, as expressions over arrays take the
compiler twice as long.
"""

import numpy as np

from mopn.compiled.jit import inner, jit

# Greedy attacks of a row, each from another first flip: the flips of the largest gains.
_MAX_GREEDY_STARTS = 32
# The search for a row ends without flips that change its class, ...
_PROVEN = 0
# ... with such flips, ...
_FOUND = 1
# ... or undecided, by rounding or at the limit of work.
_OPEN = 2


@jit()
def attack_flips(P, lines, starts, allowed, current, margins, tolerances, found, picks):  # type: ignore[no-untyped-def]
    """Lower ``found`` (n,) where flips, one after the other, turn the margin of a row by more than rounding.

    P (T, T) is the quadratic part of the margin between the T options, and ``lines`` (n, T) are its slopes.
    ``tolerances`` (n, C + 1) are the rounding errors after 0, ..., C flips. The options of column j begin at
    ``starts[j]``; ``allowed`` (T,) are the targets of flips, ``current`` (n, C) the categories of the rows, and
    ``picks`` (n, C) the flips found, or -1.
    """
    for i in range(len(margins)):
        columns, options, gains, pairs = _game(P, lines[i], starts, allowed, current[i])
        if not _is_finite(margins[i], gains, pairs):
            continue
        chosen = np.empty(current.shape[1], np.intp)
        for first in np.argsort(-gains)[:_MAX_GREEDY_STARTS]:
            margin = margins[i]
            left = gains.copy()
            flip = first
            for count in range(1, min(found[i], current.shape[1] + 1)):
                margin -= left[flip]
                chosen[count - 1] = flip
                if margin < -tolerances[i, count]:
                    found[i] = count
                    _set_picks(chosen, count, columns, options, picks[i])
                    break
                _flip_greedily(flip, columns, pairs, left)
                flip = left.argmax()
                if left[flip] == -np.inf:
                    break


@inner()
def _flip_greedily(flip, columns, pairs, left):  # type: ignore[no-untyped-def]
    """Update the gains that are ``left`` after a flip: -inf in its own column."""
    for s in range(len(left)):
        if columns[s] == columns[flip]:
            left[s] = -np.inf
        else:
            left[s] = left[s] + pairs[flip, s]


@jit()
def prove_flips(P, lines, starts, allowed, current, margins, tolerances, most_work, proven, found, picks):  # type: ignore[no-untyped-def]
    """Lower ``proven`` (n,) to the largest number of flips that provably leave the margin above rounding.

    It stays below ``found``, which is lowered where the search meets fewer flips. A row reads about ``most_work``
    entries at most, a nanosecond each. The other arguments are the same as for :func:`attack_flips`.
    """
    for i in range(len(margins)):
        most = min(proven[i], found[i] - 1)
        columns, options, gains, pairs = _game(P, lines[i], starts, allowed, current[i])
        if not _is_finite(margins[i], gains, pairs):
            proven[i] = 0
            continue
        heads = _column_heads(columns, current.shape[1])
        bonus = _half_pair_gains(pairs, columns, current.shape[1], most)
        chosen = np.empty(most, np.intp)
        work = np.array([most_work])
        proven[i] = most
        for r in range(1, most + 1):
            state = _search(r, margins[i], tolerances[i, r], heads, gains, pairs, bonus, chosen, work)
            if state == _FOUND:
                found[i] = r
                _set_picks(chosen, r, columns, options, picks[i])
            if state != _PROVEN:
                proven[i] = r - 1
                break


@inner()
def _game(P, line, starts, allowed, current):  # type: ignore[no-untyped-def]
    """Return the columns (N,), options (N,), gains (N,) and pairs (N, N) of all flips of a row."""
    columns = np.empty(len(line), np.intp)
    options = np.empty(len(line), np.intp)
    N = 0
    for j in range(len(current)):
        for t in range(starts[j], starts[j + 1]):
            if allowed[t] and t != current[j]:
                columns[N] = j
                options[N] = t
                N += 1
    columns = columns[:N]
    options = options[:N]

    gains = np.empty(N)
    pairs = np.zeros((N, N))
    for a in range(N):
        s = options[a]
        c = current[columns[a]]
        gains[a] = line[c] - line[s] - (P[s, s] - 2.0 * P[s, c] + P[c, c])
        for b in range(a):
            if columns[a] != columns[b]:
                t = options[b]
                e = current[columns[b]]
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
def _column_heads(columns, C):  # type: ignore[no-untyped-def]
    """Return where the flips of each column begin (C + 1,); the number of flips comes last."""
    heads = np.zeros(C + 1, np.intp)
    for j in columns:
        heads[j + 1] += 1
    for j in range(C):
        heads[j + 1] += heads[j]
    return heads


@inner()
def _half_pair_gains(pairs, columns, C, most):  # type: ignore[no-untyped-def]
    """Return half of the most that each flip gains by pairs with 0, ..., most - 1 flips of other columns."""
    bonus = np.zeros((len(pairs), max(most, 1)))
    best = np.empty(C)
    for s in range(len(pairs)):
        best[:] = 0.0
        for t in range(len(pairs)):
            best[columns[t]] = max(best[columns[t]], pairs[s, t])
        ascending = np.argsort(best)
        for count in range(1, most):
            bonus[s, count] = bonus[s, count - 1] + 0.5 * best[ascending[C - count]]
    return bonus


@inner()
def _search(r, margin, tolerance, heads, gains, pairs, bonus, chosen, work):  # type: ignore[no-untyped-def]
    """Return whether at most r flips turn a margin; ``chosen`` then holds them. Depth first.

    A set gains no more than the sum of gains with bonus, as a pair gives half of its gain to each of the two. So each
    column in turn begins the set, the best first, until even the best ones gain too little.
    """
    N = len(gains)
    C = len(heads) - 1
    # One row per depth: gains, margin, the order of columns, and the flips to try with their places in the order.
    gains_at = np.empty((r, N))
    margins = np.empty(r)
    flips = np.empty((r, N), np.intp)
    places = np.empty((r, N), np.intp)
    order = np.empty((r, C), np.intp)
    sizes = np.empty(r, np.intp)
    counts = np.empty(r, np.intp)
    tried = np.zeros(r, np.intp)

    margins[0] = margin
    sizes[0] = C
    for s in range(N):
        gains_at[0, s] = gains[s]
    for j in range(C):
        order[0, j] = j
    counts[0] = _list_first_flips(margin, tolerance, heads, gains, bonus[:, :r], order[0], flips[0], places[0])
    depth = 0
    state = _PROVEN
    while depth >= 0:
        if tried[depth] == counts[depth]:
            depth -= 1
            continue
        s = flips[depth, tried[depth]]
        place = places[depth, tried[depth]]
        tried[depth] += 1
        chosen[depth] = s
        after = margins[depth] - gains_at[depth, s]
        if after < -tolerance:
            return _FOUND
        if not after > tolerance:
            state = _OPEN
        if depth + 1 < r:
            work[0] -= N
            if work[0] < 0:
                return _OPEN
            _descend(depth, s, place, pairs, gains_at, order, sizes)
            depth += 1
            margins[depth] = after
            tried[depth] = 0
            left = order[depth, : sizes[depth]]
            remaining = bonus[:, : r - depth]
            counts[depth] = _list_first_flips(
                after, tolerance, heads, gains_at[depth], remaining, left, flips[depth], places[depth]
            )
    return state


@inner()
def _descend(depth, s, place, pairs, gains_at, order, sizes):  # type: ignore[no-untyped-def]
    """Set the gains after flip s for the next depth, and its columns: those after ``place`` in the order."""
    sizes[depth + 1] = sizes[depth] - (place + 1)
    for j in range(sizes[depth + 1]):
        order[depth + 1, j] = order[depth, place + 1 + j]
    for t in range(len(pairs)):
        gains_at[depth + 1, t] = gains_at[depth, t] + pairs[s, t]


@inner()
def _list_first_flips(margin, tolerance, heads, gains, bonus, order, flips, places):  # type: ignore[no-untyped-def]
    """Set the flips that a set of ``bonus.shape[1]`` may begin with, and their places; sort ``order``; return a count.

    ``order`` has the columns, sorted by their best gain with bonus. A flip's place is the place of its column there.
    """
    set_size = bonus.shape[1]
    best = np.zeros(len(order))
    for place, j in enumerate(order):
        for s in range(heads[j], heads[j + 1]):
            best[place] = max(best[place], gains[s] + bonus[s, -1])
    _sort_descending(order, best)

    count = 0
    for place in range(len(order)):
        rest = 0.0
        for j in range(place + 1, min(place + set_size, len(order))):
            rest += best[j]
        if margin - best[place] - rest > tolerance:
            break
        for s in range(heads[order[place]], heads[order[place] + 1]):
            if not margin - (gains[s] + bonus[s, -1]) - rest > tolerance:
                flips[count] = s
                places[count] = place
                count += 1
    return count


@inner()
def _sort_descending(order, best):  # type: ignore[no-untyped-def]
    """Sort the columns ``order`` and their sizes ``best``, the largest first."""
    ranks = np.argsort(-best)
    columns = order.copy()
    sizes = best.copy()
    for place, rank in enumerate(ranks):
        order[place] = columns[rank]
        best[place] = sizes[rank]


@inner()
def _set_picks(flips, count, columns, options, picks):  # type: ignore[no-untyped-def]
    """Set the options that the first ``count`` flips lead to; -1 in other columns."""
    picks[:] = -1
    for s in flips[:count]:
        picks[columns[s]] = options[s]
