# SPDX-License-Identifier: Apache-2.0
"""What the makers of random programs share: a source of chance, and the text around what they make. A program is one file that
nvcc builds for the device and g++ for the host, and prints the same lines on both."""
import random

INTS = ['int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'int64_t', 'uint64_t']

HEAD = '''#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef __CUDACC__
#define BOTH __host__ __device__
#else
#define BOTH
#endif
/* Small numbers, large ones and some between. */
static void fill(uint32_t *in)
{
    uint32_t x = %du;
    for (int i = 0; i < 256; i++) {
        x = x * 1664525u + 1013904223u;
        in[i] = i %% 3 == 0 ? x >> 24 : i %% 3 == 1 ? x : x >> 16 & 1023;
    }
}
'''


class Chance:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def of(self, *choices):
        return self.r.choice(choices)

    def below(self, n):
        return self.r.randrange(n)

    def often(self, share):
        return self.r.random() < share

    def weighted(self, pairs):
        """One of [(weight, what)]."""
        return self.r.choices([w for _, w in pairs], [n for n, _ in pairs])[0]
