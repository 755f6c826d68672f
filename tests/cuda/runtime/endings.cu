// SPDX-License-Identifier: Apache-2.0
// Ways for a program to end, or to go on where others end: endings MODE [MICROSECONDS]. What each should give is in
// test_endings.py.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

template <int N> __global__ void work(float *p)
{
    float s = 0;
    for (int i = 0; i < 200 * N; i++) {
        s = s * 1.5f + p[i & 31] * (N + i % 7);
        if (s > 1e10f)
            s = sqrtf(s) + N;
    }
    p[threadIdx.x] = s;
}

__global__ void forever(volatile int *p)
{
    while (*p == 0)
        ;
}

static float *memory;

static void launch_all()
{
    cudaStream_t s[4];
    for (auto &x : s)
        cudaStreamCreate(&x);
    work<1><<<1, 32, 0, s[0]>>>(memory);
    work<2><<<1, 32, 0, s[1]>>>(memory);
    work<3><<<1, 32, 0, s[2]>>>(memory);
    work<4><<<1, 32, 0, s[3]>>>(memory);
    work<5><<<1, 32, 0, s[0]>>>(memory);
    work<6><<<1, 32, 0, s[1]>>>(memory);
}

// Made before the first CUDA call, so it ends after the runtime has.
static struct Early {
    ~Early()
    {
        if (getenv("EARLY"))
            printf("early %d\n", (int)cudaFree(memory));
    }
} early;

struct Late {
    float *p = nullptr;
    Late() { cudaMalloc(&p, 64); }
    ~Late() { printf("late %d\n", (int)cudaFree(p)); }
};

static void soon(int us) { usleep(us); }

static void end_of_main(int us) { launch_all(), soon(us); }

static void exit_elsewhere(int us)
{
    std::thread t([=] { soon(us), exit(7); });
    launch_all();
    for (;;)
        work<9><<<1, 32>>>(memory), cudaDeviceSynchronize();
}

static void exit_in_callback(int)
{
    launch_all();
    cudaLaunchHostFunc(0, [](void *) { exit(7); }, nullptr);
    cudaDeviceSynchronize();
    pause();
}

static void quick(int us) { launch_all(), soon(us), quick_exit(7); }
static void at_once(int us) { launch_all(), soon(us), _exit(7); }
static void aborts(int us) { launch_all(), soon(us), abort(); }

static void without_main(int)
{
    std::thread([] {
        usleep(50000);
        work<1><<<1, 32>>>(memory);
        exit(cudaDeviceSynchronize() == cudaSuccess ? 7 : 1);
    }).detach();
    pthread_exit(nullptr);
}

static void child_that_execs(int)
{
    launch_all();
    pid_t p = fork();
    if (p == 0) {
        execl("/bin/true", "true", (char *)nullptr);
        _exit(1);
    }
    int status = 1;
    waitpid(p, &status, 0);
    exit(status == 0 && cudaDeviceSynchronize() == cudaSuccess ? 7 : 1);
}

static void child_that_calls(int)
{
    launch_all();
    pid_t p = fork();
    if (p == 0) {
        int n = -1;
        void *q;
        bool good = cudaMalloc(&q, 4) == cudaErrorInitializationError && cudaGetLastError() == cudaErrorInitializationError &&
                    cudaGetDeviceCount(&n) == cudaErrorInitializationError &&
                    cudaDeviceSynchronize() == cudaErrorInitializationError;
        work<1><<<1, 1>>>(memory);
        good = good && cudaGetLastError() == cudaErrorInitializationError;
        exit(good ? 0 : 1); // with the parent's handlers
    }
    int status = 1;
    waitpid(p, &status, 0);
    exit(status == 0 && cudaDeviceSynchronize() == cudaSuccess ? 7 : 1);
}

static void first_call_in_child(int)
{
    _exit(7); // see main: this mode makes no call before
}

static void interrupted(int)
{
    int *p;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    forever<<<1, 1>>>(p);
    std::thread([] { usleep(300000), kill(getpid(), SIGINT); }).detach();
    cudaDeviceSynchronize();
}

static void handled(int)
{
    static volatile sig_atomic_t seen;
    signal(SIGINT, [](int) { seen = 1; });
    for (int i = 0; i < 20; i++) {
        launch_all();
        kill(getpid(), SIGINT);
        if (cudaDeviceSynchronize() != cudaSuccess)
            exit(1);
    }
    exit(seen ? 7 : 1);
}

static void reset(int)
{
    for (int i = 0; i < 5; i++) {
        launch_all();
        if (cudaDeviceReset() != cudaSuccess || cudaMalloc(&memory, 1024) != cudaSuccess)
            exit(1);
        work<1><<<1, 32>>>(memory);
        if (cudaDeviceSynchronize() != cudaSuccess)
            exit(1);
    }
    exit(7);
}

static void destructors(int)
{
    setenv("EARLY", "1", 1);
    static Late late;
    atexit([] { printf("handler %d\n", (int)cudaDeviceSynchronize()); });
    exit(7);
}

static const struct {
    const char *name;
    void (*run)(int us);
} modes[] = {
    { "end_of_main", end_of_main },
    { "exit_elsewhere", exit_elsewhere },
    { "exit_in_callback", exit_in_callback },
    { "quick", quick },
    { "at_once", at_once },
    { "aborts", aborts },
    { "without_main", without_main },
    { "child_that_execs", child_that_execs },
    { "child_that_calls", child_that_calls },
    { "first_call_in_child", first_call_in_child },
    { "interrupted", interrupted },
    { "handled", handled },
    { "reset", reset },
    { "destructors", destructors },
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "first_call_in_child") == 0 && fork() != 0) {
        int status = 1;
        wait(&status);
        return WEXITSTATUS(status);
    }
    if (cudaMalloc(&memory, 1024) != cudaSuccess || cudaMemset(memory, 0, 1024) != cudaSuccess)
        return 1;
    for (auto &m : modes)
        if (argc > 1 && strcmp(argv[1], m.name) == 0)
            m.run(argc > 2 ? atoi(argv[2]) : 0);
    return 7;
}
