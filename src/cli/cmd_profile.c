/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp profile: run a program with a model listening, then report what it heard. */
#include "environment.h"
#include "profile.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
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
    const char *kernel = cli_text(c, OPT_kernels, NULL);
    setenv("HALFWARP_PROFILE", file, 1);
    setenv("HALFWARP_PROFILE_LEVEL",
           c->given[OPT_caches]   ? "caches"
           : c->given[OPT_source] ? "lines"
                                  : "count",
           1);
    if (kernel)
        setenv("HALFWARP_PROFILE_KERNEL", kernel, 1);
    set_number(c, OPT_launch_skip, "HALFWARP_PROFILE_SKIP");
    set_number(c, OPT_launch_count, "HALFWARP_PROFILE_COUNT");
    return set_devices(c);
}

/* ---- progress ---- */

/* Launches that the file tells of so far; the number stands near its beginning. */
static uint64_t launches_in(const char *path)
{
    char text[1024];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *at = strstr(text, "\"launches\":");
    return at ? strtoull(at + strlen("\"launches\":"), NULL, 10) : 0;
}

static void show_progress(const char *path, time_t seconds, FILE *to)
{
    uint64_t n = launches_in(path);
    fprintf(to, "\rhalfwarp: %" PRIu64 " launch%s done, %lld s \033[K", n, n == 1 ? "" : "es",
            (long long)seconds);
    fflush(to);
}

enum { POLL_NS = 200000000, QUIET_SECONDS = 2 };

static int wait_for(pid_t child, const char *file, FILE *progress)
{
    int status = 0;
    time_t began = time(NULL);
    bool shown = false;
    const struct timespec pause = { 0, POLL_NS };
    while (waitpid(child, &status, progress ? WNOHANG : 0) == 0) {
        nanosleep(&pause, NULL);
        if (time(NULL) - began < QUIET_SECONDS)
            continue;
        show_progress(file, time(NULL) - began, progress);
        shown = true;
    }
    if (shown)
        fprintf(progress, "\r\033[K");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- the program ---- */

static int run_program(cli *c, const cli_environment *e, char **argv, const char *file)
{
    cli_environment_apply(c, e);
    int status = set_variables(c, file);
    if (status)
        return status;
    fflush(c->out);
    pid_t child = fork();
    if (child < 0)
        return cli_fail(c, "cannot start a process: %s", strerror(errno));
    if (child == 0) {
        execvp(argv[0], argv);
        _exit(cli_program_missing(c, errno));
    }
    signal(SIGINT, SIG_IGN); /* the program gets it too; what it did is reported */
    signal(SIGQUIT, SIG_IGN);
    return wait_for(child, file, isatty(STDERR_FILENO) ? c->err : NULL);
}

static int report(cli *c, const char *file, int program_status)
{
    hw_report_run *run;
    bool missing = access(file, R_OK) != 0;
    int status = program_status;
    if (missing && program_status)
        return program_status;
    if (missing)
        return cli_fail(c,
                        "the program launched no kernels through Halfwarp, so there is nothing to "
                        "report");
    if (hw_report_load(c->arena, file, &run, c->diag) != HW_OK)
        cli_fail_diag(c);
    else if (cli_profile_show(c, run, NULL))
        status = status ? status : CLI_BAD_INPUT;
    return status;
}

int cmd_profile(cli *c)
{
    cli_environment e;
    char **argv;
    hw_report_options ignored;
    int status = cli_profile_options(c, &ignored); /* complain before the program runs */
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
    status = report(c, file, run_program(c, &e, argv, file));
    unlink(file);
    rmdir(path);
    return status;
}
