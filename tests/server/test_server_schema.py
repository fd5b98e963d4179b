"""Schemathesis over the OpenAPI document: whatever fits or misses it, no request makes the server fail.

`ELMO_SCHEMA_CASES=10000 pytest tests/server/test_server_schema.py` sends so many requests instead of a few.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import replace

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from pyelmo.server.app import create_app

CASES = int(os.environ.get("ELMO_SCHEMA_CASES", "120"))
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]


def test_no_request_makes_the_server_fail(app):
    # On a public address any host name is accepted, such as that of the test client.
    public = replace(app.state.pyelmo.settings, host="0.0.0.0")
    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(public, app.state.pyelmo))
    operations = [result.ok() for result in schema.get_all_operations()]
    posts = [operation for operation in operations if operation.method == "post"]
    statuses: Counter[int] = Counter()
    for operation in operations:
        for mode in GenerationMode:
            count = CASES // (2 * len(posts)) if operation in posts else 5  # the others take no input

            @settings(
                max_examples=count, deadline=None, database=None, derandomize=CASES < 1000,
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            @given(case=operation.as_strategy(generation_mode=mode))
            def send(case):
                answer = case.call()
                statuses[answer.status_code] += 1
                case.validate_response(answer, checks=CHECKS)

            with contextlib.suppress(Unsatisfiable):  # nothing can be wrong in a request without input
                send()
    print(f"{statuses.total()} requests: {dict(sorted(statuses.items()))}")
    assert not any(status >= 500 for status in statuses)
    assert statuses[200] > CASES // 20
    assert statuses[400] > CASES // 20
