# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a console transcript and compares what they print: console.py HALFWARP FILE...

In a .md file the transcripts are fenced blocks that start with ```console; any other file is one transcript.
'$ command' runs in a shell with the program's folder first on PATH; the lines up to the next '$' are what it must print
(standard output and errors together); '...' alone stands for any lines, within a line for any text; '[2]' as the last line
is the exit status if it is not 0; '$?' lines starting with '#' are comments. Commands of a file share a scratch folder, in which
examples/ is the project's."""
import os
import re
import subprocess
import sys
import tempfile


def blocks(path):
    """The transcripts of a file, as lists of (line number, text)."""
    with open(path) as f:
        lines = list(enumerate(f.read().split('\n'), 1))
    if not path.endswith('.md'):
        return [lines]
    out, inside = [], None
    for n, text in lines:
        if inside is None and text.strip() == '```console':
            inside = []
        elif inside is not None and text.strip() == '```':
            out.append(inside)
            inside = None
        elif inside is not None:
            inside.append((n, text))
    return out


def commands(block):
    """(line number, command, expected lines) of each command of a transcript."""
    found = []
    for n, text in block:
        if text.startswith('$ '):
            found.append((n, text[2:], []))
        elif found:
            found[-1][2].append(text)
    for c in found:
        while c[2] and not c[2][-1].strip():
            c[2].pop()
    return found


def matches(want, got):
    """Whether the lines got fit the lines want."""
    pattern = ''
    for line in want:
        if line.strip() == '...':
            pattern += r'(?:.*\n)*?'
        else:
            pattern += '.*'.join(re.escape(p) for p in line.rstrip().split('...')) + r'[ \t]*\n'
    return re.fullmatch(pattern, ''.join(line.rstrip() + '\n' for line in got)) is not None


def run(command, folder, env):
    p = subprocess.run(['bash', '-c', command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=60)
    lines = p.stdout.split('\n')
    while lines and not lines[-1].strip():
        lines.pop()
    return lines, p.returncode


def check_file(path, env):
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(env['SOURCE'], 'examples'), os.path.join(folder, 'examples'))
        for block in blocks(path):
            for n, command, want in commands(block):
                status = 0
                if want and re.fullmatch(r'\[\d+\]', want[-1].strip()):
                    status = int(want.pop().strip()[1:-1])
                    while want and not want[-1].strip():
                        want.pop()
                got, code = run(command, folder, env)
                count += 1
                if code == status and matches(want, got):
                    continue
                bad += 1
                print('%s:%d: $ %s' % (path, n, command))
                print('  wanted [%d]:' % status, *want, sep='\n    ')
                print('  got [%d]:' % code, *got, sep='\n    ')
    return bad, count


def main():
    env = {k: v for k, v in os.environ.items() if not k.startswith('HALFWARP_')}
    env['PATH'] = ':'.join([os.path.dirname(os.path.abspath(sys.argv[1])), os.environ.get('CONSOLE_PATH', ''), env['PATH']])
    env['SOURCE'] = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
    bad = count = 0
    for path in sys.argv[2:]:
        b, n = check_file(path, env)
        bad, count = bad + b, count + n
    print('%d commands, %d differ' % (count, bad))
    return 1 if bad or not count else 0


if __name__ == '__main__':
    sys.exit(main())
