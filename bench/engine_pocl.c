/* SPDX-License-Identifier: Apache-2.0
 * The pocl engine: kernels.cl on the first OpenCL CPU device named pthread or cpu. */
#define CL_TARGET_OPENCL_VERSION 120
#include "engine.h"

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel kernel;
static cl_mem buffers[MAX_ARGS];
static const work *current;

static char *read_source(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/kernels.cl", dir);
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    if (f && text && !fread(text, 1, (1 << 16) - 1, f)) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return f ? text : NULL;
}

static bool open_pocl(const char *dir, char *why, size_t why_size)
{
    cl_platform_id platform;
    cl_device_id device;
    char *source = read_source(dir);
    const char *text = source;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) || !source) {
        snprintf(why, why_size, "no OpenCL device (install pocl-opencl-icd) or no kernels.cl");
        return false;
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &text, NULL, NULL);
    bool good = !clBuildProgram(program, 1, &device, "-cl-fast-relaxed-math", NULL, NULL);
    if (!good)
        snprintf(why, why_size, "pocl does not build kernels.cl");
    free(source);
    return good;
}

static bool set_arg(const arg *a, unsigned i)
{
    cl_int e;
    switch (a->kind) {
    case ARG_BUFFER:
        buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, a->bytes, NULL, &e);
        return !e &&
               !clEnqueueWriteBuffer(queue, buffers[i], CL_TRUE, 0, a->bytes, a->host, 0, NULL,
                                     NULL) &&
               !clSetKernelArg(kernel, i, sizeof buffers[i], &buffers[i]);
    case ARG_INT:
        return !clSetKernelArg(kernel, i, sizeof a->i, &a->i);
    default:
        return !clSetKernelArg(kernel, i, sizeof a->f, &a->f);
    }
}

static bool prepare(const work *w)
{
    cl_int e;
    current = w;
    kernel = clCreateKernel(program, w->name, &e);
    bool good = !e;
    for (unsigned i = 0; good && i < w->nargs; i++)
        good = set_arg(&w->args[i], i);
    return good;
}

static bool run(void)
{
    size_t local[2] = { current->block[0], current->block[1] };
    size_t global[2] = { (size_t)current->grid[0] * local[0], (size_t)current->grid[1] * local[1] };
    return !clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL, NULL) &&
           !clFinish(queue);
}

static bool fetch(unsigned index, void *to)
{
    return !clEnqueueReadBuffer(queue, buffers[index], CL_TRUE, 0, current->args[index].bytes, to,
                                0, NULL, NULL);
}

static void finish(void)
{
    for (unsigned i = 0; i < MAX_ARGS; i++) {
        if (buffers[i])
            clReleaseMemObject(buffers[i]);
        buffers[i] = NULL;
    }
    clReleaseKernel(kernel);
}

const engine engine_pocl = { "pocl", open_pocl, prepare, run, fetch, finish };
