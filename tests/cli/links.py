# SPDX-License-Identifier: Apache-2.0
"""The documents say what exists: every relative link leads to a file, every document is in docs/README.md, and every
--option after `halfwarp COMMAND` in README.md and docs/guide.md is one of options.def's."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
pages = [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]
bad = []
for page in pages:
    for target in re.findall(r'\]\(([^)#\s]+)\)', page.read_text()):
        if '://' not in target and not (page.parent / target).exists():
            bad.append('%s: no %s' % (page.name, target))
index = (ROOT / 'docs/README.md').read_text()
for page in pages[1:]:
    if page.name != 'README.md' and not page.name.startswith('coverage-') and '(%s)' % page.name not in index:
        bad.append('docs/README.md: no link to ' + page.name)
known = set(re.findall(r'OPTION\(\w+,[^"]*"([\w-]+)"', (ROOT / 'src/cli/options.def').read_text()))
for page in (ROOT / 'README.md', ROOT / 'docs/guide.md'):
    for line in page.read_text().splitlines():
        m = re.search(r'halfwarp (?:occupancy|banks|coalesce|devices|inspect|profile|report|env|run) (.*)', line)
        # a PTX file's own options follow it
        for option in re.findall(r'--([a-z][\w-]*)', re.split(r'\.ptx|#', m[1])[0] if m else ''):
            if option not in known:
                bad.append('%s: no option --%s' % (page.name, option))
print(*bad, sep='\n')
sys.exit(bool(bad))
