# Input that makes no sense: one clear line, exit status 2.
$ halfwarp frob
halfwarp: unknown command 'frob' (see 'halfwarp help')
[2]
$ halfwarp occupanci
halfwarp: unknown command 'occupanci'; did you mean 'occupancy'? (see 'halfwarp help')
[2]
$ halfwarp occupancy --thread 256
halfwarp: 'occupancy' has no option '--thread'; did you mean '--threads'?
[2]
$ halfwarp occupancy --threads
halfwarp: --threads needs a value: N
[2]
$ halfwarp occupancy --threads twelve
halfwarp: --threads: 'twelve' is not a whole number
[2]
$ halfwarp occupancy --threads 0
halfwarp: h100: 0 threads: a block needs at least one thread (at most 1024)
[2]
$ halfwarp occupancy --threads -5
halfwarp: --threads: -5 is out of range; allowed: 0 to 4294967295
[2]
$ halfwarp occupancy --threads 99999999999999999999999
halfwarp: --threads: 99999999999999999999999 is out of range; allowed: 0 to 4294967295
[2]
$ halfwarp occupancy --threads 1025
halfwarp: h100: 1025 threads: more threads than a block may have (at most 1024)
[2]
$ halfwarp occupancy --regs 300
halfwarp: h100: 300 registers: more registers than a thread may have (at most 255)
[2]
$ halfwarp occupancy --shared 9999999999999G
halfwarp: --shared: 9999999999999G is out of range; allowed: 0 to 9223372036854775807 bytes
[2]
$ halfwarp occupancy --shared 16Q
halfwarp: --shared: '16Q' is not a size (like 48K or 49152)
[2]
$ halfwarp occupancy --shared 0.3
halfwarp: --shared: '0.3' is not a whole number of bytes
[2]
$ halfwarp occupancy --shared 999G
halfwarp: h100: 1072668082176 bytes of shared memory a block: more shared memory than a block may have (at most 232448)
[2]
$ halfwarp occupancy --carveout 101
halfwarp: --carveout: 101 is out of range; allowed: -1 to 100
[2]
$ halfwarp occupancy --cache l2
halfwarp: --cache: 'l2' is not one of none, shared, l1, equal
[2]
$ halfwarp occupancy --device h1000
halfwarp: error: unknown device 'h1000'; did you mean 'h100'? (see 'halfwarp devices')
[2]
$ halfwarp occupancy --device xbox-one --regs 12
halfwarp: --regs does not apply to xbox-one, a device of AMD; use --vgprs and --sgprs
[2]
$ halfwarp occupancy --device h100 --vgprs 12
halfwarp: --vgprs does not apply to h100, a device of NVIDIA; use --regs
[2]
$ halfwarp occupancy --device xbox-one --lds 33K
halfwarp: xbox-one: 33792 bytes of LDS a group: more shared memory than a block may have (at most 32768)
[2]
$ halfwarp occupancy --device xbox-one --vgprs 257
halfwarp: xbox-one: 257 VGPRs: more VGPRs than a wave may have (at most 256)
[2]
$ halfwarp occupancy nothing-here
halfwarp: error: ...nothing-here...
[2]
$ printf 'not a program' > garbage; halfwarp occupancy garbage
halfwarp: error: ...
[2]
$ head -c 300 "$(command -v bash)" > cut; halfwarp occupancy cut
halfwarp: error: ...
[2]
$ halfwarp devices no-such
halfwarp: error: unknown device 'no-such'...
[2]
$ halfwarp devices --compare h100
halfwarp: --compare needs two devices: halfwarp devices --compare A B
[2]
$ halfwarp banks --stride 1 --pattern lane
halfwarp: --stride, --pattern and --addresses exclude one another
[2]
$ halfwarp banks --pattern 'lane / (lane - 3)'
halfwarp: --pattern, column 18, lane 3: division by zero
    lane / (lane - 3)
                     ^
[2]
$ halfwarp banks --pattern '(lane + 2) * 4611686018427387904'
halfwarp: --pattern, column 33, lane 0: a product overflows
    (lane + 2) * 4611686018427387904
                                    ^
[2]
$ halfwarp banks --pattern 'lame * 2'
halfwarp: --pattern, column 1, lane 0: unknown name; the variable is 'lane'
    lame * 2
    ^
[2]
$ halfwarp banks --pattern "$(printf '(%.0s' $(seq 1000))"
halfwarp: --pattern, column 33, lane 0: the expression is nested too deeply
...
[2]
$ halfwarp banks --width 3
halfwarp: --width: 3 is not 1, 2, 4, 8 or 16
[2]
$ halfwarp banks --stride -1
halfwarp: lane 1: word -1 is not a possible address
[2]
$ printf '0\n4\nfour\n' > list; halfwarp banks --addresses list
halfwarp: list:3: 'four' is not an address
[2]
$ seq 33 > long; halfwarp coalesce --addresses long
halfwarp: long:33: more addresses than the 32 lanes of h100
[2]
$ halfwarp banks --addresses missing
halfwarp: cannot read 'missing': No such file or directory
[2]
$ halfwarp banks --bank-width 8
halfwarp: --bank-width: the banks of h100 are 4 bytes wide
[2]
$ sed 's/"warp_size": 32/"warp_size": 33333/' "$SOURCE"/devices/h100.json > mine.json; halfwarp occupancy --device mine.json
halfwarp: mine.json:9:5: error: key 'compute.warp_size' is 33333; allowed: 32 to 64 lanes
...
[2]
$ sed 's/"sm_count"/"sm_cuont"/' "$SOURCE"/devices/h100.json > mine.json; halfwarp devices mine.json
halfwarp: mine.json:10:5: error: unknown key 'compute.sm_cuont'; did you mean 'sm_count'?
...
mine.json:8:3: error: missing key 'compute.sm_count' (multiprocessors (compute units) of the device)
...
[2]
$ halfwarp run --bounds near ./app
halfwarp: --bounds: 'near' is not one of device, exact
[2]
$ halfwarp run --device h100,v1000 ./app
halfwarp: error: unknown device 'v1000'; did you mean 'v100'? (see 'halfwarp devices')
[2]
$ halfwarp run --device xbox-one ./app
halfwarp: xbox-one is not a device that runs CUDA programs
[2]
$ cp "$SOURCE"/devices/v100.json mine.json; halfwarp env --device h100:2,mine.json:3 | grep DEVICE
export HALFWARP_DEVICE='h100:2,/.../mine.json:3'...
$ halfwarp env --bounds exact | grep BOUNDS
export HALFWARP_BOUNDS='exact'...
$ halfwarp completion tcsh
halfwarp: no completion for 'tcsh'; there is bash, zsh, fish
[2]
$ halfwarp version extra
halfwarp: 'extra' is one operand too many; usage: halfwarp version [options]...
[2]
$ halfwarp occupancy --html /no/such/folder/x.html
...
halfwarp: cannot write '/no/such/folder/x.html': No such file or directory
[2]
$ printf '0 4, 8\n- 0x10 # five\n' > few; halfwarp coalesce --addresses few --json | grep -E 'bytes_(requested|used)'
  "bytes_requested": 16,
  "bytes_used": 16,
$ halfwarp banks --pattern 'threadIdx.x * 2' --json | grep degree
  "degree": 2,
$ halfwarp run --timeout 0 true
halfwarp: --timeout: 0 is out of range; allowed: 0.001 to 1000000 seconds
[2]
$ halfwarp run --timeout 1e9 true
halfwarp: --timeout: '1e9' is not a number of seconds (like 2 or 0.5)
[2]
$ halfwarp run --timeout -1 true
halfwarp: --timeout: '-1' is not a number of seconds (like 2 or 0.5)
[2]
$ halfwarp run --timeout 1.2.3 true
halfwarp: --timeout: '1.2.3' is not a number of seconds (like 2 or 0.5)
[2]
$ halfwarp run --timeout 2000000 true
halfwarp: --timeout: 2000000 is out of range; allowed: 0.001 to 1000000 seconds
[2]
$ halfwarp run --timeout 0.25 true
$ halfwarp run --workers 0 true
halfwarp: --workers: 0 is out of range; allowed: 1 to 4096
[2]
$ halfwarp run --bounds wide true
halfwarp: --bounds: 'wide' is not one of device, exact
[2]
$ halfwarp run --device , true
halfwarp: --device: a name is missing
[2]
$ halfwarp run --device h100:65 true
halfwarp: --device: h100:65 is too many; at most 64
[2]
$ halfwarp run --device h100:99999999999999999999 true
halfwarp: --device: h100:99999999999999999999 is too many; at most 64
[2]
