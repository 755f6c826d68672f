/* SPDX-License-Identifier: Apache-2.0
 *
 * The handle table. A handle is 47 bits: kind, generation and number of a slot; never a pointer.
 * Slots are never given back to the host, so any handle, however old or made up, can be looked up;
 * what does not match is no handle. Look-ups take no lock; slots are reused oldest first, so that a
 * stale handle meets its old slot long before its generation comes round again.
 */
#include "driver.h"

#include <stdlib.h>

#define INDEX_BITS 22
#define GEN_BITS   15
#define CHUNK_BITS 10
#define CHUNKS     (1u << (INDEX_BITS - CHUNK_BITS))

typedef struct slot {
    _Atomic uint32_t tag; /* kind << GEN_BITS | generation; kind 0: free */
    uint32_t next;        /* of the free list */
    void *_Atomic object;
} slot;

static slot *_Atomic chunks[CHUNKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t used = 1, free_first, free_last; /* slot 0 is never given out */

static slot *slot_at(uint32_t index)
{
    slot *c = atomic_load_explicit(&chunks[index >> CHUNK_BITS], memory_order_acquire);
    return c ? &c[index & ((1u << CHUNK_BITS) - 1)] : NULL;
}

/* A free slot; lock held. 0: none left. */
static uint32_t take(void)
{
    if (free_first) {
        uint32_t index = free_first;
        free_first = slot_at(index)->next;
        if (!free_first)
            free_last = 0;
        return index;
    }
    if (used >> INDEX_BITS)
        return 0;
    if (!slot_at(used)) {
        slot *c = calloc((size_t)1 << CHUNK_BITS, sizeof *c);
        if (!c)
            return 0;
        atomic_store_explicit(&chunks[used >> CHUNK_BITS], c, memory_order_release);
    }
    return used++;
}

void *hw_cu_handle_new(hw_cu_kind kind, void *object)
{
    pthread_mutex_lock(&lock);
    uint32_t index = take();
    uintptr_t handle = 0;
    if (index) {
        slot *s = slot_at(index);
        uint32_t gen =
            (atomic_load_explicit(&s->tag, memory_order_relaxed) + 1) & ((1u << GEN_BITS) - 1);
        uint32_t tag = (uint32_t)kind << GEN_BITS | gen;
        atomic_store_explicit(&s->object, object, memory_order_relaxed);
        atomic_store_explicit(&s->tag, tag, memory_order_release);
        handle = ((uintptr_t)tag << INDEX_BITS | index) << 4;
    }
    pthread_mutex_unlock(&lock);
    return (void *)handle;
}

void *hw_cu_handle_get(const void *handle, hw_cu_kind kind)
{
    uintptr_t h = (uintptr_t)handle;
    uint32_t index = (uint32_t)(h >> 4) & ((1u << INDEX_BITS) - 1);
    uintptr_t tag = h >> (4 + INDEX_BITS);
    if ((h & 15) != 0 || tag >> GEN_BITS != (uintptr_t)kind)
        return NULL;
    slot *s = slot_at(index);
    if (!s || atomic_load_explicit(&s->tag, memory_order_acquire) != tag)
        return NULL;
    return atomic_load_explicit(&s->object, memory_order_relaxed);
}

void hw_cu_handle_drop(const void *handle)
{
    uint32_t index = (uint32_t)((uintptr_t)handle >> 4) & ((1u << INDEX_BITS) - 1);
    pthread_mutex_lock(&lock);
    slot *s = slot_at(index);
    uint32_t gen = atomic_load_explicit(&s->tag, memory_order_relaxed) & ((1u << GEN_BITS) - 1);
    atomic_store_explicit(&s->tag, gen, memory_order_release);
    atomic_store_explicit(&s->object, NULL, memory_order_relaxed);
    s->next = 0;
    if (free_last)
        slot_at(free_last)->next = index;
    else
        free_first = index;
    free_last = index;
    pthread_mutex_unlock(&lock);
}

/* ---- lists ---- */

void hw_cu_list_init(hw_cu_link *head)
{
    head->prev = head->next = head;
}

void hw_cu_list_add(hw_cu_link *head, hw_cu_link *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

void hw_cu_list_remove(hw_cu_link *item)
{
    if (!item->next)
        return;
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->next = item->prev = NULL;
}
