"""OTLP traces of other instrumentations: what counts as a retrieval, and what was lost on the way."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from resweep.domain.batch import encode_batch
from resweep.domain.errors import InputError
from resweep.domain.event import RetrievalEvent
from resweep.domain.values import text_hash
from resweep.ingest.otlp import protobuf
from resweep.ingest.otlp.hits import from_attributes
from resweep.ingest.otlp.intake import Traces, read_traces, reply
from resweep.ingest.otlp.names import FIELDS
from resweep.ingest.otlp.span import Span

START = 1_697_982_593_201_336_000
NOW = 1_697_990_000.0  # unix seconds, two hours later
OPENINFERENCE = {"openinference.span.kind": "RETRIEVER", "input.value": "how long do refunds take"}


def any_value(value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value}


def span(attributes: Mapping[str, object], **more: object) -> dict[str, object]:
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "name": "retrieve",
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": str(START + 40_000_000),
        "attributes": [{"key": k, "value": any_value(v)} for k, v in attributes.items()],
        **more,
    }


def request(*spans: dict[str, object], service: str = "bot") -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def as_json(*spans: dict[str, object], content: bool = False) -> Traces:
    return read_traces(
        json.dumps(request(*spans)).encode(), "json", {"bot": "c0ffee000000"}, NOW, content=content
    )


def as_protobuf(*spans: dict[str, object]) -> Traces:
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "bot"
    scope = resource.scope_spans.add()
    for raw in spans:
        one = scope.spans.add(name=str(raw["name"]), start_time_unix_nano=START)
        one.end_time_unix_nano = START + 40_000_000
        one.trace_id, one.span_id = bytes.fromhex(str(raw["traceId"])), bytes.fromhex(str(raw["spanId"]))
        one.dropped_attributes_count = int(str(raw.get("droppedAttributesCount", 0)))
        for attribute in raw["attributes"]:  # type: ignore[attr-defined]
            ((kind, value),) = attribute["value"].items()
            field = kind.replace("Value", "_value")
            plain = int(value) if kind == "intValue" else value
            setattr(one.attributes.add(key=attribute["key"]).value, field, plain)
    return read_traces(message.SerializeToString(), "protobuf", {"bot": "c0ffee000000"}, NOW)


def documents(n: int, first: int = 0, **parts: object) -> dict[str, object]:
    return {
        f"retrieval.documents.{i}.document.{part}": value
        for i in range(first, n)
        for part, value in {"id": f"d{i}", "score": 0.9 - i / 100, **parts}.items()
    }


def only(traces: Traces) -> RetrievalEvent:
    (event,) = traces.mapped.events
    return event


@pytest.mark.parametrize("read", [as_json, as_protobuf])
def test_an_openinference_span_is_a_retrieval(read: Any) -> None:
    """Ids, scores, sources, latency and trace, by rank; the service names the pipeline."""
    event = only(read(span({**OPENINFERENCE, **documents(3, metadata='{"source": "a.md", "tokens": 7}')})))
    assert (event.pipeline, event.config, event.returned) == ("bot", "c0ffee000000", 3)
    assert [(h.id, h.score, h.source, h.tokens, h.rank) for h in event.hits] == [
        ("d0", 0.9, "a.md", 7, None),
        ("d1", 0.89, "a.md", 7, None),
        ("d2", 0.88, "a.md", 7, None),
    ]
    assert event.latency_s == pytest.approx(0.04, abs=1e-6)
    assert (event.trace_id, event.query, event.truncated) == ("0af7651916cd43dd8448eb211c80319c", None, False)


@pytest.mark.parametrize("name", ["gen_ai.retrieval.top_k", "gen_ai.request.top_k"])
def test_the_otel_names_of_both_drafts_are_read(name: str) -> None:
    """The asked depth moved from one attribute to another."""
    listed = json.dumps([{"id": "a", "score": 0.5}, {"id": "b"}])
    attributes = {"gen_ai.operation.name": "retrieval", name: 5, "gen_ai.retrieval.documents": listed}
    event = only(as_json(span(attributes)))
    assert (event.asked, [h.id for h in event.hits], [h.score for h in event.hits]) == (
        5,
        ["a", "b"],
        [0.5, None],
    )


def test_a_span_that_dropped_attributes_is_truncated_not_short() -> None:
    """The default limit ate the kind, the query and the best 18 documents."""
    left = documents(50, first=18, metadata="{}", content="t")
    event = only(as_protobuf(span(left, droppedAttributesCount=74)))
    assert event.truncated
    assert (event.hits[0].id, event.hits[0].rank) == ("d18", 19)
    counts = as_protobuf(span(left, droppedAttributesCount=74)).batch.windows[0].counts
    assert (counts["retrievals"], counts["truncated"], counts.get("passages")) == (1, 1, None)


def test_documents_in_odd_order_keep_the_ranks_they_were_sent_with() -> None:
    """Text numbers, gaps, a missing score, a Python literal for metadata, a malformed index."""
    attributes = {
        "retrieval.documents.10.document.id": "k",
        "retrieval.documents.10.document.score": "0.40",
        "retrieval.documents.2.document.id": 7,
        "retrieval.documents.2.document.metadata": "{'source': 'a.md'}",
        "retrieval.documents.0.document.content": "only text",
        "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.x.document.id": "bad",
        "openinference.span.kind": "retriever",
    }
    traces = as_json(span(attributes))
    hits = only(traces).hits
    assert [h.id for h in hits] == [text_hash("only text"), "7", "k"]
    assert [(h.score, h.score_state) for h in hits] == [(0.9, "ok"), (None, "missing"), (0.4, "ok")]
    assert [h.rank for h in hits] == [1, 3, 11]
    assert (hits[1].source, traces.mapped.malformed, only(traces).truncated) == ("a.md", 1, False)


def test_one_bad_id_refuses_one_span() -> None:
    """Hex in mixed case, base64, and one that is neither: 99 of 100 go in, the reason is told."""
    hexed, raw = "0AF7651916cd43dd8448eb211c80319C", bytes.fromhex("0af7651916cd43dd8448eb211c80319c")
    based = base64.b64encode(raw).decode()
    based_span = base64.b64encode(bytes.fromhex("b7ad6b7169203331")).decode()
    said = {**OPENINFERENCE, **documents(1)}
    spans = [span(said, traceId=hexed, startTimeUnixNano=START) for _ in range(50)]
    spans += [span(said, traceId=based, spanId=based_span) for _ in range(49)]
    spans.append(span(OPENINFERENCE, traceId="zz"))
    traces = as_json(*spans)
    assert (traces.mapped.spans, traces.refused, "traceId" in traces.why[0]) == (99, 1, True)
    assert {e.trace_id for e in traces.mapped.events} == {"0af7651916cd43dd8448eb211c80319c"}
    told = json.loads(reply(traces, "json"))
    assert told["partialSuccess"]["rejectedSpans"] == "1"
    response = ExportTraceServiceResponse.FromString(reply(traces, "protobuf"))
    assert response.partial_success.rejected_spans == 1


def test_numbers_as_text_nan_and_empty_values() -> None:
    """`{"intValue": "5"}` and `{"intValue": 5}` are 5; NaN is an invalid score; an empty value is missing."""
    raw = span({"openinference.span.kind": "RETRIEVER"})
    attributes: Any = raw["attributes"]
    attributes += [
        {"key": "gen_ai.retrieval.top_k", "value": {"intValue": 5}},
        {"key": "retrieval.documents.0.document.id", "value": {"stringValue": "a"}},
        {"key": "retrieval.documents.0.document.score", "value": {"doubleValue": "NaN"}},
        {"key": "retrieval.documents.1.document.id", "value": {}},
        {"key": "retrieval.documents.1.document.score", "value": {"intValue": "5"}},
    ]
    event = only(as_json(raw))
    assert event.asked == 5
    assert [(h.score, h.score_state) for h in event.hits] == [(None, "invalid"), (5.0, "ok")]
    assert event.hits[1].id == text_hash("")


def test_a_reranker_beside_the_retriever_is_its_second_stage() -> None:
    """Candidates and time of the stage are kept; the reranker is no retrieval of its own."""
    parent = "00f067aa0ba902b7"
    reranker = {
        "openinference.span.kind": "RERANKER",
        **{f"reranker.input_documents.{i}.document.id": f"d{i}" for i in range(20)},
    }
    traces = as_json(
        span({**OPENINFERENCE, **documents(3)}, parentSpanId=parent),
        span(reranker, spanId="c7ad6b7169203331", parentSpanId=parent),
    )
    assert (only(traces).reranked, round(only(traces).stages["rerank_s"], 3)) == (20, 0.04)


def test_a_span_of_openllmetry_says_what_it_is_in_its_operation() -> None:
    """Its kind is `task`, its answer one text; with content off it says nothing of what was returned."""
    said = {"traceloop.span.kind": "task", "gen_ai.operation.name": "vector_db_retrieve"}
    output = {"documents": [{"page_content": "t", "metadata": {"source": "a.md"}}], "count": 1}
    event = only(as_json(span({**said, "traceloop.entity.output": json.dumps(output)})))
    assert (event.returned, event.hits[0].source, event.truncated) == (1, "a.md", False)
    assert only(as_json(span(said))).truncated


def test_spans_of_other_work_are_passed_over() -> None:
    """An LLM call is no retrieval, and neither is a span without any of the names."""
    assert as_json(span({"openinference.span.kind": "LLM"}), span({"http.method": "GET"})).mapped.events == []


def test_our_own_spans_are_not_counted_again() -> None:
    """The recorder counted them already."""
    traces = as_json(span({"gen_ai.operation.name": "retrieval", "resweep.event_id": "01J-x"}))
    assert (traces.mapped.events, traces.mapped.own) == ([], 1)


def test_a_failed_span_is_an_error_by_its_class() -> None:
    """The exception's type is brought to the fixed list; its text is content."""
    event = only(as_json(span({**OPENINFERENCE, "error.type": "httpx.ReadTimeout"}, status={"code": 2})))
    assert event.error is not None
    assert (event.error.error_class, event.error.message) == ("timeout", None)


def test_no_text_is_kept_with_content_off_and_all_of_it_with_content_on() -> None:
    """One switch."""
    attributes = {**OPENINFERENCE, **documents(1, content="the secret text")}
    off, on = as_json(span(attributes)), as_json(span(attributes), content=True)
    assert "secret" not in repr(off) + repr(off.batch)
    assert (only(on).query, only(on).hits[0].text) == ("how long do refunds take", "the secret text")


def test_a_body_that_comes_again_is_the_same_batch() -> None:
    """A sender that repeats after a lost answer changes nothing."""
    one, two = (as_json(span({**OPENINFERENCE, **documents(1)})) for _ in range(2))
    assert (one.batch.writer, one.batch.seq) == (two.batch.writer, two.batch.seq)


@pytest.mark.parametrize(
    ("body", "encoding"), [(b"\x0a\xff\xff", "protobuf"), (b"[", "json"), (b"[]", "json")]
)
def test_a_body_that_is_no_request_is_refused(body: bytes, encoding: Any) -> None:
    """What was expected, what came."""
    with pytest.raises(InputError, match="expected an OTLP trace request"):
        read_traces(body, encoding, {}, NOW)


def wire(*attributes: bytes) -> Traces:
    """Read a span of undecoded attributes, each a KeyValue as it stands on the wire."""

    def field(number: int, body: bytes) -> bytes:
        assert len(body) < 1 << 14
        length = bytes([len(body)]) if len(body) < 0x80 else bytes([len(body) & 0x7F | 0x80, len(body) >> 7])
        return bytes([number << 3 | 2]) + length + body

    span_ = field(1, b"t" * 16) + field(2, b"s" * 8) + b"".join(field(9, one) for one in attributes)
    body = field(1, field(2, field(2, span_)))
    return read_traces(body, "protobuf", {}, NOW)


def pair(key: str, value: object) -> bytes:
    message = KeyValue(key=key)
    setattr(message.value, {str: "string_value", float: "double_value", int: "int_value"}[type(value)], value)
    return bytes(message.SerializeToString())


def document(index: int, **parts: object) -> list[bytes]:
    return [pair(f"retrieval.documents.{index}.document.{name}", value) for name, value in parts.items()]


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "id": st.one_of(st.text(max_size=300), st.integers(0, 9)),
                "score": st.one_of(st.floats(), st.text(max_size=3), st.integers(0, 9)),
                "metadata": st.sampled_from(
                    ['{"source": "a.md"}', '{"source": "b", "x": "%s"}' % ("y" * 200), "z" * 600, ""]
                ),
                "content": st.text(max_size=200),
            },
        ),
        max_size=6,
    ),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
def test_the_quick_way_reads_what_the_careful_one_reads(
    listed: list[dict[str, object]], first: int, chance: Any
) -> None:
    """Whatever parts a document has, in whatever order: JSON and protobuf come to the same hits."""
    said = {
        f"retrieval.documents.{i}.document.{name}": value
        for i, parts in enumerate(listed, first)
        for name, value in parts.items()
    }
    raws = [pair(key, value) for key, value in said.items()]
    chance.shuffle(raws)
    quick = wire(pair("openinference.span.kind", "RETRIEVER"), *raws).mapped.events[0]
    careful = from_attributes(said, content=False)
    assert repr(quick.hits) == repr(tuple(careful.hits))


def test_an_attribute_with_its_value_before_its_key_is_read() -> None:
    """Protobuf leaves the order of fields open; an empty attribute names nothing."""
    turned = b"\x12\x03\x0a\x01b" + b"\x0a\x21retrieval.documents.0.document.id"
    kind = pair("openinference.span.kind", "RETRIEVER")
    for attributes in ([kind, turned], [turned, b"", kind], [kind, b"\x0a\x01x", turned]):
        assert [hit.id for hit in only(wire(*attributes)).hits] == ["b"]


def test_a_broken_attribute_refuses_its_span_alone() -> None:
    """The others of the request go in."""
    traces = wire(pair("openinference.span.kind", "RETRIEVER"), b"\x12\xff")
    assert (traces.mapped.spans, traces.refused) == (0, 1)


def test_long_metadata_is_read_at_its_place() -> None:
    """A length of two bytes moves the value."""
    metadata = json.dumps({"note": "x" * 300, "source": "a.md"})
    kind = pair("openinference.span.kind", "RETRIEVER")
    (hit,) = only(wire(kind, *document(0, id="a", score=0.5, metadata=metadata))).hits
    assert (hit.id, hit.score, hit.source) == ("a", 0.5, "a.md")


def test_the_question_is_not_even_decoded_with_content_off() -> None:
    """What is not read cannot leak."""
    span_ = next(iter(protobuf.spans(wire_body(), content=False)))
    assert isinstance(span_, Span)
    assert "query" not in span_.fields


def wire_body() -> bytes:
    message = ExportTraceServiceRequest()
    one = message.resource_spans.add().scope_spans.add().spans.add(name="r")
    one.attributes.add(key="input.value").value.string_value = "how long"
    return bytes(message.SerializeToString())


def test_what_a_generation_says_is_a_fact_of_the_answer() -> None:
    """Model, fingerprint, and the prompt's tokens summed for its minute; a span is no retrieval for that."""
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "gpt-9-2026",
        "gen_ai.system_fingerprint": "fp_1",
        "gen_ai.usage.input_tokens": 812,
    }
    traces = as_json(span(said))
    (fact,) = traces.mapped.facts
    assert (fact.pipeline, fact.response_model, fact.system_fingerprint) == ("bot", "gpt-9-2026", "fp_1")
    (window,) = traces.batch.windows
    assert window.counts == {
        "prompt_tokens_n": 1,
        "prompt_tokens_sum": 812,
        "fact:response_model:gpt-9-2026": 1,
        "fact:system_fingerprint:fp_1": 1,
    }


def test_a_service_that_only_generates_makes_no_pipeline() -> None:
    """It never retrieved anything."""
    body = json.dumps(request(span({"openinference.span.kind": "LLM", "llm.token_count.prompt": 9})))
    assert read_traces(body.encode(), "json", {}, NOW).batch.windows == []


def test_many_refused_spans_are_counted_and_few_reasons_told() -> None:
    """An answer stays short."""
    traces = as_json(*(span({}, traceId=f"bad{i}") for i in range(50)))
    assert (traces.refused, len(traces.why)) == (50, 3)


def test_a_span_of_a_broken_clock_costs_itself_alone() -> None:
    """A window of the far future would have the whole request refused."""
    late = {"endTimeUnixNano": str(2**62), "startTimeUnixNano": str(2**62)}
    traces = as_json(span(OPENINFERENCE, **late), span({**OPENINFERENCE, **documents(1)}))
    assert (traces.refused, len(traces.mapped.events), "clock" in traces.why[0]) == (1, 1, True)


def test_numbers_out_of_any_range_are_not_believed() -> None:
    """A depth of a billion, a latency of years, a config id that labels nothing."""
    said = {"gen_ai.retrieval.top_k": 10**9, "resweep.config": "no such config!", **OPENINFERENCE}
    event = only(as_json(span({**said, **documents(1)}, startTimeUnixNano="1")))
    assert (event.asked, event.latency_s, event.config) == (None, None, "c0ffee000000")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["traceId", "spanId", "name", "startTimeUnixNano", "attributes", "events", "status", "links"]
            ),
            json_values,
        )
    ),
    st.lists(
        st.tuples(
            st.sampled_from([*OPENINFERENCE, *FIELDS, "retrieval.documents.0.document.id"]), json_values
        )
    ),
)
def test_no_json_makes_the_intake_stumble(
    spans: list[dict[str, object]], said: list[tuple[str, object]]
) -> None:
    """Whatever types stand where: spans are read or refused, and the batch can be applied."""
    attributes = [{"key": key, "value": value} for key, value in said]
    whole = span({})
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [*spans, {**whole, "attributes": attributes}]}]}]}
    traces = read_traces(json.dumps(body).encode(), "json", {}, 2e9)
    encode_batch(traces.batch)


@given(st.binary(max_size=40), st.integers(0, 2000), st.integers(0, 40))
def test_no_bytes_make_the_intake_stumble(noise: bytes, at: int, gone: int) -> None:
    """A request with bytes changed or gone is read, or refused as none."""
    body = as_bytes(span({**OPENINFERENCE, **documents(4, metadata='{"source": "a"}')}))
    with contextlib.suppress(InputError):
        encode_batch(read_traces(body[:at] + noise + body[at + gone :], "protobuf", {}, 2e9).batch)


def as_bytes(raw: dict[str, Any]) -> bytes:
    return bytes(Parse(json.dumps(request(hexed(raw))), ExportTraceServiceRequest()).SerializeToString())


def hexed(raw: dict[str, Any]) -> dict[str, Any]:
    ids = {name: base64.b64encode(bytes.fromhex(raw[name])).decode() for name in ("traceId", "spanId")}
    return {**raw, **ids}
