# SPDX-License-Identifier: Apache-2.0
"""The pages that --html writes are well formed, and hold drawings: pages.py HALFWARP"""
import os
import subprocess
import sys
import tempfile
from html.parser import HTMLParser

VOID = {'meta', 'br'}


class Checker(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.count, self.wrong = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


bad = 0
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'page.html')
    for line, tag, least in [
            ('occupancy --threads 256 --regs 40', 'polyline', 3), ('occupancy -d xbox-one --threads 256 --vgprs 40', 'circle', 3),
            ('occupancy -d xbox-one --lds-table', 'td', 160), ('banks --stride 32', 'rect', 32), ('banks -d g80 --width 8', 'svg', 4),
            ('coalesce --stride 8', 'rect', 32), ('banks --pattern lane<3', 'rect', 1)]:
        subprocess.run([sys.argv[1]] + line.split() + ['--html', path], check=True, stdout=subprocess.DEVNULL, timeout=60)
        page = Checker()
        with open(path) as f:
            page.feed(f.read())
        if page.wrong or page.open or page.count.get(tag, 0) < least:
            print('halfwarp %s: %s %s, %d <%s>' % (line, page.wrong, page.open, page.count.get(tag, 0), tag))
            bad += 1
sys.exit(bad > 0)
