"""The dashboard for Grafana that `hakmem exporter --dashboard` prints: its panels, and what all of
them have in common."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from typing import Any

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_ANY = "hakmem_resident_memory_bytes"  # a metric of every process
_LABELS = ("job", "instance", "program")
_CHOSEN = "{" + ",".join(f'{name}=~"${name}"' for name in _LABELS) + "}"
_EACH = "{{program}} {{pid}}"


def text() -> str:
    """JSON, for Grafana to import."""
    return json.dumps(_dashboard(), indent=2) + "\n"


def _dashboard() -> dict[str, Any]:
    source = {
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        "refresh": 1, "current": {},
    }  # fmt: skip
    return {
        "title": "hakmem",
        "uid": "hakmem",
        "tags": ["memory"],
        "description": "Memory of processes on hakmem, from 'hakmem exporter'.",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [source, *map(_choice, _LABELS)]},
        "panels": [panel | {"id": at} for at, panel in enumerate(_panels(), 1)],
    }


def _choice(label: str) -> dict[str, Any]:
    """Of some values of a label, or all."""
    query = f"label_values({_ANY}, {label})"
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "V"},
        "definition": query,
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "sort": 1,
    }


def _panels() -> list[dict[str, Any]]:
    def by(label: str, metric: str) -> dict[str, str]:
        return {f"{{{{{label}}}}}": f"sum by ({label}) ({metric}{_CHOSEN})"}

    def rate(metric: str) -> str:
        return f"sum(rate({metric}{_CHOSEN}[$__rate_interval]))"

    rates = {
        "freed": rate("hakmem_freed_bytes_total"),
        "returned": rate("hakmem_returned_bytes_total"),
        "used again": rate("hakmem_taken_again_bytes_total"),
    }
    return [
        _curves(0, "Resident memory", "RSS of each process.", {_EACH: _ANY + _CHOSEN}),
        _curves(1, "Memory in use", "What the programs have allocated and not freed.",
                {_EACH: "hakmem_live_bytes" + _CHOSEN}),
        _curves(2, "Heap by use",
                "Resident memory of all selected heaps, by what it is used for. Blocks in use are"
                " 'live'; free memory is in holes (fragmentation), free pages, caches, slices and"
                " kept mappings.", by("use", "hakmem_heap_resident_bytes"), stacked=True),
        _curves(3, "Outside of the heap", "Program and libraries, stacks, and other mappings.",
                by("kind", "hakmem_other_resident_bytes"), stacked=True),
        _curves(4, "Returnable memory", "What 'hakmem purge' would return to the kernel now.",
                {_EACH: "hakmem_returnable_bytes" + _CHOSEN}),
        _curves(5, "Rates", "Memory that the programs freed, that hakmem returned to the kernel,"
                " and returned memory that was used again.", rates, unit="Bps"),
        _processes(),
    ]  # fmt: skip


def _panel(
    kind: str, title: str, about: str, place: tuple[int, int, int], targets: Mapping[str, str]
) -> dict[str, Any]:
    """`targets`: expressions by their legends; of a table by its columns."""
    x, y, width = place
    as_table = {"format": "table", "instant": True} if kind == "table" else {}
    return {
        "id": 0,
        "type": kind,
        "title": title,
        "description": about,
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": 8},
        "fieldConfig": {},
        "options": {},
        "targets": [
            {
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": "" if as_table else legend,
                "refId": letter,
            }
            | as_table
            for letter, (legend, expression) in zip(
                string.ascii_uppercase, targets.items(), strict=False
            )
        ],
    }


def _curves(
    at: int,
    title: str,
    about: str,
    targets: Mapping[str, str],
    *,
    unit: str = "bytes",
    stacked: bool = False,
) -> dict[str, Any]:
    stacking = {"mode": "normal" if stacked else "none", "group": "A"}
    drawn = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 30 if stacked else 0,
        "showPoints": "never",
        "stacking": stacking,
    }
    place = (at % 2 * 12, at // 2 * 8, 12)
    return _panel("timeseries", title, about, place, targets) | {
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": drawn}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _processes() -> dict[str, Any]:
    columns = {
        "resident": _ANY,
        "in use": "hakmem_live_bytes",
        "returnable": "hakmem_returnable_bytes",
        "threads": "hakmem_thread_caches",
    }
    values = {
        f"Value #{at}": name for at, name in zip(string.ascii_uppercase, columns, strict=False)
    }
    no_bytes = {"id": "unit", "value": "short"}
    of_threads = {"matcher": {"id": "byName", "options": "threads"}, "properties": [no_bytes]}
    organized = {"excludeByName": {"Time": True, "__name__": True}, "renameByName": values}
    targets = {name: metric + _CHOSEN for name, metric in columns.items()}
    return _panel("table", "Processes", "", (0, 24, 24), targets) | {
        "fieldConfig": {"defaults": {"unit": "bytes"}, "overrides": [of_threads]},
        "options": {"showHeader": True, "sortBy": [{"displayName": "resident", "desc": True}]},
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": organized},
        ],
    }
