"""The header of the other examples here: the README's network of digits in integers, in the folder of each.

Prints the accuracy of the integers, which are computed here as on the device, the changes they make, and the
certificate.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mopn.estimators import MultiOutputPNClassifier
from mopn.export import to_c


def main() -> None:
    """Fit the network and write its header."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    folders = [here / name for name in ("digits", "micropython", "qemu")]
    parser.add_argument("--out", type=Path, nargs="+", default=folders, help="folders for digits.h (default: all)")
    args = parser.parse_args()
    X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = MultiOutputPNClassifier(ridge=0, tol=1e-3).fit(X_train, y_train)
    for folder in args.out:
        integers = to_c(model, folder / "digits.h", name="digits", arithmetic="integer", X=X_train)
    print(f"{len(model.basis_)} units, proven within {model.relative_gap_:.2%} of the best objective of any size")
    print(f"test accuracy {(integers.predict(X_test) == y_test).mean():.1%}; {integers.agree(X_test)}")


if __name__ == "__main__":
    main()
