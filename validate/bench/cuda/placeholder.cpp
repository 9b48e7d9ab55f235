#include "validate/bench/benchmark.h"
