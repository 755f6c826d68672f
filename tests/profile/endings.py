# SPDX-License-Identifier: Apache-2.0
"""However a program ends, the report has all launches that finished; on a terminal its progress is shown.
endings.py HALFWARP"""
import csv
import io
import os
import pty
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HALFWARP = sys.argv[1]
LONG, SOME = '400000000', '200000000'
bad = 0


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print('%s: %r, not %r' % (what, got, want))


def command(*arguments):
    return [HALFWARP, 'profile', '-d', 'v100', '-j', '1', '-k', 'add|slow', '--metrics', 'inst_executed',
            sys.executable, os.path.join(HERE, 'endings_app.py')] + list(arguments)


def check(how, code, text, want_code, by_itself):
    same(how + ': status', code, want_code)
    same(how + ': launches', '    100 launches;' in text, True)
    # ld.param, red, ret; two warps; 100 launches
    same(how + ': instructions', bool(re.search(r'smsp__inst_executed.sum +inst +600\n', text)), True)
    same(how + ': by itself', 'did not end by itself' not in text, by_itself)


def all_endings():
    for how, code, by_itself in (('end', 0, True), ('_exit', 5, True), ('thread', 3, True), ('fork', 0, True), ('abort', 134, False),
                                 ('fault', 139, False), ('signal2', 130, False), ('signal15', 143, False), ('signal9', 137, False)):
        got = subprocess.run(command(how), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        check(how, got.returncode, got.stdout, code, by_itself)
        same(how + ': nothing but the program on stderr', 'halfwarp' in got.stderr, False)


def in_a_kernel():
    """The program, or the profiler itself, is ended while a kernel runs."""
    for whom, number in (('program', signal.SIGKILL), ('program', signal.SIGINT), ('profiler', signal.SIGTERM)):
        with subprocess.Popen(command('during', '1', LONG), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            program = int(p.stdout.readline())
            time.sleep(1)  # the kernel is compiled first
            os.kill(program if whom == 'program' else p.pid, number)
            text = p.communicate()[0]
        what = '%s to the %s' % (number.name, whom)
        check(what, p.returncode, text, 128 + number, False)
        same(what + ': what was lost', bool(re.search(r'^slow was under way \(\d of 8 blocks done\)', text, re.M)), True)


def streams():
    """A row a launch with the numbers of context and stream: 7 is the default stream, others count from 13."""
    arguments = command('end', '3')
    arguments.insert(2, '--csv')
    rows = list(csv.DictReader(io.StringIO(subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True).stdout)))
    found = sorted((int(r['ID']), r['Context'], r['Stream']) for r in rows)
    same('streams', found, [(i, '1', ('7', '13', '14')[i % 3]) for i in range(100)])


def progress():
    """The line is awaited, then the program is ended; after that nothing of it stays."""
    master, slave = pty.openpty()
    line = re.compile(r'halfwarp: 100 kernels done; slow: [1-7] of 8 blocks, about \d+ s left; \d+ s')
    seen, ended, until = '', False, time.time() + 100
    with subprocess.Popen(command('during', '1', SOME), stdout=subprocess.PIPE, stderr=slave, text=True) as p:
        os.close(slave)
        program = int(p.stdout.readline())
        while time.time() < until:
            try:
                seen += os.read(master, 4096).decode()
            except OSError:
                break
            if line.search(seen) and not ended:
                os.kill(program, signal.SIGKILL)
                ended = True
        p.communicate()
    same('progress of a kernel', bool(line.search(seen)), True)
    same('nothing stays', seen.endswith('\r\x1b[K'), True)


def main():
    all_endings()
    in_a_kernel()
    streams()
    progress()
    print('%d differ' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
