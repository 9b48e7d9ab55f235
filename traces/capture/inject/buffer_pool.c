#include "buffer_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
  pthread_mutex_t lock;
  pthread_cond_t filled;
  uint8_t** free_buffers; /* a stack: what was used last is still in a cache */
  uint32_t free_count;
  FilledBuffer* queue; /* a ring of `count` places: no buffer is in it twice */
  uint32_t first, queued;
  uint32_t count, made; /* buffers get their memory when they are first taken */
  size_t bytes;
  uint64_t refused;
  int closed;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .closed = 1};

int pool_open(uint32_t count, size_t bytes) {
  uint8_t** free_buffers = calloc(count, sizeof *free_buffers);
  FilledBuffer* queue = calloc(count, sizeof *queue);
  if (free_buffers == NULL || queue == NULL) {
    free(free_buffers);
    free(queue);
    return ENOMEM;
  }
  pthread_mutex_lock(&pool.lock);
  pool.free_buffers = free_buffers;
  pool.queue = queue;
  pool.count = count;
  pool.bytes = bytes;
  pool.closed = 0;
  pthread_mutex_unlock(&pool.lock);
  return 0;
}

size_t pool_buffer_bytes(void) { return pool.bytes; }

uint8_t* pool_take(void) {
  uint8_t* buffer = NULL;
  pthread_mutex_lock(&pool.lock);
  if (!pool.closed) {
    if (pool.free_count > 0) {
      buffer = pool.free_buffers[--pool.free_count];
    } else if (pool.made < pool.count) {
      buffer = aligned_alloc(8, pool.bytes);
      if (buffer != NULL) ++pool.made;
    }
    if (buffer == NULL) ++pool.refused;
  }
  pthread_mutex_unlock(&pool.lock);
  return buffer;
}

void pool_fill(uint8_t* buffer, size_t valid) {
  if (buffer == NULL) return;
  pthread_mutex_lock(&pool.lock);
  if (valid == 0 || pool.queued == pool.count) {
    pool.free_buffers[pool.free_count++] = buffer;
  } else {
    const FilledBuffer filled = {buffer, valid};
    pool.queue[(pool.first + pool.queued++) % pool.count] = filled;
    pthread_cond_signal(&pool.filled);
  }
  pthread_mutex_unlock(&pool.lock);
}

int pool_next(FilledBuffer* filled) {
  int found = 0;
  pthread_mutex_lock(&pool.lock);
  while (pool.queued == 0 && !pool.closed) pthread_cond_wait(&pool.filled, &pool.lock);
  if (pool.queued > 0) {
    *filled = pool.queue[pool.first];
    pool.first = (pool.first + 1) % pool.count;
    --pool.queued;
    found = 1;
  }
  pthread_mutex_unlock(&pool.lock);
  return found;
}

void pool_give_back(uint8_t* buffer) {
  pthread_mutex_lock(&pool.lock);
  pool.free_buffers[pool.free_count++] = buffer;
  pthread_mutex_unlock(&pool.lock);
}

void pool_close(void) {
  pthread_mutex_lock(&pool.lock);
  pool.closed = 1;
  pthread_cond_broadcast(&pool.filled);
  pthread_mutex_unlock(&pool.lock);
}

uint64_t pool_refused(void) {
  pthread_mutex_lock(&pool.lock);
  const uint64_t refused = pool.refused;
  pthread_mutex_unlock(&pool.lock);
  return refused;
}
