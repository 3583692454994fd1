"""A comparison for people and for builds: Markdown for a pull request, JUnit for a CI server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

LISTED = 50
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Json = Mapping[str, Any]


def markdown(told: Json) -> str:
    """Return a `resweep.compare/1` object as Markdown."""
    before, after = told["before"], told["after"]
    depths = f"context_k {before['context_k']} before and {after['context_k']} after"
    lines = [
        f"### resweep: {_cell(after['name'])} against {_cell(before['name'])}",
        "",
        *(f"- {'passed' if gate['ok'] else '**failed**'}: {_cell(gate['text'])}" for gate in told["gates"]),
        *([""] if told["gates"] else []),
        f"{told['n']} cases, {told['n_gained']} gained, {told['n_lost']} lost, at {depths}.",
        "",
        "| measure | before | after | difference (95 %) | |",
        "|---|--:|--:|--:|---|",
        *(_row(name, one) for name, one in told["measures"].items()),
        *_cases("Lost", told["lost"]),
        *_cases("Gained", told["gained"]),
        *([""] if told["notes"] else []),
        *(f"- {_cell(note)}" for note in told["notes"]),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, one: Json) -> str:
    word = "worse" if one["high"] < 0 else "better" if one["low"] > 0 else "not clear"
    if not one["fell"] and not one["rose"]:
        word = "the same"
    return (
        f"| {name} | {one['before']:.3f} | {one['after']:.3f} | {one['difference']:+.3f} "
        f"({one['low']:+.3f} to {one['high']:+.3f}) | {word} |"
    )


def _cases(title: str, changes: Sequence[Json]) -> list[str]:
    if not changes:
        return []
    shown = [f"| {_cell(c['case_id'])} | {_cell(c['query'] or '')} | {_fell(c)} |" for c in changes[:LISTED]]
    more = [f"\n{len(changes) - LISTED} more are in the JSON."] if len(changes) > LISTED else []
    return [
        "",
        f"**{title}: {len(changes)}**",
        "",
        "| case | query | recall |",
        "|---|---|---|",
        *shown,
        *more,
    ]


def _fell(change: Json) -> str:
    return f"{change['before']:.2f} to {change['after']:.2f}"


def _cell(text: str) -> str:
    """Return a text that stays in its cell and makes no markup."""
    flat = " ".join(str(text).split())[:200]
    return re.sub(r"([\\`*_{}\[\]<>|#&~])", r"\\\1", flat)


def junit(told: Json) -> str:
    """Return a `resweep.compare/1` object as JUnit XML: a test for each gate, and the figures as output."""
    gates = told["gates"] or [{"name": "compare", "ok": True, "text": "no limit was set"}]
    failed = sum(not gate["ok"] for gate in gates)
    suite = Xml.Element("testsuite", name="resweep compare", tests=str(len(gates)), failures=str(failed))
    for gate in gates:
        case = Xml.SubElement(suite, "testcase", classname="resweep.compare", name=gate["name"])
        if not gate["ok"]:
            failure = Xml.SubElement(case, "failure", message=_clean(gate["text"]))
            lines = (f"{c['case_id']}: {c['query'] or ''} ({_fell(c)})" for c in told["lost"])
            failure.text = _clean("\n".join(lines))
    Xml.SubElement(suite, "system-out").text = _clean(markdown(told))
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
