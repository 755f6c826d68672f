#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/metrics.md from src/report/metrics.def and src/model/counts.def. metrics_doc.py [--check]"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = r'(?:"((?:[^"\\]|\\.)*)"|(NULL))'
ROW = re.compile(r'^METRIC\(%s,\s*%s,\s*%s,\s*(\w+),\s*(\w+),\s*%s,\s*(.*),\s*"([^"]*)"\)$' % ((TEXT,) * 4), re.M)
COUNT = re.compile(r'^(TOTAL|TRAFFIC|FIELD|CACHE)\((\w+),\s*"([^"]*)",\s*"([^"]*)"\)$', re.M)
TITLES = {'TOTAL': '`totals`: of launches, the same for every device', 'TRAFFIC': '`traffic`: kinds of access, for each device',
          'FIELD': 'Of each kind of access, and of each place', 'CACHE': '`cache`: simulated, for each device'}


def main():
    rows = ROW.findall((ROOT / 'src/report/metrics.def').read_text())
    out = ['# Metrics', '', 'Made from `src/report/metrics.def` and `src/model/counts.def`. Kinds: *exact*, counted from the code that ran; '
           '*launch*, arithmetic on launch and device; *simulated*, by caches of the device file\'s sizes.', '',
           '| id | nvprof | unit | kind | section | meaning |', '|---|---|---|---|---|---|']
    for r in rows:
        out.append('| `%s` | %s | %s | %s | %s | %s |' % (r[0], '`%s`' % r[2] if r[2] else '', r[4], r[6].lower(), r[7], r[11]))
    counts = COUNT.findall((ROOT / 'src/model/counts.def').read_text())
    out += ['', '# Counts of the profile file']
    for kind, title in TITLES.items():
        out += ['', '## ' + title, '', '| name | %s | meaning |' % ('said as' if kind == 'TRAFFIC' else 'unit'), '|---|---|---|']
        out += ['| `%s` | %s | %s |' % c[1:] for c in counts if c[0] == kind]
    text = '\n'.join(out) + '\n'
    path = ROOT / 'docs/metrics.md'
    if '--check' in sys.argv:
        return path.read_text() != text and 'docs/metrics.md is not what tools/metrics_doc.py makes'
    path.write_text(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
