"""The distribution mopn-serving: mopn for machines that only load models and predict, by NumPy and SciPy alone.

``pip install ./serving`` in a checkout. The rest is as in mopn's pyproject.toml.
"""

from setuptools import setup
from setuptools.config.pyprojecttoml import read_configuration

config = read_configuration("../pyproject.toml")
project, packages = config["project"], config["tool"]["setuptools"]

setup(
    name="mopn-serving",
    version=project["version"],
    description="mopn without the dependencies of fits: loads models and predicts",
    license=project["license"],
    python_requires=project["requires-python"],
    install_requires=[need for need in project["dependencies"] if need.startswith(("numpy", "scipy"))],
    packages=packages["packages"],
    package_dir={name: f"../{folder}" for name, folder in packages["package-dir"].items()},
    package_data=packages["package-data"],
)
