# SPDX-License-Identifier: Apache-2.0
# Writes the device files as one C table, sorted by name: embed.py OUTPUT FILE...
import json
import os
import sys

rows = []
for path in sys.argv[2:]:
    with open(path) as f:
        text = f.read()
    rows.append((os.path.basename(path)[:-5], json.loads(text).get('aliases', []), text))
rows.sort()
with open(sys.argv[1], 'w') as out:
    out.write('/* Generated from devices/ by embed.py. */\n#include "builtin.h"\n')
    for i, (name, aliases, text) in enumerate(rows):
        out.write('static const char *const aliases_%d[] = { %sNULL };\n' % (i, ''.join('"%s", ' % a for a in aliases)))
        out.write('static const char text_%d[] =\n' % i)
        for line in text.splitlines():
            out.write('    %s\n' % json.dumps(line + '\n'))
        out.write('    ;\n')
    out.write('const hw_builtin_device hw_builtin_devices[] = {\n')
    for i, (name, aliases, text) in enumerate(rows):
        out.write('    { "%s", aliases_%d, { text_%d, sizeof text_%d - 1 } },\n' % (name, i, i, i))
    out.write('};\nconst size_t hw_builtin_device_count = %d;\n' % len(rows))
