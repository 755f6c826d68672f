Help, man page and completion.
$ halfwarp | head -3
usage: halfwarp COMMAND [options] [operands]

A GPU in software, and what it tells about programs.
$ halfwarp --help | grep -c '^  occupancy '
1
$ halfwarp help occupancy | head -3
usage: halfwarp occupancy [options] [FILE]

say how many blocks a multiprocessor holds, what limits them, what to change
$ halfwarp occupancy --help | grep -- --threads
  -t, --threads N ...threads of a block...
$ halfwarp occupancy --help > a; halfwarp help occupancy | cmp - a
$ halfwarp help nothing
halfwarp: no command 'nothing' (see 'halfwarp help')
[2]
$ halfwarp --version
halfwarp ...
$ halfwarp manual | head -3
.TH HALFWARP 1 ...
.SH NAME
halfwarp \- a GPU in software
$ halfwarp completion bash > c.bash && bash -n c.bash && source ./c.bash && COMP_WORDS=(halfwarp occupancy --thr) COMP_CWORD=2 && _halfwarp && echo ${COMPREPLY[*]}
--threads
$ halfwarp completion fish | grep -c "seen_subcommand_from occupancy' -l regs -r"
1
$ halfwarp devices --color always | head -1 | od -c | head -1
0000000 033   [   1   m ...
$ NO_COLOR=1 halfwarp devices | head -1 | grep -c name
1
$ halfwarp devices --color sometimes
halfwarp: --color: 'sometimes' is not auto, always or never
[2]
$ halfwarp occupancy -t64 -r 32 --json | grep blocks_per_sm
  "blocks_per_sm": 32,
$ halfwarp occupancy --threads=64 --regs=32 --json | grep '"threads": 64'
    "threads": 64,
