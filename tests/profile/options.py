# SPDX-License-Identifier: Apache-2.0
"""Options and names as users of Nsight Compute give them; several processes in one report. options.py HALFWARP"""
import csv
import io
import os
import subprocess
import sys
import tempfile

HALFWARP, HERE = sys.argv[1], os.path.dirname(os.path.abspath(__file__))
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry first(.param .u64 data) { ret; }
.visible .entry second(.param .u64 data) { .reg .b32 %r<2>; mov.u32 %r1, 0; ret; }
.visible .entry third(.param .u64 data) { .reg .b32 %r<2>; mov.u32 %r1, 0; mov.u32 %r1, 1; ret; }
"""
bad = 0


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print('%s: %r, not %r' % (what, got, want))


def run(options, program):
    r = subprocess.run([HALFWARP, 'profile', '-d', 'v100', *options, *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return r.returncode, r.stdout, r.stderr


def rows(options, program, *columns):
    table = list(csv.DictReader(io.StringIO(run(['--csv', *options], program)[1])))
    return [tuple(r[c] for c in columns) for r in table]


def choices(app):
    names = rows(['--metrics', 'l1tex__t_sectors*_op_ld.sum,smsp__inst_executed'], app('first'), 'Metric Name')
    same('names', names, [('smsp__inst_executed.sum',), ('l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum',), ('l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum',)]
         if names[0][0].startswith('smsp') else [('l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum',), ('l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum',),
                                                 ('smsp__inst_executed.sum',)])
    same('regex', rows(['--metrics', 'regex:^launch__(grid|block)_size'], app('first'), 'Metric Name'), [('launch__grid_size',), ('launch__block_size',)])
    for wrong, near in (('smsp__inst_exe', 'smsp__inst_executed.sum'), ('gld_efficency', 'gld_efficiency')):
        code, _, said = run(['--metrics', wrong], app('first'))
        same(wrong, (code != 0, "did you mean '%s'" % near in said), (True, True))
    same('nothing matches', run(['--metrics', 'nothing*'], app('first'))[0] != 0, True)
    three, inst = app('first', 'second', 'third'), ['--metrics', 'smsp__inst_executed.sum']
    same('skip and count', rows(['-s', '1', '-c', '1', *inst], three, 'Kernel Name', 'Metric Value'), [('second', '2')])
    same('name', rows(['--kernel-name', 'regex:^t', *inst], three, 'Kernel Name', 'Metric Value'), [('third', '3')])
    same('sections', set(rows(['--section', 'Occupancy', '--section', 'LaunchStats'], app('first'), 'Section Name')),
         {('Occupancy',), ('Launch Statistics',)})
    same('set', set(rows(['--set', 'basic'], app('first'), 'Section Name')), {('Occupancy',), ('Launch Statistics',)})
    table = list(csv.reader(io.StringIO(run(['--csv', '--page', 'raw', '--metrics', 'smsp__inst_executed.sum,launch__grid_size'], three)[1])))
    same('raw', [r[9:] for r in table], [['smsp__inst_executed.sum', 'launch__grid_size'], ['inst', 'block'], ['1', '1'], ['2', '1'], ['3', '1']])
    code, _, said = run(['-k', 'nothing'], app('first'))
    same('no such kernel', (code, 'no launch of a chosen kernel' in said), (0, True))


def processes(app, folder):
    """One after the other, and one in another; one that fails counts what it did."""
    script = os.path.join(folder, 'both.sh')
    with open(script, 'w', encoding='utf-8') as f:
        f.write('%s\n%s\nexit 4\n' % (' '.join(app('first')), ' '.join(app('third', 'first'))))
    inst = ['--metrics', 'smsp__inst_executed.sum']
    same('two', rows(inst, ['sh', script], 'ID', 'Kernel Name', 'Metric Value'), [('0', 'first', '1'), ('1', 'third', '3'), ('2', 'first', '1')])
    same('status', run(inst, ['sh', script])[0], 4)
    out = os.path.join(folder, 'both.json')
    run(['-o', out], ['sh', script])
    again = subprocess.run([HALFWARP, 'report', '--csv', *inst, out], stdout=subprocess.PIPE, text=True, check=True).stdout
    same('kept', len(again.strip().split('\n')), 4)


def main():
    with tempfile.TemporaryDirectory() as folder:
        ptx = os.path.join(folder, 'k.ptx')
        with open(ptx, 'w', encoding='utf-8') as f:
            f.write(PTX)

        def app(*kernels):
            return [sys.executable, os.path.join(HERE, 'control_app.py'), ptx] + [word for k in kernels for word in (k, '32')]

        choices(app)
        processes(app, folder)
    print('%d differ' % bad)
    return bad != 0


sys.exit(main())
