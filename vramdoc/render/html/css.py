"""The style sheet of the page: system fonts, one measure, light and dark."""

from __future__ import annotations

from vramdoc.render.style import BAD, CAREFUL, GOOD

STYLE = f"""
:root {{ color-scheme: light dark; --ground: #fbfbfa; --ink: #22262c; --quiet: #6a717c; --line: #e2e4e8;
  --free: #e9ebee; --good: {GOOD}; --careful: {CAREFUL}; --bad: {BAD}; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ground: #181b21; --ink: #d9dce3; --quiet: #8f97a4; --line: #2c3139; --free: #272c34; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
main {{ max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px; }}
h1 {{ font-size: 26px; line-height: 1.25; margin: 4px 0; overflow-wrap: anywhere; }}
h1.fits {{ color: var(--good); }} h1.squeezes, h1.grows {{ color: var(--careful); }}
h1.too_big, .bad {{ color: var(--bad); }}
h2 {{ font-size: 17px; margin: 40px 0 10px; }}
h2 small {{ font-weight: normal; font-size: 14px; color: var(--quiet); margin-left: 12px; }}
p {{ margin: 6px 0; overflow-wrap: anywhere; }}
.quiet, footer {{ color: var(--quiet); }}
footer {{ margin-top: 48px; font-size: 13px; overflow-wrap: anywhere; }}
.memory {{ position: relative; display: flex; height: 22px; margin: 18px 0 8px; border-radius: 4px;
  overflow: hidden; background: var(--free); }}
.memory span {{ height: 100%; }}
.memory i {{ position: absolute; top: 0; bottom: 0; right: 0; opacity: 0.8; background: var(--bad); }}
.phases {{ max-width: 480px; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: normal; color: var(--quiet); font-size: 13px; }}
th, td {{ padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }}
tr:last-child td {{ border-bottom: 0; }}
.number {{ text-align: right; white-space: nowrap; }}
.name {{ white-space: nowrap; }}
.bar {{ width: 45%; min-width: 120px; vertical-align: middle; }}
.bar i {{ display: block; height: 13px; border-radius: 2px; min-width: 2px; }}
.swatch {{ display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 8px; }}
.peak td {{ font-weight: 600; }}
code, pre {{ font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }}
td code {{ color: var(--quiet); }}
pre {{ margin: 2px 0 12px; padding: 8px 12px; border-radius: 4px; background: var(--free); white-space: pre-wrap;
  overflow-wrap: anywhere; }}
h3 {{ font-size: 15px; margin: 26px 0 4px; }}
h3.fits {{ color: var(--good); }}
ul.plain {{ list-style: none; padding: 0; margin: 0; }}
ul.cautions {{ color: var(--careful); padding-left: 20px; }}
svg {{ display: block; width: 100%; height: auto; margin-bottom: 18px; }}
svg text {{ fill: var(--quiet); font-size: 13px; }}
svg line {{ stroke: var(--line); }}
svg .mark {{ stroke: var(--ink); stroke-dasharray: 3 3; }}
svg .full {{ stroke: var(--bad); stroke-dasharray: 6 4; }}
"""
