"""One self-contained HTML file: tables, plots, and the plotting library inside it."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

import msgspec

from radixgate.errors import ConfigError
from radixgate.loadgen.reports.plots import Plot

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .8rem .3rem 0; text-align: left; }
td:not(:first-child) { font-variant-numeric: tabular-nums; }
.bad { color: #b00020; } .good { color: #0a7d33; } .note { color: #555; }
"""


def page(title: str, body: Iterable[str], plots: Sequence[Plot]) -> str:
    """The whole file. Raises ConfigError if plotly is not installed and there is a plot."""
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style>",
            f"<script>{_plotly()}</script>" if plots else "",
            "</head><body>\n",
            *body,
            *_drawn(plots),
            "</body></html>\n",
        ]
    )


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{escape(text)}</h{level}>\n"


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>\n'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["<table><thead><tr>", *(f"<th>{escape(cell)}</th>" for cell in head)]
    lines.append("</tr></thead><tbody>\n")
    for row in rows:
        lines += ["<tr>", *(f"<td>{escape(cell)}</td>" for cell in row), "</tr>\n"]
    return "".join([*lines, "</tbody></table>\n"])


def _drawn(plots: Sequence[Plot]) -> Iterator[str]:
    for number, plot in enumerate(plots):
        traces, layout = _json(plot.traces), _json(plot.layout())
        yield f'<div id="plot{number}"></div>\n<script>Plotly.newPlot("plot{number}", {traces}, '
        yield f'{layout}, {{"displaylogo": false, "responsive": true}});</script>\n'


def _json(value: object) -> str:
    # "</" would end the script that the JSON stands in.
    return msgspec.json.encode(value).decode().replace("</", "<\\/")


def _plotly() -> str:
    try:
        return files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise ConfigError("report.html needs plotly: pip install 'radixgate[bench]'") from error
