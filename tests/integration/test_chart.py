"""The chart, rendered by Helm's own engine: what it makes, what it refuses, and the rules inside it."""

from __future__ import annotations

import base64
import json
import subprocess
import tarfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from resweep.serve.settings_sources import load
from resweep.settings import known

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "resweep"
RULES = ROOT / "rules"
CI = sorted((CHART / "ci").glob("*-values.yaml"))
LONGEST = "a" * 52 + "z"  # Helm refuses a longer release name
MONITORING = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "kps"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "kps"}},
    "dashboards": {"enabled": True},
}
EXTERNAL = {"database": {"existingSecret": "db"}, "persistence": {"enabled": False}}

Object = dict[str, Any]


@pytest.fixture(scope="module")
def chart() -> Iterator[Any]:
    """The chart, loaded once."""
    with helm_python.Chart.load(str(CHART)) as loaded:
        yield loaded


Render = Callable[..., dict[str, Object]]


@pytest.fixture(scope="module")
def render(chart: Any) -> Render:
    """Render with some values and return the objects by kind; a kind that comes twice is kind/name."""

    def rendered(values: Object | None = None, name: str = "x", namespace: str = "rag") -> dict[str, Object]:
        files = chart.render(values or {}, name=name, namespace=namespace)
        documents = [
            document
            for path, text in files.items()
            if path.endswith(".yaml")
            for document in yaml.safe_load_all(text)
            if document
        ]
        kinds = [document["kind"] for document in documents]
        return {
            kind if kinds.count(kind) == 1 else f"{kind}/{document['metadata']['name']}": document
            for kind, document in zip(kinds, documents, strict=True)
        }

    return rendered


def pod(objects: dict[str, Object]) -> Object:
    """The pod of the deployment."""
    spec: Object = objects["Deployment"]["spec"]["template"]["spec"]
    return spec


def container(objects: dict[str, Object]) -> Object:
    """Its one container."""
    (only,) = pod(objects)["containers"]
    return dict(only)


def environment(objects: dict[str, Object]) -> dict[str, Any]:
    """The container's variables: a value, or where it comes from."""
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in container(objects)["env"]}


# -- sound in every variant


def test_the_linter_finds_nothing() -> None:
    """`helm lint --strict` has no warning."""
    found = helm_python.lint(str(CHART), strict=True)
    assert [m for m in found["messages"] if m["severity"] > 1] == []


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name.removesuffix("-values.yaml"))
def test_every_feature_renders_objects_that_kubernetes_knows(file: Path, render: Render) -> None:
    """Each of ci/ renders, and every core object is valid to the field."""
    objects = render(yaml.safe_load(file.read_text()))
    core = [o for o in objects.values() if not o["apiVersion"].startswith("monitoring.coreos.com/")]
    assert {"Deployment", "Service"} <= {o["kind"] for o in core}
    for item in core:
        kubernetes_validate.validate(item, "1.29", strict=True)


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name.removesuffix("-values.yaml"))
def test_every_object_says_whose_it_is(file: Path, render: Render) -> None:
    """Namespace and the usual labels are on each object."""
    for item in render(yaml.safe_load(file.read_text())).values():
        assert item["metadata"]["namespace"] == "rag"
        assert item["metadata"]["labels"]["app.kubernetes.io/instance"] == "x"


def test_monitors_rules_and_dashboards_are_off_by_default(render: Render) -> None:
    """A cluster without the operator takes the default render."""
    objects = render()
    assert sorted(o["kind"] for o in objects.values()) == [
        "ConfigMap",
        "Deployment",
        "PersistentVolumeClaim",
        "Secret",
        "Service",
        "ServiceAccount",
    ]


# -- one disk, two pods


def test_a_volume_means_one_replica_that_is_recreated(render: Render) -> None:
    """A second pod would wait for ever for a volume that the first one holds."""
    spec = render()["Deployment"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteMany"])
def test_two_replicas_on_one_volume_are_refused(mode: str, render: Render) -> None:
    """The message names both values and the way out."""
    with pytest.raises(helm_python.HelmRenderError) as refusal:
        render({"replicas": 2, "persistence": {"accessModes": [mode]}})
    said = str(refusal.value)
    assert f'replicas is 2 and persistence.accessModes is ["{mode}"]' in said
    assert "database.existingSecret" in said
    assert "persistence.enabled to false" in said
    assert "set replicas to 1" in said


def test_two_replicas_on_one_volume_are_refused_beside_a_database_too(render: Render) -> None:
    """The volume alone is enough to wait for ever."""
    with pytest.raises(helm_python.HelmRenderError, match=r"replicas is 2 and persistence.accessModes"):
        render({"replicas": 2, "database": {"existingSecret": "db"}})


def test_two_replicas_without_a_database_are_refused(render: Render) -> None:
    """Two SQLite files would be two truths."""
    with pytest.raises(helm_python.HelmRenderError, match=r'replicas is 2 and database.existingSecret is ""'):
        render({"replicas": 2, "persistence": {"enabled": False}})


def test_two_replicas_on_a_database_roll_and_stand_by(render: Render) -> None:
    """The new pod stands by until the old one ends."""
    objects = render({"replicas": 2, **EXTERNAL})
    spec = objects["Deployment"]["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["type"] == "RollingUpdate"
    assert container(objects)["args"] == ["agent", "--settings", "/etc/resweep/resweep.toml", "--standby"]
    assert environment(objects)["RESWEEP_STORE"] == {"secretKeyRef": {"name": "db", "key": "url"}}
    assert "PersistentVolumeClaim" not in objects


def test_without_a_volume_and_a_database_pods_never_overlap(render: Render) -> None:
    """Two agents with a store each would both lead."""
    assert render({"persistence": {"enabled": False}})["Deployment"]["spec"]["strategy"]["type"] == "Recreate"


def test_sqlite_has_no_standby(render: Render) -> None:
    """One agent, one file."""
    assert container(render())["args"] == ["agent", "--settings", "/etc/resweep/resweep.toml"]


# -- installed, green, and scraped


@pytest.mark.parametrize("name", ["x", LONGEST])
def test_monitor_and_rules_carry_the_label_that_prometheus_selects_on(name: str, render: Render) -> None:
    """And the monitor's selector, port and namespace lead to the Service."""
    objects = render(MONITORING, name=name)
    monitor, service = objects["ServiceMonitor"], objects["Service"]
    assert monitor["metadata"]["labels"]["release"] == "kps"
    assert objects["PrometheusRule"]["metadata"]["labels"]["release"] == "kps"
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert {e["port"] for e in monitor["spec"]["endpoints"]} <= {p["name"] for p in service["spec"]["ports"]}
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["rag"]}


@pytest.mark.parametrize("name", ["x", "resweep", LONGEST])
def test_the_service_finds_the_pods_at_a_port_they_have(name: str, render: Render) -> None:
    """Selector and target port are those of the pod; user labels cannot take them away."""
    values = {
        "podLabels": {"app.kubernetes.io/name": "mine"},
        "commonLabels": {"app.kubernetes.io/name": "b"},
    }
    objects = render(values, name=name)
    template = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert objects["Service"]["spec"]["selector"].items() <= template.items()
    assert objects["Deployment"]["spec"]["selector"]["matchLabels"].items() <= template.items()
    assert objects["Service"]["spec"]["ports"][0]["targetPort"] == "http"
    assert [p["name"] for p in container(objects)["ports"]] == ["http"]


@pytest.mark.parametrize("name", ["x", "resweep", LONGEST])
def test_names_and_label_values_fit_into_63_characters(name: str, render: Render) -> None:
    """Whatever the release is called."""
    values = {**MONITORING, "database": {"url": "postgresql://u:p@db/n"}}
    for item in render(values, name=name).values():
        assert len(item["metadata"]["name"]) <= 63
        assert all(len(value) <= 63 for value in item["metadata"]["labels"].values())


def test_long_release_names_that_begin_alike_stay_apart(render: Render) -> None:
    """A cut name gets a hash of the whole."""
    one, other = (render(name=LONGEST[:-1] + end)["Service"]["metadata"]["name"] for end in "yz")
    assert one != other


def test_prometheus_presents_the_token_that_the_agent_expects(render: Render) -> None:
    """The scrape and the pod read one key of one Secret."""
    for values in ({}, {"token": {"existingSecret": "mine", "existingSecretKey": "bearer"}}):
        objects = render({**MONITORING, **values})
        (endpoint,) = objects["ServiceMonitor"]["spec"]["endpoints"]
        expected = environment(objects)["RESWEEP_TOKEN"]["secretKeyRef"]
        assert endpoint["authorization"] == {"type": "Bearer", "credentials": expected}
        assert ("Secret" in objects) is (not values)


def test_a_token_is_made_where_none_is_given(render: Render) -> None:
    """Long enough for the agent to take it, and another for each install."""
    one, other = (base64.b64decode(render()["Secret"]["data"]["token"]) for _ in range(2))
    assert len(one) == 40
    assert one != other


# -- read-only root, no root user


def test_the_pod_runs_as_nobody_with_nothing(render: Render) -> None:
    """No root, no capability, no privilege, no writing to the root file system, no token of the cluster."""
    spec = pod(render())
    context = container(render())["securityContext"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert context == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False


def test_writing_is_possible_on_the_data_volume_and_one_scratch_folder_only(render: Render) -> None:
    """And everything the program writes by itself is pointed there."""
    objects = render()
    writable = {m["mountPath"] for m in container(objects)["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"/var/lib/resweep", "/tmp"}
    assert [v["name"] for v in pod(objects)["volumes"] if "emptyDir" in v] == ["scratch"]
    values = environment(objects)
    assert (values["RESWEEP_HOME"], values["HOME"], values["TMPDIR"]) == ("/var/lib/resweep", "/tmp", "/tmp")


def test_no_service_link_is_taken_for_a_setting(render: Render) -> None:
    """A Service called resweep would put RESWEEP_PORT into the pod."""
    assert pod(render())["enableServiceLinks"] is False


def test_probes_ask_for_life_and_readiness_apart(render: Render) -> None:
    """A store that is away makes the pod unready; it must not be killed for it."""
    only = container(render())
    paths = {probe: only[probe]["httpGet"]["path"] for probe in only if probe.endswith("Probe")}
    assert paths == {
        "startupProbe": "/healthz/live",
        "livenessProbe": "/healthz/live",
        "readinessProbe": "/healthz/ready",
    }
    start = only["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] == 60


# -- settings and secrets


def test_every_variable_and_setting_of_the_chart_is_one_the_agent_knows(
    render: Render, tmp_path: Path
) -> None:
    """The rendered file and environment are read by the agent's own code."""
    objects = render(yaml.safe_load((CHART / "ci" / "settings-values.yaml").read_text()))
    file = tmp_path / "resweep.toml"
    file.write_text(objects["ConfigMap"]["data"]["resweep.toml"])
    values = {name: "a" * 20 if isinstance(v, dict) else v for name, v in environment(objects).items()}
    loaded = load(file, {**values, "RESWEEP_STORE": "postgresql://db/n"}).settings
    assert loaded.agent.listen == "0.0.0.0:9464"
    assert loaded.agent.home == "/var/lib/resweep"
    assert loaded.agent.log_level == "warning"
    assert loaded.limits.body_bytes == 4194304
    variables = {one.variable for one in known()}
    assert {name for name in values if name.startswith("RESWEEP_")} <= variables


def test_without_settings_the_file_is_empty(render: Render) -> None:
    """Defaults are the agent's."""
    assert tomllib.loads(render()["ConfigMap"]["data"]["resweep.toml"]) == {}


@pytest.mark.parametrize("at", [one.key for one in known() if one.secret])
def test_a_secret_in_the_settings_is_refused(at: str, render: Render) -> None:
    """A ConfigMap is no place for it; the message says where it belongs."""
    section, name = at.split(".")
    variable = "RESWEEP_" + at.removeprefix("agent.").replace(".", "_").upper()
    with pytest.raises(helm_python.HelmRenderError, match=rf"settings.{at} is set: .*{variable} in extraEnv"):
        render({"settings": {section: {name: "hush"}}})


def test_what_the_chart_sets_itself_is_refused_in_the_settings(render: Render) -> None:
    """Two places for one setting would disagree."""
    with pytest.raises(helm_python.HelmRenderError, match=r"settings.agent.listen is set: the chart sets it"):
        render({"settings": {"agent": {"listen": "0.0.0.0:1"}}})


def test_a_change_of_settings_restarts_the_pod_and_an_upgrade_alone_does_not(render: Render) -> None:
    """The checksum follows the settings."""

    def checksum(values: Object) -> str:
        template = render(values)["Deployment"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/settings"])

    assert checksum({}) == checksum({})
    assert checksum({}) != checksum({"settings": {"agent": {"log_format": "json"}}})


# -- the schema


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replicas": "two"}, "/replicas"),
        ({"replica": 2}, "replica"),
        ({"persistence": {"accessModes": ["ReadOnlyMany"]}}, "/persistence/accessModes/0"),
        ({"persistence": {"size": "much"}}, "/persistence/size"),
        ({"token": {"value": "short"}}, "/token/value"),
        ({"database": {"url": "mysql://db"}}, "/database/url"),
        ({"service": {"port": 0}}, "/service/port"),
        ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
        ({"serviceMonitor": {"interval": "often"}}, "/serviceMonitor/interval"),
        ({"serviceMonitor": {"labels": {"release": 1}}}, "/serviceMonitor/labels/release"),
        (
            {"prometheusRule": {"thresholds": {"empty_ratio": "many"}}},
            "/prometheusRule/thresholds/empty_ratio",
        ),
        (
            {"prometheusRule": {"overrides": {"ResweepUntuned": {"severity": "page"}}}},
            "/prometheusRule/overrides/ResweepUntuned/severity",
        ),
        ({"settings": {"agent": 1}}, "/settings/agent"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_a_wrong_value_is_named(values: Object, place: str, render: Render) -> None:
    """The schema says where."""
    with pytest.raises(helm_python.HelmValuesError) as refusal:
        render(values)
    assert place in str(refusal.value)


def test_the_schema_lists_every_value_and_no_other() -> None:
    """values.yaml and values.schema.json agree at both levels."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    assert set(values) == set(schema) - {"global"}
    for name, value in values.items():
        if "properties" in schema[name]:
            assert set(value) == set(schema[name]["properties"]), name


# -- rules and dashboards


def test_the_rules_come_from_the_one_folder_through_a_symlink(render: Render) -> None:
    """Rendered without any say of the values, they are the shipped rules, word for word."""
    link = CHART / "rules"
    assert link.is_symlink()
    assert not link.readlink().is_absolute()
    assert link.resolve() == RULES
    files = [*RULES.glob("alerts/*.yaml"), *RULES.glob("recording/*.yaml")]
    shipped = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    rendered = render(MONITORING)["PrometheusRule"]["spec"]["groups"]
    assert sorted(rendered, key=_name) == sorted(shipped, key=_name)


def _name(group: Object) -> str:
    return str(group["name"])


@pytest.mark.parametrize("file", ["prometheus-rule", "prometheus-rule-tuned"])
def test_promtool_takes_the_rendered_rules(
    file: str, render: Render, tmp_path: Path, program: Callable[[str], str]
) -> None:
    """What the operator would load is what Prometheus accepts."""
    values = yaml.safe_load((CHART / "ci" / f"{file}-values.yaml").read_text())
    target = tmp_path / "rules.yaml"
    target.write_text(yaml.safe_dump(render(values)["PrometheusRule"]["spec"]))
    command = [program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", str(target)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_values_have_their_say_over_the_rules(render: Render) -> None:
    """Threshold, severity, `for`, labels, runbooks and alerts left out."""
    values = yaml.safe_load((CHART / "ci" / "prometheus-rule-tuned-values.yaml").read_text())
    rules = [r for g in render(values)["PrometheusRule"]["spec"]["groups"] for r in g["rules"]]
    exprs = {r["record"]: r["expr"] for r in rules if "record" in r}
    alerts = {r["alert"]: r for r in rules if "alert" in r}
    assert exprs["resweep:empty_ratio:threshold"] == "vector(0.25)"
    assert exprs["resweep:calls_per_hour:minimum"] == "vector(200)"
    assert exprs["resweep:short_ratio:threshold"] == "vector(0.2)"
    assert "ResweepUntuned" not in alerts
    slow = alerts["ResweepLatencyHigh"]
    assert (slow["for"], slow["labels"]["severity"], slow["labels"]["team"]) == ("30m", "warning", "platform")
    assert alerts["ResweepKMismatch"]["labels"]["team"] == "search"
    assert slow["annotations"]["runbook_url"] == "https://runbooks.example.org/resweep/ResweepLatencyHigh"


@pytest.mark.parametrize(
    ("say", "name"),
    [
        ({"thresholds": {"emptyratio": 1}}, "thresholds.emptyratio"),
        ({"disabled": ["ResweepTuned"]}, "disabled.ResweepTuned"),
        ({"overrides": {"ResweepTuned": {"severity": "info"}}}, "overrides.ResweepTuned"),
    ],
)
def test_a_rule_that_does_not_exist_is_refused(say: Object, name: str, render: Render) -> None:
    """A slip of the pen must not leave an alert on, or a threshold where it was."""
    with pytest.raises(helm_python.HelmRenderError, match=rf"prometheusRule.{name}: there is no such rule"):
        render({"prometheusRule": {"enabled": True, **say}})


def test_the_dashboards_are_those_of_the_rules_folder(render: Render) -> None:
    """With the label that Grafana's sidecar looks for."""
    config = render(MONITORING)["ConfigMap/x-resweep-dashboards"]
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    shipped = {file.name: json.loads(file.read_text()) for file in (RULES / "dashboards").glob("*.json")}
    assert {name: json.loads(text) for name, text in config["data"].items()} == shipped


def test_tests_runbooks_and_scripts_stay_out_of_the_chart(chart: Any) -> None:
    """The package holds what it renders."""
    names = {file if isinstance(file, str) else file["name"] for file in chart.files}
    assert {Path(name).parts[:2] for name in names if name.startswith("rules/")} == {
        ("rules", "alerts"),
        ("rules", "dashboards"),
        ("rules", "recording"),
    }
    assert not any(name.endswith(".py") for name in names)


def test_a_packaged_chart_holds_the_rules_themselves(tmp_path: Path) -> None:
    """Packaging follows the symlink: what is installed from a registry has no checkout beside it."""
    archive = helm_python.package(str(CHART), destination=str(tmp_path))
    with tarfile.open(archive) as packed:
        names = packed.getnames()
        text = packed.extractfile("resweep/rules/alerts/resweep.alerts.yaml")
        assert text is not None
        assert text.read() == (RULES / "alerts" / "resweep.alerts.yaml").read_bytes()
    assert "resweep/rules/recording/resweep.rules.yaml" in names
    assert not any("/ci/" in name or name.endswith(".md") for name in names)


# -- the notes


def test_the_notes_say_how_to_record_and_what_is_missing(chart: Any) -> None:
    """A person who reads them can go on."""

    def notes(values: Object) -> str:
        text = chart.render(values, name="x", namespace="rag")["resweep/templates/NOTES.txt"]
        return str(text)

    assert 'sink="http://x-resweep.rag.svc:9464"' in notes({})
    assert "Nobody is alerted yet" in notes({})
    assert "Nobody is alerted yet" not in notes(MONITORING)
    assert "a restart forgets every tuned k" in notes({"persistence": {"enabled": False}})
    assert "a restart forgets every tuned k" not in notes(EXTERNAL)
