// SPDX-License-Identifier: Apache-2.0
// Generic loads of another block's shared memory are counted as shared, not as global.
// arch: sm_90
// profile: l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum=0 l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum=16 hw__shared_ld_wavefronts_per_request=1
#include "check.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2) remote(int *out)
{
    __shared__ int mine[32];
    auto c = cg::this_cluster();
    mine[threadIdx.x] = (int)(blockIdx.x * 32 + threadIdx.x);
    c.sync();
    int v = c.map_shared_rank(mine, c.block_rank() ^ 1)[threadIdx.x];
    c.sync();
    out[blockIdx.x * 32 + threadIdx.x] = v;
}

int main()
{
    int *out = allocate<int>(128);
    remote<<<4, 32>>>(out);
    finish("remote");
    for (int i = 0; i < 128; i++)
        expect(out[i], i ^ 32, "remote");
    return report("remote");
}
