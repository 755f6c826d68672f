# SPDX-License-Identifier: Apache-2.0
"""Runs instructions on registers: Form says what they read and must give. A program holds several forms,
each a block; lanes read their registers from `in` and store what they get in `out`. RUN_PTX [--some]
[--ptxas]: --some takes every seventh form; with --ptxas the programs are also given to ptxas."""
import itertools
import struct
import subprocess
import sys
import tempfile


class Form:
    """Text of instructions that read %r0, %r1 ... and write %d0, %d1 ...: inputs and result are lists of
    registers, each a list of 32 words."""

    def __init__(self, text, inputs, result, target, version='9.0'):
        self.text, self.inputs, self.result, self.target = text, inputs, result, target
        self.version = version


TOGETHER = 16


def block(form, read, written):
    """A form as a block of its own: registers from word `read` of a lane on, results likewise."""
    lines = ['{', '.reg .b32 %r<40>;', '.reg .b32 %d<20>;', '.reg .b32 %row, %base;', '.reg .b16 %h<5>;',
             '.reg .f64 %a<9>;', '.reg .f64 %b<9>;', '.reg .f64 %c<9>;', '.reg .f64 %e<9>;']
    lines += ['mov.b16 %%h%d, %d;' % (k, k) for k in range(4)]
    lines += ['ld.global.b32 %%r%d, [%%in+%d];' % (k, 128 * (read + k)) for k in range(len(form.inputs))]
    lines += [form.text + ('' if form.text.endswith(';') else ';')]
    lines += ['st.global.b32 [%%out+%d], %%d%d;' % (128 * (written + k), k) for k in range(len(form.result))]
    return '\n'.join(lines + ['}', ''])


def program(members, target):
    text = """.version %s
.target %s
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
.reg .b64 %%in, %%out;
.reg .b32 %%lane;
.shared .align 16 .b8 memory[512];
ld.param.u64 %%in, [in];
ld.param.u64 %%out, [out];
mov.u32 %%lane, %%laneid;
mad.wide.u32 %%in, %%lane, 4, %%in;
mad.wide.u32 %%out, %%lane, 4, %%out;
""" % (members[0].version, target)
    read = written = 0
    for form in members:
        text += block(form, read, written)
        read += len(form.inputs)
        written += len(form.result)
    return text + 'ret;\n}\n'


def flat(regs):
    return b''.join(struct.pack('<32I', *r) for r in regs)


def differences(form, got):
    want = flat(form.result)
    wrong = [k for k in range(0, len(want), 4) if got[k:k + 4] != want[k:k + 4]]
    if not wrong:
        return None
    k = wrong[0]
    return '%d of %d words wrong; register %d of lane %d is %s, should be %s' % (
        len(wrong), len(want) // 4, k // 128, k % 128 // 4, got[k:k + 4][::-1].hex(), want[k:k + 4][::-1].hex())


def check(runner, members, target, ptxas):
    with tempfile.NamedTemporaryFile('w', suffix='.ptx') as f:
        f.write(program(members, target))
        f.flush()
        if ptxas:
            subprocess.run(['ptxas', '-arch=' + target, '-o', '/dev/null', f.name], check=True)
        data = b''.join(flat(form.inputs) for form in members)
        size = sum(len(flat(form.result)) for form in members)
        r = subprocess.run([runner, f.name, 'k', '32', data.hex(), str(size)], capture_output=True, text=True)
    try:
        got = bytes.fromhex(r.stdout.strip())
    except ValueError:
        got = b''
    if len(got) != size:
        return [r.stdout + r.stderr]
    problems = []
    for form in members:
        n = len(flat(form.result))
        problem, got = differences(form, got[:n]), got[n:]
        if problem:
            problems.append('%s\n  %s' % (form.text.split('\n')[-1], problem))
    return problems


def main(forms):
    by_target, problems, count = {}, [], 0
    for form in itertools.islice(forms, 0, None, 7 if '--some' in sys.argv else 1):
        by_target.setdefault((form.target, form.version), []).append(form)
    for (target, _), members in sorted(by_target.items()):
        for k in range(0, len(members), TOGETHER):
            problems += check(sys.argv[1], members[k:k + TOGETHER], target, '--ptxas' in sys.argv)
        count += len(members)
    print('\n'.join(problems + ['%d forms, %d problems' % (count, len(problems))]))
    sys.exit(len(problems) != 0)

