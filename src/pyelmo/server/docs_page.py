"""The OpenAPI document as one plain page: no script, no network, for people who write a client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid #8888; border-radius: 4px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8884; }
h2 { margin-top: 2.5rem; }
"""
# What a request to each endpoint may look like; also the examples of the OpenAPI document.
EXAMPLES: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"model": "en", "input": ["A bank account.", "The bank of a river."]},
    "/embed": {"model": "en", "sentences": ["A bank account.", ["The", "river"]], "layers": "top"},
    "/predict": {"model": "en", "text": "The fish was jumping out of the ___.", "count": 3},
    "/score": {"model": "en", "sentences": ["The bank of the river."]},
    "/similarity": {"model": "en", "first": "the *bank* of a river", "second": "a *bank* account"},
    "/neighbours": {"sentence": "They sat on the *bank* of the river.", "count": 3},
    "/task/{name}": {"texts": ["Ann Lee lives in New York."]},
}


def render(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    info = document["info"]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>{escape(info["title"])} API</title><link rel="stylesheet" href="/docs.css"></head><body>',
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>",
        '<p>This page for programs: <a href="/openapi.json">openapi.json</a>. Errors have the form of '
        "OpenAI's API: <code>{&quot;error&quot;: {&quot;message&quot;: ...}}</code>.</p>",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += _operation(document, path, method.upper(), operation)
    return "".join([*parts, "</body></html>"])


def _operation(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2>"
    yield "".join(f"<p>{escape(text)}</p>" for text in operation.get("description", "").split("\n\n"))
    if "requestBody" in operation:
        yield _table("Request", document, operation["requestBody"]["content"]["application/json"]["schema"])
        if path in EXAMPLES:
            body = json.dumps(EXAMPLES[path], ensure_ascii=False)
            header = "-H 'Content-Type: application/json'"
            yield f"<pre>curl http://127.0.0.1:8000{escape(path)} {header} \\\n  -d '{escape(body, quote=False)}'</pre>"
    content = operation["responses"].get("200", {}).get("content", {})
    if "schema" in (answer := content.get("application/json", {})):
        yield _table("Answer", document, answer["schema"])


def _table(title: str, document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    fields = _resolve(document, schema).get("properties", {})
    if not fields:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_kind(field))}</td><td>{_default(field)}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in fields.items()
    )
    head = "<tr><th>field</th><th>type</th><th>default</th><th></th></tr>"
    return f"<h3>{title}</h3><table>{head}{rows}</table>"


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    target: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return target


def _kind(field: Mapping[str, Any]) -> str:
    """Return the type of a field in words."""
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(map(_kind, field["anyOf"])))
    if "enum" in field:
        return " or ".join(map(json.dumps, field["enum"]))
    if field.get("type") == "array" and "items" in field:
        return f"list of ({_kind(field['items'])})" if "anyOf" in field["items"] else f"list of {_kind(field['items'])}"
    return str(field.get("const") or field.get("type", "any"))


def _default(field: Mapping[str, Any]) -> str:
    return f"<code>{escape(json.dumps(field['default']))}</code>" if "default" in field else ""
