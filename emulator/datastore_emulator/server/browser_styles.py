"""The data browser's style sheet: one column, light and dark, suitable for phones.

A table that is wider than the screen scrolls on its own; the page does not scroll sideways.
"""

CSS = """
:root { color-scheme: light dark; --ink: #1d2430; --quiet: #69707d; --line: #e3e6eb;
  --paper: #fff; --ground: #f5f6f8; --link: #1a5fb4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --quiet: #98a0ad; --line: #343a45;
  --paper: #1e222a; --ground: #15181e; --link: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: baseline;
  padding: .75rem clamp(1rem, 4vw, 2.5rem); background: var(--paper);
  border-bottom: 1px solid var(--line); }
header > a { color: var(--ink); font-weight: 600; }
nav { display: flex; gap: 1rem; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem clamp(1rem, 4vw, 2.5rem) 3rem; }
h1 { font-size: 1.4rem; margin: .75rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; font-weight: 600; margin: 1.75rem 0 .5rem; overflow-wrap: anywhere; }
.where { color: var(--quiet); margin-top: -.25rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; background: var(--paper); border: 1px solid var(--line);
  border-radius: .5rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .45rem .85rem; text-align: left; vertical-align: top; }
th { color: var(--quiet); font-size: .8rem; font-weight: 500;
  border-bottom: 1px solid var(--line); }
tbody tr + tr td { border-top: 1px solid var(--line); }
td:first-child { min-width: 10rem; overflow-wrap: anywhere; }
.number { font-variant-numeric: tabular-nums; }
.quiet { color: var(--quiet); }
.string { white-space: pre-wrap; overflow-wrap: anywhere; }
.pair { display: inline-block; margin-right: .9rem; max-width: 100%; overflow-wrap: anywhere; }
.tag { font-size: .75rem; color: var(--quiet); border: 1px solid var(--line);
  border-radius: .25rem; padding: 0 .3rem; white-space: nowrap; }
time { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 44rem) {
  .stacked thead { display: none; }
  .stacked, .stacked tbody, .stacked tr, .stacked td { display: block; border: 0; padding: 0; }
  .stacked tr { padding: .55rem .85rem; }
  .stacked tr + tr { border-top: 1px solid var(--line); }
  .stacked tr + tr td { border: 0; }
  .stacked td:first-child { font-weight: 500; }
}
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
ul { margin: 0; padding-left: 1.1rem; }
.next { display: inline-block; margin-top: .75rem; }
"""
