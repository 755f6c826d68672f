// SPDX-License-Identifier: Apache-2.0
// Sparse matrix times vector in CSR form: a thread a row, then a warp a row.
#include "example.h"
#include <cmath>
#include <vector>

__global__ void thread_a_row(int rows, const int *start, const int *column, const float *value,
                             const float *x, float *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = start[row]; i < start[row + 1]; i++)
        sum += value[i] * x[column[i]];
    y[row] = sum;
}

__global__ void warp_a_row(int rows, const int *start, const int *column, const float *value,
                           const float *x, float *y)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = start[row] + lane; i < start[row + 1]; i += 32)
        sum += value[i] * x[column[i]];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    if (lane == 0)
        y[row] = sum;
}

template <class T> T *to_device(const std::vector<T> &host)
{
    T *device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

int main()
{
    const int rows = 3000;
    std::vector<int> start(1, 0), column;
    std::vector<float> value, x(rows), y(rows);
    unsigned seed = 17;
    for (int r = 0; r < rows; r++) {
        for (unsigned k = next_random(seed) % 40; k > 0; k--) { // rows of 0 to 39 entries
            column.push_back((int)(next_random(seed) % rows));
            value.push_back(next_random(seed) / 16777216.0f);
        }
        start.push_back((int)column.size());
        x[r] = next_random(seed) / 16777216.0f;
    }
    int *dstart = to_device(start), *dcolumn = to_device(column);
    float *dvalue = to_device(value), *dx = to_device(x), *dy = to_device(y);

    bool good = true;
    for (int way = 0; way < 2; way++) {
        if (way == 0)
            thread_a_row<<<(rows + 127) / 128, 128>>>(rows, dstart, dcolumn, dvalue, dx, dy);
        else
            warp_a_row<<<(rows + 3) / 4, 128>>>(rows, dstart, dcolumn, dvalue, dx, dy);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(y.data(), dy, rows * sizeof(float), cudaMemcpyDeviceToHost));
        for (int r = 0; r < rows; r++) {
            double want = 0;
            for (int i = start[r]; i < start[r + 1]; i++)
                want += (double)value[i] * x[column[i]];
            good &= std::fabs(y[r] - want) <= 1e-5 * (1 + want);
        }
    }
    for (void *p : { (void *)dstart, (void *)dcolumn, (void *)dvalue, (void *)dx, (void *)dy })
        CHECK(cudaFree(p));
    return verdict("spmv", good);
}
