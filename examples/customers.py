"""Writes customers.csv and customers_later.csv: customers of a telephone company, and whether they left.

The tables are drawn at random, so their effects and their drift are known. In the second one, of a later month, there
is a new plan, prices have risen, and one office no longer asks for the age.
"""

import numpy as np
import pandas as pd


def customers(n: int, seed: int, *, later: bool) -> pd.DataFrame:
    """Return n customers, of whom about one in six left."""
    rng = np.random.default_rng(seed)
    plan = rng.choice(["basic", "family", "student", "premium"], n, p=[0.5, 0.25, 0.15, 0.1])
    months = np.ceil(rng.exponential(24.0, n))
    age = np.round(rng.normal(45.0, 15.0, n)).clip(18, 95)
    price = np.array([{"basic": 15, "family": 40, "student": 10, "premium": 60}[each] for each in plan])
    price = np.round(price * rng.lognormal(0.0, 0.2, n), 2)
    calls = rng.poisson(1.0 + 2.0 * (rng.uniform(size=n) < 0.2), n)
    office = rng.choice(["north", "south", "east", "west"], n)

    # New customers leave for the price, old ones after many calls to the hotline; students rarely leave.
    log_odds = -3.0 + 0.05 * (price - 20.0) * (months < 12) + 0.7 * calls - 1.0 * (plan == "student")
    left = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-log_odds))

    if later:
        plan = np.where(rng.uniform(size=n) < 0.08, "eco", plan)
        price = np.round(price * 1.15, 2)
        age = np.where((office == "west") & (rng.uniform(size=n) < 0.9), np.nan, age)
    age = np.where(rng.uniform(size=n) < 0.05, np.nan, age)
    columns = {"plan": plan, "months": months, "age": age, "price": price, "calls": calls, "office": office}
    return pd.DataFrame(columns | {"left": np.where(left, "yes", "no")})


customers(2000, 0, later=False).to_csv("customers.csv", index=False)
customers(600, 1, later=True).to_csv("customers_later.csv", index=False)
