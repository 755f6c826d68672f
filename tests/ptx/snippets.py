#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every text of snippets.txt with ptx_read, and with ptxas when that is given: both must say
what the table says. Usage: snippets.py PTX_READ snippets.txt [PTXAS]"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER = ".version 9.0\n.target {arch}\n.address_size 64\n"


def snippets(path):
    found = []
    for line in Path(path).read_text().splitlines(keepends=True):
        if line.startswith("=== "):
            found.append((line[4:].rstrip("\n"), []))
        elif found:
            found[-1][1].append(line)
    return [(head, "".join(body)) for head, body in found]


def option(head, key, default=None):
    """A word after key=; says= and ptxas= take all that follows up to the next option."""
    m = re.search(rf" {key}=(.*?)(?= (?:ptxas|arch|at|says)=|$)", head)
    return m.group(1).strip() if m else default


def verdict(command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    if done.returncode < 0 or done.returncode > 1 and "ptx_read" in command[0]:
        return "crash", done.stderr
    return ("accept" if done.returncode == 0 else "reject"), done.stderr + done.stdout


def check(tool, ptxas, head, body, folder):
    name, want = head.split()[:2]
    arch = option(head, "arch", "sm_75")
    own_header = body.lstrip().startswith((".version", ".target"))
    text = body if own_header else HEADER.format(arch=arch) + body
    path = folder / f"{name}.ptx"
    path.write_text(text)
    got, words = verdict([tool, str(path)])
    if got != want:
        return f"{name}: {got}, want {want}\n{words}"
    if (says := option(head, "says")) and says not in words:
        return f"{name}: does not say {says!r} but\n{words}"
    if at := option(head, "at"):
        line, column = map(int, at.split(":"))
        line += 0 if own_header else HEADER.count("\n")
        if f"{path}:{line}:{column}:" not in words:
            return f"{name}: not at {line}:{column} but\n{words}"
    if want == "reject" and len(re.findall(r": error: ", words)) != 1:
        return f"{name}: more than the one real error\n{words}"
    return ptxas_agrees(ptxas, head, name, want, arch, path)


def ptxas_agrees(ptxas, head, name, want, arch, path):
    expected = option(head, "ptxas", want).split(":")[0]
    if not ptxas or expected == "skip":
        return None
    got, words = verdict([ptxas, f"-arch={arch}", str(path), "-o", "/dev/null"])
    return None if got == expected else f"{name}: ptxas says {got}, the table {expected}\n{words}"


def main():
    tool, table, *rest = sys.argv[1:]
    ptxas = rest[0] if rest else None
    failures = []
    texts = snippets(table)
    with tempfile.TemporaryDirectory() as folder:
        for head, body in texts:
            if wrong := check(tool, ptxas, head, body, Path(folder)):
                failures.append(wrong)
    print("\n".join(failures))
    print(f"{len(texts) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
