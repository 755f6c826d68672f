/* SPDX-License-Identifier: Apache-2.0
 * jit: a lane's 8 or 16 bytes of a volatile access are never seen in parts, whatever the address's
 * shape: programs pack a flag with a value and rely on it. Another thread reads or writes the pairs
 * meanwhile: always both halves alike. */
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS = 32, APART = 64, OUT = PAIRS * APART };
#define TURNS_TEXT "100000"

typedef struct pair_case {
    const char *type,
        *address;   /* the latter sets %a (i64) from %o, %t (lane), %v (the lane, loaded) */
    uint32_t apart; /* bytes from lane to lane */
    bool store;
} pair_case;

#define ONE      "  %a = mov.i64 %o\n"
#define ALONG    "  %w = sext.i32.i64 %t\n  %w = mul.i64 %w, 16\n  %a = add.i64 %o, %w\n"
#define SPREAD   "  %w = sext.i32.i64 %t\n  %w = mul.i64 %w, 64\n  %a = add.i64 %o, %w\n"
#define ANYWHERE "  %w = sext.i32.i64 %v\n  %w = mul.i64 %w, 64\n  %a = add.i64 %o, %w\n"
/* clang-format off */
static const pair_case cases[] = {
    { "i64", ONE, 0, false },       { "i64", ONE, 0, true },       { "i32", ONE, 0, false },       { "i32", ONE, 0, true },
    { "i64", ALONG, 16, false },    { "i64", ALONG, 16, true },    { "i32", ALONG, 16, false },    { "i32", ALONG, 16, true },
    { "i64", SPREAD, 64, false },   { "i64", SPREAD, 64, true },   { "i32", SPREAD, 64, false },   { "i32", SPREAD, 64, true },
    { "i64", ANYWHERE, 64, false }, { "i64", ANYWHERE, 64, true }, { "i32", ANYWHERE, 64, false }, { "i32", ANYWHERE, 64, true },
};
/* clang-format on */

static const char load[] = "  %x, %y = load.TYPE.global.volatile.x2 [%a]\n"
                           "  %q = icmp.TYPE.ne %x, %y\n  @%q store.i32.global [%e], 1\n";
static const char store[] = "  store.TYPE.global.volatile.x2 [%a], %x, %x\n"
                            "  %x = add.TYPE %x, 1\n";

static char *text_of(const pair_case *c, char *out, size_t room)
{
    char body[400] = "", *at = body;
    const char *from = c->store ? store : load;
    for (const char *hit; (hit = strstr(from, "TYPE")); from = hit + 4)
        at += snprintf(at, sizeof body - (size_t)(at - body), "%.*s%s", (int)(hit - from), from,
                       c->type);
    snprintf(at, sizeof body - (size_t)(at - body), "%s", from);
    snprintf(
        out, room,
        "module shared=0 params=8 reqntid=0,0,0 indirect=0\nkernel @k local=0 {\n"
        "  reg i32 %%t %%v %%n\n  reg i64 %%p %%o %%a %%w %%e\n  reg %s %%x %%y\n  reg i1 %%q\n"
        "entry:\n  %%p = param_addr\n  %%o = load.i64.param [%%p]\n  %%e = add.i64 %%o, %d\n"
        "  %%t = sreg.i32 tid_x\n  %%w = sext.i32.i64 %%t\n  %%w = mul.i64 %%w, 4\n"
        "  %%w = add.i64 %%e, %%w\n  %%v = load.i32.global [%%w + 4]\n%s"
        "  %%x = mov.%s 0\n  %%n = mov.i32 0\n  br again\nagain:\n%s"
        "  %%n = add.i32 %%n, 1\n  %%q = icmp.i32.lt_u %%n, " TURNS_TEXT
        "\n  cbr %%q, again, end\nend:\n  exit\n}\n",
        c->type, OUT, c->address, c->type, body);
    return out;
}

typedef struct other {
    const pair_case *c;
    uint8_t *memory;
    _Atomic bool end;
    uint64_t torn, looks;
} other;

typedef uint64_t two __attribute__((vector_size(16)));

/* A pair read or written by one instruction. */
static uint64_t touch(const other *o, uint8_t *p, uint64_t k)
{
    bool wide = o->c->type[1] == '6';
    uint64_t half = k & UINT32_MAX;
    if (!o->c->store) {
        if (wide)
            *(volatile two *)(void *)p = (two){ k, k };
        else
            *(volatile uint64_t *)(void *)p = half | half << 32;
        return 0;
    }
    if (wide) {
        two x = *(volatile two *)(void *)p;
        return x[0] != x[1];
    }
    uint64_t x = *(volatile uint64_t *)(void *)p;
    return (uint32_t)x != x >> 32;
}

static void *touch_all(void *ctx)
{
    other *o = ctx;
    for (uint64_t k = 0; !atomic_load(&o->end); k++)
        for (uint32_t i = 0; i < PAIRS; i++, o->looks++)
            o->torn += touch(o, o->memory + (size_t)i * o->c->apart, k);
    return NULL;
}

static void pairs_travel_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2000];
        rig *r = rig_new(text_of(&cases[i], text, sizeof text));
        other o = { .c = &cases[i], .memory = r->memory };
        pthread_t thread;
        hw_status s = rig_compile(r);
        assert_string_equal(hw_diag_text(r->diag, r->arena).ptr, "");
        assert_int_equal(s, HW_OK);
        for (uint32_t l = 0; l < 32; l++) { /* each lane the place of another */
            uint32_t v = l * 7 % 32;
            memcpy(r->memory + OUT + 4 + 4 * l, &v, sizeof v);
        }
        r->params[0] = (uint64_t)(uintptr_t)r->memory;
        assert_int_equal(pthread_create(&thread, NULL, touch_all, &o), 0);
        bool ran = rig_run(r);
        atomic_store(&o.end, true);
        pthread_join(thread, NULL);
        uint32_t torn;
        memcpy(&torn, r->memory + OUT, sizeof torn);
        if (torn || o.torn)
            print_error("case %zu: torn\n", i);
        assert_true(ran);
        assert_int_equal(torn, 0);
        assert_int_equal(o.torn, 0);
        rig_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pairs_travel_as_one) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
