/* SPDX-License-Identifier: Apache-2.0
 * Opens, runs and closes the shared objects it is given, twice. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 0; i < 2 * (argc - 1); i++) {
        void *h = dlopen(argv[1 + i % (argc - 1)], RTLD_NOW);
        int (*run)(void) = h ? (int (*)(void))dlsym(h, "plugin_run") : NULL;
        if (!run) {
            printf("%s\n", dlerror());
            return 1;
        }
        bad |= run();
        fflush(stdout);
        dlclose(h);
    }
    return bad;
}
