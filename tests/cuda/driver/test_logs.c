/* SPDX-License-Identifier: Apache-2.0
 * Test: the driver's log: what its notices say, from an iterator on, in memory, in a file, and to callbacks. */
#include "rig.h"

#include <unistd.h>

typedef struct heard {
    int n;
    char last[512];
} heard;

static void on_log(void *data, CUlogLevel level, char *message, size_t length)
{
    heard *h = data;
    assert_int_equal(level, CU_LOG_LEVEL_ERROR);
    assert_int_equal(strlen(message), length);
    h->n++;
    snprintf(h->last, sizeof h->last, "%s", message);
}

/* A notice that nothing has said before. */
static void say(const char *name)
{
    char text[256];
    CUmodule m;
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { %s; ret; }\n",
             name);
    ERR(INVALID_PTX, cuModuleLoadData(&m, text));
}

static void in_memory(void **state)
{
    char all[4096], part[4096];
    size_t size = sizeof all;
    CUlogIterator i, j;
    (void)state;
    say("first_one");
    OK(cuLogsCurrent(&i, 0));
    ERR(INVALID_VALUE, cuLogsCurrent(&i, 1));
    say("second_one");
    say("third_one");
    OK(cuLogsDumpToMemory(NULL, all, &size, 0));
    assert_int_equal(size, strlen(all));
    assert_non_null(strstr(all, "first_one"));
    assert_non_null(strstr(all, "third_one"));
    assert_int_equal(all[size - 1], '\n');
    j = i;
    size = sizeof part;
    OK(cuLogsDumpToMemory(&i, part, &size, 0));
    assert_null(strstr(part, "first_one"));
    assert_non_null(strstr(part, "second_one"));
    size = sizeof part;
    OK(cuLogsDumpToMemory(&i, part, &size, 0)); /* it has moved on */
    assert_int_equal(size, 0);
    size = 95; /* one line and a word about the others */
    OK(cuLogsDumpToMemory(&j, part, &size, 0));
    assert_non_null(strstr(part, "third_one"));
    assert_null(strstr(part, "second_one"));
    assert_non_null(strstr(part, "lost"));
    size = 5;
    ERR(INVALID_VALUE, cuLogsDumpToMemory(NULL, part, &size, 0));
    assert_int_equal(size, 0);
    size = 0;
    ERR(INVALID_VALUE, cuLogsDumpToMemory(NULL, part, &size, 0));
}

static void in_a_file(void **state)
{
    char path[] = "/tmp/halfwarp-logs-XXXXXX", text[4096] = "";
    int f = mkstemp(path);
    (void)state;
    say("into_a_file");
    OK(cuLogsDumpToFile(NULL, path, 0));
    assert_true(read(f, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "into_a_file"));
    close(f);
    unlink(path);
    ERR(INVALID_VALUE, cuLogsDumpToFile(NULL, "/no/such/folder/log", 0));
}

static void callbacks(void **state)
{
    heard h = { 0 };
    CUlogsCallbackHandle a, b;
    (void)state;
    OK(cuLogsRegisterCallback(on_log, &h, &a));
    OK(cuLogsRegisterCallback(on_log, &h, &b));
    ERR(INVALID_VALUE, cuLogsRegisterCallback(NULL, &h, &b));
    say("heard_twice");
    assert_int_equal(h.n, 2);
    assert_non_null(strstr(h.last, "heard_twice"));
    OK(cuLogsUnregisterCallback(a));
    ERR(INVALID_VALUE, cuLogsUnregisterCallback(a));
    say("heard_once");
    assert_int_equal(h.n, 3);
    OK(cuLogsUnregisterCallback(b));
    say("heard_by_none");
    assert_int_equal(h.n, 3);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = { T(in_memory), T(in_a_file), T(callbacks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
