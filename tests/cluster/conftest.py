"""Clusters with processes of their own: one for all tests that leave it as it was."""

from contextlib import contextmanager

import pytest


@pytest.fixture(scope="session")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster, timeout=30) as client:
        yield client


@pytest.fixture
def threads():
    """Return a cluster of a number of threads of this process, and its client."""
    distributed = pytest.importorskip("distributed")

    @contextmanager
    def started(n_workers, **options):
        options |= {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with (
            distributed.LocalCluster(n_workers=n_workers, **options) as cluster,
            distributed.Client(cluster, timeout=30) as client,
        ):
            yield cluster, client

    return started


@pytest.fixture
def on_workers(monkeypatch):
    """No data are so few that a fit gathers them."""
    from mopn.dask import fitting

    monkeypatch.setattr(fitting, "IN_MEMORY", 0)
