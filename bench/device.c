/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the device room counts: evaluations a second on one core, and the time of `halfwarp occupancy --all-devices`.
 * Usage: bench_device [PATH-OF-HALFWARP] */
#include "hw_device.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

extern char **environ;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct work {
    const hw_device *device;
    uint64_t address[HW_LANES_MAX];
    uint32_t sink;
} work;

typedef void step(work *w, uint32_t i);

static void occupancy(work *w, uint32_t i)
{
    hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
    hw_occupancy_result r;
    q.threads = 32 * (1 + i % 32);
    q.registers = q.vgprs = 1 + i % 128;
    q.shared_static = q.lds = i % 49152;
    hw_occupancy(w->device, &q, &r);
    w->sink += r.blocks;
}

static void explain(work *w, uint32_t i)
{
    hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
    static hw_occupancy_report rep;
    q.threads = 32 * (1 + i % 32);
    q.registers = 1 + i % 128;
    hw_occupancy_explain(w->device, &q, &rep);
    w->sink += rep.step_count;
}

static hw_access access_of(work *w, uint32_t i)
{
    uint32_t lanes = w->device->compute.warp_size;
    for (uint32_t lane = 0; lane < lanes; lane++)
        w->address[lane] = 4 * ((uint64_t)lane * (1 + i % 33) + i % 7);
    return (hw_access){ .address = w->address, .mask = UINT64_MAX, .lanes = lanes, .width = 4 };
}

static void banks(work *w, uint32_t i)
{
    hw_access a = access_of(w, i);
    hw_bank_result r;
    hw_bank_access(w->device, &a, &r);
    w->sink += r.passes;
}

static void coalesce(work *w, uint32_t i)
{
    hw_access a = access_of(w, i);
    hw_coalesce_result r;
    hw_coalesce_access(w->device, &a, &r, NULL);
    w->sink += r.transactions;
}

/* Millions of steps a second: the best of five tenths of a second. */
static double rate(work *w, step *run)
{
    double best = 0;
    for (int round = 0; round < 5; round++) {
        uint32_t n = 0;
        double start = now(), end;
        do {
            for (int k = 0; k < 256; k++)
                run(w, n++);
            end = now();
        } while (end - start < 0.1);
        double r = n / (end - start) / 1e6;
        best = r > best ? r : best;
    }
    return best;
}

/* Milliseconds of one run of the program, the best of 20; negative if it fails. */
static double command_ms(char *const argv[])
{
    double best = -1;
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < 20; i++) {
        pid_t pid;
        int status = -1;
        double start = now();
        if (posix_spawn(&pid, argv[0], &quiet, NULL, argv, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
            break;
        double ms = (now() - start) * 1e3;
        best = best < 0 || ms < best ? ms : best;
    }
    posix_spawn_file_actions_destroy(&quiet);
    return best;
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "geforce-8800-gtx", "gtx-480", "k80", "p100", "h100",
                                         "xbox-one" };
    hw_arena *a = hw_arena_new();
    printf("millions a second  %12s %12s %12s %12s\n", "occupancy", "explain", "banks", "coalesce");
    for (size_t i = 0; i < HW_COUNTOF(names); i++) {
        static work w;
        if (hw_device_load(a, names[i], &w.device, NULL) != HW_OK)
            return 1;
        printf("%-18s %12.2f %12.4f %12.2f %12.2f\n", names[i], rate(&w, occupancy),
               rate(&w, explain), rate(&w, banks), rate(&w, coalesce));
    }
    if (argc > 1) {
        char *const command[] = { argv[1],          (char *)"occupancy", (char *)"--all-devices",
                                  (char *)"--regs", (char *)"40",        NULL };
        printf("halfwarp occupancy --all-devices: %.1f ms\n", command_ms(command));
    }
    hw_arena_free(a);
    return 0;
}
