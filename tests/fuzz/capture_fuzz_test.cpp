// Does any damage to a captured step end in a trace that is sound and can run, or in a sentence, and in nothing else?
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "models/hw/modelled_step.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/error.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_check.h"
#include "tests/support/capture_writer.h"
#include "tests/support/damage.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/gzip.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// An operator of each class that has a shape, with its tensors; the last line counts the others.
constexpr const char* kTensors =
    R"({"format":"memwall-capture","version":1,"name":"t","mode":"fake","end":true}
{"storage":0,"bytes":96,"kind":"parameter","place":"hbm","preexisting":true}
{"storage":1,"bytes":96,"kind":"activation","place":"hbm","preexisting":true}
{"op":"aten::t","reads":[0],"kernels":0,"calls":2}
{"op":"aten::bmm","reads":[0,1],"writes":[1],"class":"gemm","flops":96,"inputs":[[[2,3,4],"fp32",0],[[2,4,3],"fp32",1,[12,1,4]]],"outputs":[[[2,3,3],"fp32",1]]}
{"op":"aten::_grouped_mm","reads":[0,1],"writes":[1],"class":"gemm","inputs":[[[6,4],"fp32",0],[[2,4,3],"fp32",1]],"outputs":[[[6,3],"fp32",1]]}
{"op":"aten::matmul","reads":[0,1],"writes":[1],"class":"gemm","inputs":[[[2,3,4],"fp32",0],[[2,4,3],"fp32",1]],"outputs":[[[2,3,3],"fp32",1]]}
{"op":"aten::convolution","reads":[0,1],"writes":[1],"class":"convolution","flops":768,"inputs":[[[2,2,3,2],"fp32",0],[[4,2,1,1],"fp32",1]],"outputs":[[[2,4,3,2],"fp32",1]]}
{"op":"aten::_scaled_dot_product_flash_attention","reads":[0,1],"writes":[1],"class":"attention","causal":true,"inputs":[[[1,2,3,4],"fp32",0],[[1,1,3,4],"fp32",0],[[1,1,3,4],"fp32",0]],"outputs":[[[1,2,3,4],"fp32",1]]}
{"op":"aten::native_layer_norm","reads":[0],"writes":[1],"class":"normalization","inputs":[[[6,4],"fp32",0]],"outputs":[[[6,4],"fp32",1],[[6,1],"fp32",1]]}
{"op":"aten::native_batch_norm","reads":[0],"writes":[1],"class":"normalization","inputs":[[[3,4,2],"fp32",0]],"outputs":[[[3,4,2],"fp32",1]]}
{"op":"aten::_softmax","reads":[0],"writes":[1],"class":"reduction","width":4,"inputs":[[[3,4,2],"fp32",0]],"outputs":[[[3,4,2],"fp32",1]]}
{"op":"aten::nll_loss_backward","reads":[0],"writes":[1],"class":"reduction","inputs":[[[],"fp32",0],[[6,4],"fp32",0],[[6],"int64",0]],"outputs":[[[6,4],"fp32",1]]}
{"op":"aten::sum","reads":[0],"writes":[1],"class":"reduction","inputs":[[[6,4],"fp32",0]],"outputs":[[[4],"fp32",1]]}
{"op":"aten::embedding","reads":[0],"writes":[1],"class":"embedding","inputs":[[[6,4],"fp32",0],[[2,3],"int64",0]],"outputs":[[[2,3,4],"fp32",1]]}
{"op":"aten::_foreach_add_","reads":[0,1],"writes":[1],"class":"optimizer","kernels":2,"inputs":[[[6,4],"fp32",1],[[6,4],"fp32",0]]}
{"op":"aten::_fused_adamw_","reads":[0,1],"writes":[1],"class":"optimizer","elements":24,"compiled":true}
{"free":1,"streams":[1,3]}
{"end":17}
)";

class CaptureFuzz : public ::testing::Test {
 protected:
  // True if it was accepted. Anything but an InputError that names the file escapes and fails the test.
  bool accepted(const std::string& content) {
    write_content(folder_ / "a.mwc", content);
    try {
      const ImportedMwc c = read_mwc(folder_ / "a.mwc");
      EXPECT_EQ(check(c.trace), std::vector<std::string>());
      if (measured_nowhere(c.trace)) run(modelled_on(c.trace, test_machine()));
      return true;
    } catch (const InputError& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find("a.mwc"), std::string::npos) << sentence;
      EXPECT_EQ(sentence.back(), '.') << sentence;
      return false;
    }
  }

  static void run(const Trace& trace) {
    for (const Op& op : trace.ops) EXPECT_GE(op.duration.count(), 0);
    simulated(trace);
  }

  static std::string small(bool real) {
    return capture_text(rewritten(gpt_step({.layers = 1}), "offload:what=activations,min_bytes=1"), real);
  }

  // A line is left out, doubled or moved: what a careless writer would do.
  static std::string shuffled(const std::string& text, std::mt19937_64& random) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      lines.push_back(text.substr(begin, end - begin + 1));
      begin = end + 1;
    }
    for (std::size_t n = 1 + random() % 3; n > 0; --n) {
      const std::size_t from = 1 + random() % (lines.size() - 1), to = 1 + random() % (lines.size() - 1);
      const std::string line = lines[from];
      if (random() % 3 != 0) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(from));
      if (random() % 3 != 0 && to <= lines.size()) lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(to), line);
    }
    std::string result;
    for (const std::string& line : lines) result += line;
    return result;
  }

  ScratchFolder folder_;
  std::mt19937_64 random_{20'261'121};
};

TEST_F(CaptureFuzz, DamagedTextNeverCrashesAndWhatIsAcceptedRuns) {
  const std::string texts[] = {small(true), small(false)};
  int good = 0, bad = 0;
  for (int round = 0; round < 1'500; ++round) ++(accepted(damaged(texts[round % 2], random_)) ? good : bad);
  EXPECT_GT(good, 100);  // or the damage would be too heavy to reach behind the first check
  EXPECT_GT(bad, 100);
}

TEST_F(CaptureFuzz, DamagedTensorsToo) {
  ASSERT_TRUE(accepted(kTensors));
  std::string unannounced = kTensors;
  unannounced.replace(unannounced.find("true"), 4, "false");
  unannounced.resize(unannounced.find("{\"end\""));
  int good = 0, bad = 0;
  for (int round = 0; round < 1'500; ++round)
    ++(accepted(damaged(round % 2 == 0 ? kTensors : unannounced, random_)) ? good : bad);
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 100);
}

TEST_F(CaptureFuzz, LinesInAnyOrder) {
  const std::string texts[] = {small(true), small(false)};
  int good = 0, bad = 0;
  for (int round = 0; round < 1'500; ++round) ++(accepted(shuffled(texts[round % 2], random_)) ? good : bad);
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 100);
}

TEST_F(CaptureFuzz, DamagedGzipIsRefused) {
  const std::string packed = gzipped(small(false));
  int bad = 0;
  for (int round = 0; round < 500; ++round) bad += !accepted(damaged(packed, random_));
  EXPECT_GT(bad, 450);
}

// A hundred megabytes of nothing in a row, packed small: not one line of it is kept.
TEST_F(CaptureFuzz, ALineWithoutEndDoesNotEatMemory) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_FALSE(accepted(gzipped(small(false) + "{\"op\":\"" + std::string(100 << 20, 'a'))));
  EXPECT_FALSE(accepted(small(false) + R"({"storage":2147483646,"bytes":1})" + "\n" + R"({"free":2147483646})"));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 512 << 10) << "kilobytes, the test's own text included";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
