# SPDX-License-Identifier: Apache-2.0
"""The documents say what exists: every relative link leads to a file, every document is in docs/README.md, every --option
after `halfwarp COMMAND` is one of options.def's, every HALFWARP_ variable is in docs/environment.md, and every file of ours
that is named is there."""
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
for page in pages:
    for line in page.read_text().splitlines():
        m = re.search(r'halfwarp (occupancy|banks|coalesce|devices|inspect|profile|report|env|run) ([^#]*)', line)
        words = m[2] if m else ''
        if m and m[1] in ('run', 'profile'):  # the program's own options follow it
            words = re.split(r'(?:^| )(?:\.?[\w-]*/|\w+\.ptx)', words)[0]
        for option in re.findall(r'--([a-z][\w-]*)', words):
            if option not in known:
                bad.append('%s: no option --%s' % (page.name, option))

variables = (ROOT / 'docs/environment.md').read_text()
for page in pages:
    for name in set(re.findall(r'HALFWARP_[A-Z_]+', page.read_text())):
        if '`%s`' % name not in variables:
            bad.append('%s: no variable %s' % (page.name, name))

# Names of sources, in backquotes; <name> and * stand for any. Those of others are not ours to have.
OTHERS = {'cuda_occupancy.h', 'test/backend/test_ops.py', 'test_bfloat16.py'}
ours = ['/' + str(p.relative_to(ROOT)) for top in ('src', 'tests', 'tools', 'bench', 'examples', 'devices', 'docs', 'include')
        for p in (ROOT / top).rglob('*')]
for page in pages:
    for name in set(re.findall(r'`([\w/<>*.-]+\.(?:c|h|def|py|t|cu|ptx|md|json))`', page.read_text())) - OTHERS:
        anything = re.sub(r'<\\?\w+\\?>|\\\*', '[^/]*', re.escape(name))
        if not any(re.search('/' + anything + '$', path) for path in ours):
            bad.append('%s: no file %s' % (page.name, name))
print(*bad, sep='\n')
sys.exit(bool(bad))
