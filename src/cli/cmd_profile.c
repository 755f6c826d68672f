/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp profile: run a program with a model listening, then report what it heard. */
#include "environment.h"
#include "profile.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- devices ---- */

/* Each device of --device (several times, or with commas), by a name that loads it from any folder;
 * *host becomes one that can run CUDA programs, NULL if none can. */
static int join_devices(cli *c, const char **list, const char **host)
{
    *list = "";
    *host = NULL;
    for (size_t i = 0; i < c->text[OPT_devices].len; i++) {
        const char *at = c->text[OPT_devices].ptr[i];
        while (*at) {
            size_t len = strcspn(at, ",");
            const char *name = hw_arena_cstr(c->arena, (hw_str){ at, len });
            const hw_device *dev;
            at += len + (at[len] == ',');
            if (hw_device_load(c->arena, name, &dev, c->diag) != HW_OK)
                return cli_fail_diag(c);
            char *real = strchr(name, '/') ? realpath(name, NULL) : NULL;
            name = real ? hw_arena_cstr(c->arena, hw_str_of(real)) : dev->name;
            free(real);
            if (!*host && dev->vendor == HW_VENDOR_NVIDIA)
                *host = name;
            *list = hw_arena_printf(c->arena, "%s%s%s", *list, **list ? "," : "", name);
        }
    }
    return 0;
}

static int set_devices(cli *c)
{
    const char *list, *host;
    int status = join_devices(c, &list, &host);
    if (status || !*list)
        return status;
    setenv("HALFWARP_PROFILE_DEVICES", list, 1);
    if (host)
        setenv("HALFWARP_DEVICE", host, 1);
    return 0;
}

static void set_number(cli *c, cli_option_id id, const char *variable)
{
    if (c->given[id])
        setenv(variable, hw_arena_printf(c->arena, "%" PRId64, cli_number(c, id, 0)), 1);
}

static int set_variables(cli *c, const char *file)
{
    const char *kernel = NULL;
    if (cli_profile_kernel(c, &kernel) != HW_OK)
        return cli_fail_diag(c);
    setenv("HALFWARP_PROFILE", file, 1);
    setenv("HALFWARP_PROFILE_EACH", "1", 1);
    setenv("HALFWARP_PROFILE_LEVEL",
           c->given[OPT_caches]                                                       ? "caches"
           : c->given[OPT_source] || strcmp(cli_text(c, OPT_page, ""), "source") == 0 ? "lines"
                                                                                      : "count",
           1);
    if (kernel)
        setenv("HALFWARP_PROFILE_KERNEL", kernel, 1);
    set_number(c, OPT_launch_skip, "HALFWARP_PROFILE_SKIP");
    set_number(c, OPT_launch_count, "HALFWARP_PROFILE_COUNT");
    return set_devices(c);
}

/* ---- progress ---- */

static const char *plural(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

static void show_progress(cli *c, const hw_model_share *share, long long seconds)
{
    hw_model_progress p = hw_model_share_progress(share);
    FILE *to = c->err;
    fprintf(to, "\rhalfwarp: %" PRIu64 " %s done", p.launches,
            plural(p.launches, "kernel", "kernels"));
    if (p.kernel[0])
        fprintf(to, "; %.40s: %" PRIu64 " of %" PRIu64 " blocks", p.kernel, p.blocks_here,
                p.blocks_all);
    else
        fprintf(to, ", %" PRIu64 " %s", p.blocks, plural(p.blocks, "block", "blocks"));
    if (p.kernel[0] && p.seconds_left >= 1)
        fprintf(to, ", about %.0f s left", p.seconds_left);
    fprintf(to, "; %lld s\033[K", seconds);
    fflush(to);
}

enum { POLL_NS = 200000000, QUIET_SECONDS = 2 };

static volatile sig_atomic_t running; /* the program's process */

static void pass_on(int signal)
{
    if (running > 0)
        kill((pid_t)running, signal);
}

/* What ends the profiler ends the program first; what the program did is reported. */
static void catch_signals(pid_t child)
{
    static const int ends[] = { SIGTERM, SIGHUP };
    struct sigaction a = { .sa_handler = pass_on };
    running = (sig_atomic_t)child;
    for (size_t i = 0; i < HW_COUNTOF(ends); i++)
        sigaction(ends[i], &a, NULL);
    signal(SIGINT, SIG_IGN); /* the terminal sends these to the program as well */
    signal(SIGQUIT, SIG_IGN);
}

/* The status of waitpid. */
static int wait_for(cli *c, pid_t child, const hw_model_share *share)
{
    int status = 0;
    time_t began = time(NULL);
    bool shown = false, watch = share && isatty(STDERR_FILENO);
    const struct timespec pause = { 0, POLL_NS };
    for (;;) {
        pid_t p = waitpid(child, &status, watch ? WNOHANG : 0);
        if (p == child || (p < 0 && errno != EINTR))
            break;
        if (p != 0)
            continue;
        nanosleep(&pause, NULL);
        if (time(NULL) - began < QUIET_SECONDS)
            continue;
        show_progress(c, share, (long long)(time(NULL) - began));
        shown = true;
    }
    running = 0;
    if (shown)
        fprintf(c->err, "\r\033[K");
    return status;
}

/* ---- the program ---- */

typedef struct ended {
    int status; /* to exit with */
    bool by_itself;
} ended;

static int run_program(cli *c, const cli_environment *e, char **argv, const char *file, int share,
                       ended *out)
{
    cli_environment_apply(c, e);
    int status = set_variables(c, file);
    if (status)
        return status;
    if (share >= 0)
        setenv("HALFWARP_PROFILE_SHARED",
               hw_arena_printf(c->arena, "/proc/%ld/fd/%d", (long)getpid(), share), 1);
    fflush(c->out);
    pid_t child = fork();
    if (child < 0)
        return cli_fail(c, "cannot start a process: %s", strerror(errno));
    if (child == 0) {
        execvp(argv[0], argv);
        _exit(cli_program_missing(c, errno));
    }
    catch_signals(child);
    status = wait_for(c, child, share >= 0 ? hw_model_share_watch(share) : NULL);
    out->by_itself = !WIFSIGNALED(status);
    out->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}

/* The program did not write its profile: it crashed, or ended without its last functions. What it
 * left may be broken, so a process of its own reads it. */
static void rescue(int share, const char *file, bool by_itself)
{
    pid_t child = share < 0 ? -1 : fork();
    if (child == 0) {
        hw_arena *a = hw_arena_new();
        _exit(hw_model_share_write(share, file, by_itself, hw_diag_new(a)) != HW_OK);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

typedef HW_VEC(const char *) path_list;

/* The files that processes left, in the order in which they began, then what was rescued. */
static path_list files_of(cli *c, const char *file)
{
    path_list all = { 0 };
    for (int i = 0;; i++) {
        const char *path = hw_arena_printf(c->arena, "%s.%d", file, i);
        struct stat st;
        if (stat(path, &st) != 0)
            break;
        if (st.st_size > 0) /* else it was lost, or has launched nothing */
            hw_vec_push(c->arena, &all, path);
    }
    if (access(file, R_OK) == 0)
        hw_vec_push(c->arena, &all, file);
    return all;
}

static void remove_files(cli *c, const char *file)
{
    bool there = true;
    for (int i = 0; there; i++)
        there = unlink(hw_arena_printf(c->arena, "%s.%d", file, i)) == 0;
    unlink(file);
}

/* Processes that launched nothing say nothing, unless nobody did. */
static hw_status load(cli *c, const char *file, const path_list *paths, hw_report_run **run)
{
    path_list some = { 0 };
    for (size_t i = 0; i < paths->len; i++) {
        HW_TRY(hw_report_load(c->arena, paths->ptr[i], run, c->diag));
        if ((*run)->n_kernels)
            hw_vec_push(c->arena, &some, paths->ptr[i]);
    }
    if (some.len < 2)
        return some.len ? hw_report_load(c->arena, some.ptr[0], run, c->diag) : HW_OK;
    HW_TRY(hw_report_join(some.ptr, some.len, file, c->diag));
    return hw_report_load(c->arena, file, run, c->diag);
}

static int report(cli *c, const char *file, const ended *e)
{
    hw_report_run *run;
    int status = e->status;
    const path_list paths = files_of(c, file);
    if (!paths.len && status)
        return status;
    if (!paths.len)
        return cli_fail(c,
                        "the program launched no kernels through Halfwarp, so there is nothing to "
                        "report");
    bool loaded = load(c, file, &paths, &run) == HW_OK;
    if (loaded && run->n_kernels == 0)
        fprintf(c->err, "halfwarp: no launch of a chosen kernel was profiled\n");
    if (!loaded)
        cli_fail_diag(c);
    else if (cli_profile_show(c, run, NULL))
        status = status ? status : CLI_BAD_INPUT;
    return status;
}

/* Complains before the program runs of what would fail after it. */
static int check_first(cli *c)
{
    hw_report_options ignored;
    const char *kernel = NULL, *path = cli_text(c, OPT_output, NULL);
    int status = cli_profile_options(c, &ignored);
    if (status == 0 && cli_profile_kernel(c, &kernel) != HW_OK)
        return cli_fail_diag(c);
    if (status || !path)
        return status;
    const char *slash = strrchr(path, '/');
    size_t len = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    const char *folder = len ? hw_arena_cstr(c->arena, (hw_str){ path, len }) : ".";
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (access(there ? path : folder, W_OK) != 0)
        return cli_fail(c, "cannot write '%s': %s", path, strerror(errno));
    return there && S_ISDIR(st.st_mode) ? cli_fail(c, "cannot write '%s': it is a folder", path)
                                        : 0;
}

int cmd_profile(cli *c)
{
    cli_environment e;
    char **argv;
    int status = check_first(c);
    if (status == 0)
        status = cli_environment_make(c, &e);
    if (status == 0)
        status = cli_program_make(c, &e, &argv);
    if (status)
        return status;
    const char *folder = getenv("TMPDIR");
    char *path = hw_arena_printf(c->arena, "%s/halfwarp-profile-XXXXXX",
                                 folder && *folder ? folder : "/tmp");
    if (!mkdtemp(path))
        return cli_fail(c, "cannot make a folder in %s: %s", folder ? folder : "/tmp",
                        strerror(errno));
    const char *file = hw_arena_printf(c->arena, "%s/profile.json", path);
    int share = hw_model_share_make();
    ended how = { 0 };
    status = run_program(c, &e, argv, file, share, &how);
    if (status == 0)
        rescue(share, file, how.by_itself);
    status = status ? status : report(c, file, &how);
    remove_files(c, file);
    rmdir(path);
    return status;
}
