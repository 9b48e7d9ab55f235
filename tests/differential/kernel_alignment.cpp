#include "tests/differential/kernel_alignment.h"

#include <algorithm>
#include <cstdint>

namespace memwall {
namespace {

bool same(const StepKernel& a, const StepKernel& b) { return a.phase == b.phase && a.name == b.name; }

// Between what both begin and end with: the longest common subsequence, by the table of its lengths.
void align_middle(const std::vector<StepKernel>& a, const std::vector<StepKernel>& b, std::size_t begin,
                  std::size_t a_end, std::size_t b_end, KernelAlignment& out) {
  const std::size_t rows = a_end - begin, columns = b_end - begin;
  std::vector<std::uint16_t> length((rows + 1) * (columns + 1), 0);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint16_t& { return length[i * (columns + 1) + j]; };
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      at(i, j) = same(a[begin + i], b[begin + j]) ? static_cast<std::uint16_t>(at(i + 1, j + 1) + 1)
                                                  : std::max(at(i + 1, j), at(i, j + 1));
  for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
    if (same(a[begin + i], b[begin + j]) && at(i, j) == at(i + 1, j + 1) + 1)
      out.pairs.emplace_back(begin + i++, begin + j++);
    else if (at(i + 1, j) >= at(i, j + 1))
      ++i;
    else
      ++j;
  }
}

}  // namespace

KernelAlignment align_kernels(const std::vector<StepKernel>& first, const std::vector<StepKernel>& second) {
  KernelAlignment out;
  std::size_t begin = 0, first_end = first.size(), second_end = second.size();
  for (; begin < std::min(first_end, second_end) && same(first[begin], second[begin]); ++begin)
    out.pairs.emplace_back(begin, begin);
  while (first_end > begin && second_end > begin && same(first[first_end - 1], second[second_end - 1]))
    --first_end, --second_end;
  align_middle(first, second, begin, first_end, second_end, out);
  for (std::size_t i = 0; first_end + i < first.size(); ++i) out.pairs.emplace_back(first_end + i, second_end + i);
  out.before_first.assign(first.size() + 1, 0);
  out.before_second.assign(second.size() + 1, 0);
  for (const auto& [a, b] : out.pairs) out.before_first[a + 1] = out.before_second[b + 1] = 1;
  for (std::size_t i = 1; i <= first.size(); ++i) out.before_first[i] += out.before_first[i - 1];
  for (std::size_t i = 1; i <= second.size(); ++i) out.before_second[i] += out.before_second[i - 1];
  return out;
}

}  // namespace memwall
