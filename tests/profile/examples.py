# SPDX-License-Identifier: Apache-2.0
"""The worked examples of examples.json through the whole tool: `halfwarp profile --csv` on a program that makes exactly
these accesses, on the devices the examples speak of. examples.py HALFWARP [-v]"""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# An example's device, and the models it is asked on.
DEVICES = {
    'CC 1.0/1.1': ['geforce-8800-gtx'], 'CC 1.2/1.3': ['gtx-280'], 'CC 1.x': ['geforce-8800-gtx', 'gtx-280'],
    'CC 2.x cached': ['gtx-480'], 'CC 2.x uncached': ['gtx-480'], 'CC 2.x': ['gtx-480'],
    'CC 2.x+': ['gtx-480', 'gtx-980', 'v100', 'h100'], 'CC 2.0+': ['gtx-480', 'k40', 'gtx-980', 'v100', 'h100'],
    'CC 2.x, 5.x+': ['gtx-480', 'gtx-980', 'v100', 'h100'], 'CC 3.x 32-bit mode': ['k40'], 'CC 3.x 64-bit mode': ['k40'], 'CC 5.x+': ['gtx-980', 'v100', 'h100'],
    'CC 5.x/6.x': ['gtx-980'], 'CC 6.0+': ['v100', 'h100'], 'CC 7.0+': ['v100', 'h100'], 'xbox-one': ['xbox-one'],
}
ALL = ['k40', 'geforce-8800-gtx', 'gtx-280', 'gtx-480', 'h100', 'gtx-980', 'v100', 'xbox-one']  # the first runs it
LD = 'hw__global_ld_'
METRICS = {
    'transactions': LD + 'transactions', 'moved': LD + 'bytes_moved', 'asked': LD + 'bytes_requested',
    'sectors': 'l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum', 'efficiency': 'gld_efficiency',
    'ld_passes': 'l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum', 'ld_conflicts': 'shared_ld_bank_conflict',
    'ld_accesses': 'shared_load_requests', 'st_passes': 'l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum',
    'constant': 'hw__constant_requests',
}
bad = 0


def addresses(given):
    """The byte address of each lane (None: inactive), from an example's input."""
    size = given.get('size', 4)
    if 'stride_words' in given or 'stride_dwords' in given:
        return [4 * given.get('stride_words', given.get('stride_dwords')) * lane for lane in range(32)]
    if 'stride' in given:
        return [given['base'] + given['stride'] * lane for lane in range(32)]
    if given.get('pattern') == 'all predicated off':
        return [None] * 32
    text = given.get('addr', given.get('addresses', ''))
    if text.startswith('in each half'):
        return [0, 0, 128] + [None] * 29
    if text.startswith('word_index = 5'):
        return [(5 * 32 + lane) * 4 for lane in range(32)]
    if text.startswith('word_index = lane'):
        return [(lane * 32 + lane) * 4 for lane in range(32)]
    text = {'all equal': '0'}.get(text, text).split(' (lane =')[0].replace('/', '//')
    return [eval(text, {'lane': lane}) for lane in range(32)]  # an expression of our own data


def pattern(e):
    given, topic = e['input'], e['topic']
    space = {'shared': 'shared', 'shared-counter': 'shared', 'constant': 'constant'}.get(topic, 'global')
    p = {'space': space, 'op': 'plain' if space == 'constant' else 'load', 'size': given.get('size', 4)}
    if given.get('op') == 'write':
        p['op'] = 'store'
    if '64-bit mode' in e['device']:
        p['banks'] = 8
    if space == 'global':
        p['op'] = 'cg' if 'uncached' in e['device'] else 'plain'
    if 'iterations' in given:
        p.update(block=32 * given['warps'], repeat=given['iterations'], address=[128 * lane for lane in range(32)])
        return p
    if 'grid 2' in given.get('what', ''):
        p['grid'] = 2
    p['address'] = addresses(given)
    return p


def transactions(want):
    """{"64@128": 1, ...} as count and bytes."""
    list_ = [(int(k.split('@')[0]), n) for k, n in want.items()]
    return {'transactions': sum(n for _, n in list_), 'moved': sum(size * n for size, n in list_)}


def wanted(e):
    """What the metrics of one launch must be."""
    want, write = e['expected'], e['input'].get('op') == 'write'
    passes = 'st_passes' if write else 'ld_passes'
    if any('@' in k for k in want):
        return transactions(want)
    out = {}
    for key, value in want.items():
        if key in ('sectors', 'bytes_moved', 'bus_bytes'):
            out[{'sectors': 'sectors'}.get(key, 'moved')] = value
        elif key == 'efficiency_pct':
            out['efficiency'] = value
        elif key == 'sectors_per_subrequest':
            out['transactions'] = sum(value)
        elif key == 'requests':
            out['constant'] = sum(value)
        elif key in ('steps_per_halfwarp', 'steps', 'ways_per_halfwarp', 'ways_per_quarterwarp'):
            out[passes] = sum(value)
        elif key == 'ways_per_half':  # 32 lanes run: half a wave
            out[passes] = value[0]
        elif key == 'ways':
            out[passes] = value
        elif key == 'wavefronts':
            out[passes] = value
        elif key in ('conflicts', 'excess_total', 'bank_conflicts'):
            out['ld_conflicts'] = value
        elif key == 'wavefronts_per_request':
            out[passes] = value * 2  # two warps
    return out


def skipped(e):
    """Why an example is not one of the profiler; the tests of the device room have these."""
    if e['topic'] not in ('coalescing', 'sectors', 'local-memory', 'constant', 'shared', 'shared-counter'):
        return 'no access'
    if e['input'].get('read_conflicts') == 'threads':
        return 'another reading of the rule'
    return None if wanted(e) else 'nothing that is counted'


def profile(halfwarp, patterns, folder):
    path = os.path.join(folder, 'patterns.json')
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(patterns, f)
    command = [halfwarp, 'profile', '--csv', '--metrics', ','.join(METRICS.values())]
    for d in ALL:
        command += ['--device', d]
    out = subprocess.run(command + [sys.executable, os.path.join(HERE, 'patterns_app.py'), path], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    found = {}
    for row in csv.DictReader(io.StringIO(out)):
        found[int(row['ID']), row['Device'], row['Metric Name']] = row['Metric Value']
    return found


def check(e, number, found, metric_ids):
    global bad
    devices = ALL[1:7] if e['device'] == 'all' else DEVICES[e['device']]
    if e['device'] == 'all':
        devices = ['v100', 'h100']
    for d in devices:
        for name, want in wanted(e).items():
            got = float(found[number, d, metric_ids[name]])
            if abs(got - want) > 1e-6:
                bad += 1
                print('%s on %s: %s is %g, not %g (%s; %s)' % (e['id'], d, name, got, want, e['label'], ', '.join(e['source'])))


def main():
    with open(os.path.join(HERE, 'examples.json'), encoding='utf-8') as f:
        examples = [e for e in json.load(f)['examples'] if not skipped(e)]
    with tempfile.TemporaryDirectory() as folder:
        found = profile(sys.argv[1], [pattern(e) for e in examples], folder)
    ids = {name: m for name, m in METRICS.items()}
    reported = {m for _, _, m in found}
    alias = {'gld_efficiency': 'smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct',
             'shared_ld_bank_conflict': 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum',
             'shared_load_requests': 'smsp__inst_executed_op_shared_ld.sum'}
    ids = {name: m if m in reported else alias[m] for name, m in ids.items()}
    for number, e in enumerate(examples):
        check(e, number, found, ids)
    print('%d examples, %d differ' % (len(examples), bad))
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
