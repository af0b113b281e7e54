"""How much of the suite runs."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--largest", type=int, default=1 << 20, help="elements at most (default 2**20)")


@pytest.fixture
def largest(request: pytest.FixtureRequest) -> int:
    return int(str(request.config.getoption("--largest")))
