// SPDX-License-Identifier: Apache-2.0
// One pointer for both sides: a linked list built by the host, walked and changed by the device.
#include "example.h"

struct node {
    int value;
    node *next;
};

__managed__ int visited; // a variable both sides name

__global__ void double_all(node *list)
{
    for (node *n = list; n; n = n->next) {
        n->value *= 2;
        visited++;
    }
}

int main()
{
    node *list = nullptr;
    for (int i = 0; i < 100; i++) {
        node *n;
        CHECK(cudaMallocManaged(&n, sizeof(node)));
        *n = { i, list };
        list = n;
    }
    visited = 0;
    double_all<<<1, 1>>>(list);
    CHECK_LAUNCH();

    bool good = visited == 100;
    int want = 99;
    while (list) {
        good &= list->value == 2 * want--;
        node *next = list->next;
        CHECK(cudaFree(list));
        list = next;
    }
    return verdict("managed_memory", good && want == -1);
}
