#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""roundtrip.py GCN_WORDS LLVM_MC [SEED]: our decoder against LLVM's assembler.

For every row of gcn.def and many random words: text = print(decode(word)); bytes = assemble(text); the text of
decode(bytes) must equal text, and every bit that the fields of the format carry must survive. Texts that the assembler
refuses may only be refused for operand rules (alignment, constant bus), and every row must be accepted at least once."""
import re
import subprocess
import sys

GCN_WORDS, LLVM_MC = sys.argv[1:3]
SEED = sys.argv[3] if len(sys.argv) > 3 else "1"
RANDOM = "60000"
# Why LLVM refuses operands of random words; a wrong mnemonic or syntax would say something else.
OPERAND_RULES = ("constant bus", "register alignment", "invalid operand", "not a valid operand", "out of range",
                 "register index", "failed parsing operand", "invalid register", "exec", "unsupported format",
                 "must be", "integer clamping", "lds_direct",
                 "TFE modifier", "register not available", "literal operands")


def run(args, text=""):
    return subprocess.run(args, input=text, capture_output=True, text=True, check=False)


def words(family, *more, text=""):
    rows = [line.split(" ", 3) for line in run([GCN_WORDS, family, *more], text).stdout.splitlines()]
    return [(a, b, int(size), asm) for a, b, size, asm in rows]


def assemble(cpu, texts):
    out = run([LLVM_MC, "-arch=amdgcn", f"-mcpu={cpu}", "-show-encoding"], "\n".join(texts) + "\n")
    errors = {int(line): why for line, why in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", out.stderr)}
    encoded = re.findall(r"encoding: \[([^\]]*)\]", out.stdout)
    good = [i for i in range(len(texts)) if i + 1 not in errors]
    assert len(good) == len(encoded), f"{len(good)} accepted, {len(encoded)} encodings"
    result = {}
    for i, e in zip(good, encoded):
        b = bytes(int(x, 16) for x in e.split(","))
        result[i] = (int.from_bytes(b[:4], "little"), int.from_bytes(b[4:8], "little"), len(b))
    return result, errors


def check(family, cpu):
    rows = words(family, SEED, RANDOM)
    result, errors = assemble(cpu, [r[3] for r in rows])
    back = words(family, text="".join(f"{result[i][0]:08x} {result[i][1]:08x}\n" for i in sorted(result)))
    wrong = []
    if len(back) != len(result):
        wrong.append(f"{len(result) - len(back)} encodings of LLVM's are not decoded")
    for i, again in zip(sorted(result), back):
        if again[3] != rows[i][3] or again[2] != rows[i][2]:
            wrong.append(f"{rows[i]} came back as {again}")
    for line, why in errors.items():
        if not any(rule in why for rule in OPERAND_RULES):
            wrong.append(f"{rows[line - 1]} refused: {why}")
    seen = {rows[i][3].split()[0].removesuffix("_e32").removesuffix("_e64") for i in result}
    all_names = {r[3].split()[0].removesuffix("_e32").removesuffix("_e64") for r in rows}
    wrong.extend(f"{name}: never accepted by LLVM's assembler" for name in sorted(all_names - seen))
    print(f"{cpu}: {len(rows)} instructions, {len(result)} accepted, {len(all_names)} mnemonics, {len(wrong)} wrong")
    for w in wrong[:8]:
        print("  ", w)
    return not wrong


results = [check("1", "gfx600"), check("2", "gfx704")]
sys.exit(0 if all(results) else 1)
