// MEMWALL_VECTOR_CLONES before a function: it is compiled for several generations of vector units, and the best
// that the processor has is chosen when the program starts. Binaries are carried to other machines, so nothing
// may be compiled for the one at hand.
//
// Sanitizers are not ready when the choice is made; where there is no such choice there is one version.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MEMWALL_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MEMWALL_VECTOR_CLONES
#endif
