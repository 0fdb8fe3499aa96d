"""Clusters with processes of their own: one for all tests that leave it as it was."""

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
def on_workers(monkeypatch):
    """No data are so few that a fit gathers them."""
    monkeypatch.setattr("mopn.dask.fitting.IN_MEMORY", 0)
