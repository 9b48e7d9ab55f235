/* A program that libmemwall_inject's own code records, with the fake CUPTI in CUPTI's place.
 *
 *   inject_scene [threads N] [rounds N] [repeat N] [refuse KIND] [fork] [late]
 *   inject_scene load LIBRARY
 *
 * Prints what was made and dropped. `repeat`: so often, a millisecond between. `fork`: a child ends by exit() first.
 * `late`: more is made after the capture's end. `load`: does what the CUDA driver does with CUDA_INJECTION64_PATH, and
 * leaves the fake alone. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cupti.h"

int InitializeInjection(void);

static void run_late(void) { fake_run(2, 100); }

static long number(int argc, char** argv, const char* word, long otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (strcmp(argv[i], word) == 0) return strtol(argv[i + 1], NULL, 10);
  return otherwise;
}

static int said(int argc, char** argv, const char* word) {
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], word) == 0) return 1;
  return 0;
}

static int load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 2;
  }
  void* symbol = dlsym(library, "InitializeInjection");
  int (*begin)(void) = NULL;
  memcpy(&begin, &symbol, sizeof begin);
  printf("began %d\n", begin());
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "load") == 0) return load(argv[2]);
  /* Handlers run last in, first out: this one comes behind the capture's own. */
  if (said(argc, argv, "late")) atexit(run_late);
  fake_refuse((int)number(argc, argv, "refuse", -2));
  const int began = InitializeInjection();
  const int again = InitializeInjection();
  if (said(argc, argv, "fork")) {
    const pid_t child = fork();
    if (child == 0) exit(0);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 3;
  }
  const long repeat = began ? number(argc, argv, "repeat", 1) : 0;
  for (long i = 0; i < repeat; ++i) {
    if (i > 0) usleep(1000);
    fake_run((unsigned)number(argc, argv, "threads", 4), (unsigned)number(argc, argv, "rounds", 1000));
  }
  const char* nvtx = getenv("NVTX_INJECTION64_PATH");
  printf("began %d %d made %llu dropped %llu period %u kernels %d nvtx %s\n", began, again,
         (unsigned long long)fake_made(), (unsigned long long)fake_dropped(), fake_flush_period(), fake_enabled(10),
         nvtx == NULL ? "-" : nvtx);
  return 0;
}
