// Writes the shipped sample anew: build/release/tests/write_sample traces/samples/gpt_124m.mwt
#include <cstdio>

#include "tests/support/sample.h"
#include "traces/trace/trace_file.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: write_sample FILE\n", stderr);
    return 2;
  }
  memwall::write_trace(memwall::sample_gpt_124m(), arguments[1]);
}
