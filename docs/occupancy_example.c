/* SPDX-License-Identifier: Apache-2.0
 *
 * The device library from C: for a kernel of 40 registers and 16 KB of shared memory, which block size is best on which
 * device, what stops one more block, and what a transposed tile costs.
 *
 *     cc occupancy_example.c -lhalfwarp-device && ./a.out
 */
#include <halfwarp/device.h>

#include <stdio.h>

/* Shared memory that grows with the block: 64 bytes a thread. */
static uint64_t shared_of(void *context, uint32_t threads)
{
    (void)context;
    return 64u * threads;
}

static void occupancy_on(const hw_device *dev)
{
    hw_occupancy_query query = HW_OCCUPANCY_QUERY_INIT;
    hw_occupancy_result result;
    query.threads = 256;
    query.registers = 40;
    query.shared_static = 16 * 1024;
    if (hw_occupancy(dev, &query, &result))
        printf("%s: %u blocks, %u of %u warps, limited by %s\n", hw_device_title(dev),
               result.blocks, result.warps, result.max_warps, hw_limit_name(result.limiter));
    else
        printf("%s: cannot launch: %s\n", hw_device_title(dev), hw_refusal_text(result.refusal));
    query.shared_static = 0;
    uint32_t grid, best = hw_occupancy_block_size(dev, &query, 0, shared_of, NULL, &grid);
    printf("    with 64 bytes of shared memory a thread: blocks of %u, %u to fill the device\n",
           best, grid);
}

/* Column 0 of float tile[32][columns]. */
static void tile_on(const hw_device *dev, uint32_t columns)
{
    uint64_t address[32];
    hw_access access = {
        .address = address, .mask = UINT32_MAX, .lanes = 32, .width = 4, .kind = HW_LOAD
    };
    hw_bank_result banks;
    hw_coalesce_result memory;
    for (uint32_t lane = 0; lane < 32; lane++)
        address[lane] = 4 * lane * columns;
    hw_bank_access(dev, &access, &banks);
    hw_coalesce_access(dev, &access, &memory, NULL);
    printf(
        "    a column of %u: %u passes in shared memory; %u bytes moved for %u in global memory\n",
        columns, banks.passes, (unsigned)memory.bytes_moved, (unsigned)memory.bytes_requested);
}

int main(void)
{
    static const char *const names[] = { "geforce-8800-gtx", "v100", "h100" };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        char message[256];
        const hw_device *dev = hw_device_open(names[i], message, sizeof message);
        if (!dev) {
            fprintf(stderr, "%s\n", message);
            return 1;
        }
        occupancy_on(dev);
        tile_on(dev, 32);
        tile_on(dev, 33);
        hw_device_close(dev);
    }
    return 0;
}
