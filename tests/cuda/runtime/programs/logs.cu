// SPDX-License-Identifier: Apache-2.0
// The log: what is said of a fault comes to a callback, to memory and to a file.
#include "expect.h"
#include <cstring>
#include <string>

__global__ void trap() { asm("trap;"); }

struct heard {
    int n;
    std::string last;
};

static void on_log(void *data, cudaLogLevel level, char *message, size_t length)
{
    heard *h = (heard *)data;
    EXPECT(level, cudaLogLevelError);
    EXPECT(strlen(message), length);
    h->n++;
    h->last = message;
}

static std::string content(const char *path)
{
    std::string all;
    FILE *f = fopen(path, "r");
    for (int c; f && (c = fgetc(f)) != EOF;)
        all += (char)c;
    if (f)
        fclose(f);
    return all;
}

int main(int argc, char **argv)
{
    heard h = {};
    cudaLogsCallbackHandle callback;
    cudaLogIterator before, again;
    char text[1024];
    size_t size = sizeof text;
    OK(cudaLogsRegisterCallback(on_log, &h, &callback));
    OK(cudaLogsCurrent(&before, 0));
    EXPECT(cudaLogsCurrent(&before, 1), cudaErrorInvalidValue);
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    again = before;
    trap<<<1, 1>>>();
    EXPECT(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    EXPECT(h.n, 1);
    EXPECT(h.last.find("trap") != std::string::npos, true);
    OK(cudaLogsDumpToMemory(&before, text, &size, 0));
    EXPECT(std::string(text).find(h.last) != std::string::npos, true);
    std::string path = std::string(argv[0]) + ".log";
    OK(cudaLogsDumpToFile(&again, path.c_str(), 0));
    EXPECT(content(path.c_str()) == text, true);
    OK(cudaLogsUnregisterCallback(callback));
    EXPECT(cudaLogsUnregisterCallback(callback), cudaErrorInvalidValue);
    (void)argc;
    return expect_status();
}
