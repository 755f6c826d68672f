/* SPDX-License-Identifier: Apache-2.0
 *
 * `ptxas -v`, run and read: "Compiling entry function 'k' ...", then "Used 20 registers, used 1
 * barriers". */
#include "ptxas.h"

#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef HW_VEC(ptxas_kernel) kernel_vec;

/* The number before what on the line; 0 if there is none. */
static uint32_t number_before(const char *line, const char *what)
{
    const char *at = strstr(line, what);
    while (at && at > line && at[-1] == ' ')
        at--;
    while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? (uint32_t)strtoul(at, NULL, 10) : 0;
}

static void read_line(cli *c, const char *line, kernel_vec *out)
{
    const char *entry = strstr(line, "entry function '");
    if (entry) {
        const char *from = strchr(entry, '\'') + 1, *to = strchr(from, '\'');
        if (to)
            hw_vec_push(c->arena, out,
                        (ptxas_kernel){ .name = hw_arena_cstr(
                                            c->arena, (hw_str){ from, (size_t)(to - from) }) });
        return;
    }
    if (out->len && strstr(line, "registers")) {
        out->ptr[out->len - 1].registers = number_before(line, "registers");
        out->ptr[out->len - 1].barriers = number_before(line, "barriers");
    }
}

/* Starts ptxas on a file, its messages into a pipe whose reading end is returned; -1 if it cannot
 * be. */
static int start(const char *path, const char *arch, pid_t *pid)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    char *argv[] = { (char *)"ptxas",     (char *)"-v", (char *)arch, (char *)"-o",
                     (char *)"/dev/null", (char *)path, NULL };
    if (pipe(ends) != 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    int error = posix_spawnp(pid, "ptxas", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error == 0)
        return ends[0];
    close(ends[0]);
    errno = error;
    return -1;
}

static hw_status finish(cli *c, int from, pid_t pid, kernel_vec *out)
{
    char line[65536];
    const char *first_error = NULL;
    FILE *f = fdopen(from, "r");
    while (f && fgets(line, sizeof line, f)) {
        read_line(c, line, out);
        if (!first_error && (strstr(line, "error") || strstr(line, "fatal")))
            first_error = hw_arena_printf(c->arena, "%.*s", (int)strcspn(line, "\n"), line);
    }
    if (f)
        fclose(f);
    int status = 0;
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return HW_OK;
    cli_fail(c, "ptxas failed%s%s", first_error ? ": " : "", first_error ? first_error : "");
    return HW_E_INVALID;
}

hw_status cli_ptxas(cli *c, hw_str ptx, uint32_t arch, bool arch_specific, const ptxas_kernel **out,
                    size_t *n)
{
    char path[] = "/tmp/halfwarp-ptx-XXXXXX";
    kernel_vec kernels = { 0 };
    pid_t pid;
    int file = mkstemp(path);
    if (file < 0 || write(file, ptx.ptr, ptx.len) != (ssize_t)ptx.len) {
        cli_fail(c, "cannot write '%s': %s", path, strerror(errno));
        return HW_E_IO;
    }
    close(file);
    int from = start(
        path, hw_arena_printf(c->arena, "-arch=sm_%" PRIu32 "%s", arch, arch_specific ? "a" : ""),
        &pid);
    hw_status status = HW_E_NOT_FOUND;
    if (from < 0)
        cli_fail(c, "ptxas cannot be started: %s", strerror(errno));
    else
        status = finish(c, from, pid, &kernels);
    unlink(path);
    *out = kernels.ptr;
    *n = kernels.len;
    return status;
}

const ptxas_kernel *cli_ptxas_find(const ptxas_kernel *all, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}
