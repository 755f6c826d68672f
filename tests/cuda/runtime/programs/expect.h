// SPDX-License-Identifier: Apache-2.0
// EXPECT(value, wanted): says where they differ. A program ends with `return expect_status();`.
#ifndef EXPECT_H
#define EXPECT_H
#include <cstdio>

static int expect_failed;

static inline void expect_(long long got, long long want, const char *what, const char *file,
                           int line)
{
    if (got == want)
        return;
    expect_failed++;
    printf("%s:%d: %s is %lld, not %lld\n", file, line, what, got, want);
}

#define EXPECT(got, want) expect_((long long)(got), (long long)(want), #got, __FILE__, __LINE__)
#define OK(call)          EXPECT(call, cudaSuccess)

static inline int expect_status()
{
    printf("%s\n", expect_failed ? "FAILED" : "ok");
    return expect_failed != 0;
}
#endif
