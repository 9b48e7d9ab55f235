// Does every known workload become a step that can run, with every recipe that it may have? Against captures of small
// networks trained otherwise than the samples: other optimizers, gradients accumulated, scaled, kept, used in backward,
// summed over ranks; VGG.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "models/workload/generate/generate.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/program.h"
#include "tests/support/races.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

Trace generated(const std::string& what, const std::vector<std::string>& settings = {}) {
  TrainingJob job = load_training_job(what);
  set_all(job, settings);
  return generate_step(job.model, job.recipe);
}

Bytes peak_of(const Trace& t) {
  Bytes peak = 0;
  for (const LiveBytes& live : live_bytes(t)) {
    Bytes sum = 0;
    for (const Bytes b : live) sum += b;
    peak = std::max(peak, sum);
  }
  return peak;
}

Bytes bytes_of_kind(const Trace& t, StorageKind kind) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages) bytes += s.kind == kind ? s.bytes : 0;
  return bytes;
}

double flops_of(const Trace& t) {
  double flops = 0;
  for (const Op& op : t.ops) flops += op.flops;
  return flops;
}

// --- against captures

// The capture counts what scaling reads of its first gradient only, the gradients among what a fused optimizer writes
// (as the operator's schema has it), and a product's result among what it reads.
std::string line_of(const Trace& t, const Op& op) {
  if (op.kind == OpKind::alloc || op.kind == OpKind::free)
    return fmt::format("{} {}", to_string(op.kind), t.storages[op.target].bytes);
  if (op.kind == OpKind::event_record || op.kind == OpKind::event_wait)
    return fmt::format("{} on {}", to_string(op.kind), to_string(t.streams[op.stream].role));
  const std::string& name = t.strings[op.name];
  if (op.kind == OpKind::copy || op.kind == OpKind::collective)
    return fmt::format("{} {} bytes on {}", name, op.bytes, to_string(t.streams[op.stream].role));
  Bytes written = 0;
  for (const Use& use : t.uses_of(op)) {
    const Storage& s = t.storages[use.storage];
    const bool by_schema = s.kind == StorageKind::gradient && name.starts_with("aten::_fused_");
    if (use.access == Access::write && !by_schema) written += s.bytes;
  }
  return fmt::format("{} {} {} FLOPs, storages of {} bytes written", name, to_string(op.operator_class),
                     name.starts_with("aten::_amp_foreach") ? 0 : op.flops, written);
}

// Marks aside: a capture has one where the first backward begins, a generated step one for each. So is the free of the
// gradient that backward begins with: it goes when the engine returns.
std::vector<std::string> lines_of(const Trace& t) {
  std::vector<std::string> lines;
  for (const Op& op : t.ops) {
    const bool seed = op.kind == OpKind::free && t.strings[t.storages[op.target].label] == "aten::ones_like";
    if (op.kind != OpKind::mark && !seed) lines.push_back(line_of(t, op));
  }
  return lines;
}

struct Variant {
  std::string name, workload;
  std::vector<std::string> settings;
};

std::vector<Variant> variants() {
  const std::string gpt = "sample-gpt2-124m", vgg = "vgg13";
  return {{"fused", gpt, {"optimizer_kernels=fused"}},
          {"adam", gpt, {"optimizer=adam"}},
          {"sgd", gpt, {"optimizer=sgd"}},
          {"accumulation", gpt, {"accumulation=3", "precision=bf16", "loss_in_fp32=false"}},
          {"kept_gradients", gpt, {"set_to_none=false"}},
          {"amp_fp16", gpt, {"precision=amp_fp16"}},
          {"amp_fp16_fused", gpt, {"precision=amp_fp16", "optimizer_kernels=fused"}},
          {"in_backward", gpt, {"optimizer_in_backward=true", "precision=bf16", "loss_in_fp32=false"}},
          {"fp8", gpt, {"precision=fp8", "loss_in_fp32=false"}},
          {"parallel", gpt, {"data_parallel=8", "accumulation=2"}},
          {"parallel_views", gpt, {"data_parallel=8", "gradients_as_bucket_views=true"}},
          {"vgg", vgg, {}},
          {"vgg_batch_norm", vgg, {"batch_norm=true"}}};
}

class GeneratedAndCapturedVariant : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const Variant& v = GetParam();
    captured_ =
        read_mwc(fs::path(MEMWALL_SOURCE) / "traces/samples/captures/variants" / (v.name + ".mwc.gz"))
            .trace;
    std::vector<std::string> settings{"sums_in_place=false"};
    if (v.workload == "vgg13")
      settings.insert(settings.end(), {"channels=64,64,0,128,0", "batch=8"});
    else
      settings.insert(settings.end(), {"layers=2", "width=256", "heads=4", "longest=128", "vocabulary=1000", "batch=4",
                                       "sequence=128"});
    settings.insert(settings.end(), v.settings.begin(), v.settings.end());
    generated_ = generated(v.workload, settings);
  }
  Trace captured_, generated_;
};

TEST_P(GeneratedAndCapturedVariant, HaveTheSameOpsAllocationsAndFreesInTheSameOrder) {
  const auto captured = lines_of(captured_), made = lines_of(generated_);
  for (std::size_t i = 0; i < std::min(captured.size(), made.size()); ++i)
    ASSERT_EQ(made[i], captured[i]) << "line " << i;
  EXPECT_EQ(made.size(), captured.size());
}

TEST_P(GeneratedAndCapturedVariant, NeedTheSameMemory) {
  EXPECT_EQ(peak_of(generated_), peak_of(captured_));
  // What a capture does not know the kind of: the scale of gradients, and a bucket that gradients lie in.
  const auto sum = [](const Trace& t, std::initializer_list<StorageKind> kinds) {
    Bytes bytes = 0;
    for (const StorageKind kind : kinds) bytes += bytes_of_kind(t, kind);
    return bytes;
  };
  for (const auto& kinds : {std::initializer_list<StorageKind>{StorageKind::parameter},
                            {StorageKind::gradient, StorageKind::communication_buffer},
                            {StorageKind::optimizer_state, StorageKind::input, StorageKind::unknown}})
    EXPECT_EQ(sum(generated_, kinds), sum(captured_, kinds)) << to_string(*kinds.begin());
  EXPECT_EQ(generated_.ranks, captured_.ranks);
}

INSTANTIATE_TEST_SUITE_P(Variants, GeneratedAndCapturedVariant, ::testing::ValuesIn(variants()),
                         [](const auto& p) { return p.param.name; });

// --- every workload, every recipe

bool is_buffer(const std::string& label) {
  return label.ends_with(".running_mean") || label.ends_with(".running_var") ||
         label.ends_with(".num_batches_tracked") || label == "mask" || label == "rotation" || label == "words.scale" ||
         label.starts_with("rotary.") || label.ends_with(".numbers");
}

TEST(KnownWorkloads, AreStepsThatCanRunWithTheParametersTheyHave) {
  for (const std::string& name : known_workloads()) {
    TrainingJob job = load_training_job(name);
    const Trace t = generate_step(job.model, job.recipe);
    EXPECT_TRUE(check(t).empty()) << name << ": " << check(t).front();
    std::int64_t elements = 0;
    for (const Storage& s : t.storages) {
      if (s.kind != StorageKind::parameter || is_buffer(t.strings[s.label])) continue;
      std::int64_t n = 1;
      for (const std::int64_t extent : t.shapes[s.shape]) n *= extent;
      elements += n;
    }
    EXPECT_GT(flops_of(t), 0) << name;
    if (!t.rank_table.empty()) continue;  // each rank has a part: tests/unit/models/workload/generate/parallel
    EXPECT_EQ(elements, parameter_count(job.model)) << name;
    EXPECT_EQ(t.samples_per_step, static_cast<double>(job.recipe.batch));
  }
}

const std::vector<std::string> kSmallGpt{"layers=2",       "width=64", "heads=4",    "longest=32",
                                         "vocabulary=100", "batch=2",  "sequence=32"};
const std::vector<std::string> kSmallResNet{"blocks=1,1", "image=32", "batch=2", "classes=10"};

TEST(Recipes, EachCombinationIsSoundOrRefusedInASentence) {
  int sound = 0, refused = 0;
  for (const char* network : {"gpt2-124m", "resnet50"})
    for (const char* precision : {"fp32", "amp_fp16", "amp_bf16", "fp16", "bf16"})
      for (const char* optimizer : {"none", "sgd", "adam", "adamw", "adamw_8bit"})
        for (const char* kernels : {"foreach", "fused"})
          for (const char* more :
               {"set_to_none=false", "optimizer_in_backward=true", "accumulation=2", "master_parameters=true",
                "data_parallel=4", "gradients_as_bucket_views=true,data_parallel=3",
                "gradient_reduction=after_backward,data_parallel=2"}) {
            const std::string what = fmt::format("{}:precision={},optimizer={},optimizer_kernels={},{}", network,
                                                 precision, optimizer, kernels, more);
            try {
              const Trace t = generated(what, network == std::string("gpt2-124m") ? kSmallGpt : kSmallResNet);
              EXPECT_TRUE(check(t).empty()) << what << ": " << check(t).front();
              EXPECT_TRUE(races(t).empty()) << what << ": " << races(t).front();
              ++sound;
            } catch (const UsageError& error) {
              EXPECT_GT(std::string(error.what()).size(), 30u) << what;
              ++refused;
            }
          }
  EXPECT_GT(sound, 600);
  EXPECT_LT(refused, 60);
}

TEST(Optimizers, KeepAsManyBytesAsTheyMust) {
  const auto states = [](const std::string& settings) {
    return bytes_of_kind(generated("gpt2-124m:" + settings, kSmallGpt), StorageKind::optimizer_state);
  };
  TrainingJob job = load_training_job("gpt2-124m");
  set_all(job, kSmallGpt);
  const Bytes n = parameter_count(job.model), tensors = 2 * 12 + 2 + 2;
  EXPECT_EQ(states("precision=bf16,optimizer=none"), 0);
  EXPECT_EQ(states("precision=bf16,optimizer=sgd"), 2 * n);
  EXPECT_EQ(states("precision=bf16,optimizer=adamw"), 4 * n);
  EXPECT_EQ(states("precision=bf16,optimizer=adamw,master_parameters=true"), 12 * n);
  EXPECT_EQ(states("precision=fp32,optimizer=adam"), 8 * n);
  EXPECT_EQ(states("precision=amp_bf16,optimizer=adamw,optimizer_kernels=fused"), 8 * n + 4 * tensors);
  EXPECT_EQ(states("precision=amp_fp16,optimizer=adamw"), 8 * n + 8);
  // 100 x 64 and 2 x 4 matrices of 64 x 64 and more in one byte per moment, with a scale per 256; the rest in fp32.
  const Bytes large = 100 * 64 + 2 * 12 * 64 * 64;
  EXPECT_EQ(states("precision=bf16,optimizer=adamw_8bit"),
            2 * large + 2 * 4 * (large / 256) + 8 * (n - large) + 2 * 256 * 4);
}

TEST(Optimizers, InBackwardFreeEachGradientAtOnce) {
  const auto most_gradients = [](const Trace& t) {
    Bytes most = 0;
    for (const LiveBytes& live : live_bytes(t)) most = std::max(most, of(live, StorageKind::gradient));
    return most;
  };
  const Trace after = generated("gpt2-124m:precision=bf16", kSmallGpt);
  const Trace within = generated("gpt2-124m:precision=bf16,optimizer_in_backward=true", kSmallGpt);
  const Bytes all = bytes_of_kind(after, StorageKind::gradient);
  EXPECT_EQ(most_gradients(after), all);
  EXPECT_LT(most_gradients(within), all / 3);
  EXPECT_EQ(bytes_of_kind(within, StorageKind::gradient), all);
  EXPECT_EQ(flops_of(within), flops_of(after));
}

// Megatron-LM: 2 bytes each of parameter and gradient, 4 of main parameter, its gradient for the time of the update,
// and two moments.
TEST(Optimizers, MainParametersTakeSixteenBytesAndFourWhileTheyAreUpdated) {
  const Trace t = generated("gpt2-124m:precision=fp16,master_parameters=true", kSmallGpt);
  TrainingJob job = load_training_job("gpt2-124m");
  set_all(job, kSmallGpt);
  const Bytes n = parameter_count(job.model);
  const auto live = live_bytes(t);
  bool in_update = false;
  for (std::size_t i = 0; i < t.ops.size(); ++i)
    if (t.strings[t.ops[i].name] == "aten::_foreach_lerp_") {
      in_update = true;
      EXPECT_EQ(model_state(live[i]), 16 * n + 8);
      EXPECT_GE(of(live[i], StorageKind::workspace), 4 * n);
    }
  EXPECT_TRUE(in_update);
}

TEST(DataParallel, ReducesEveryGradientOnceBesideBackward) {
  const std::vector<std::string> settings{"layers=4",   "width=768",   "heads=12",
                                          "longest=64", "sequence=64", "data_parallel=8"};
  const Trace t = generated("gpt2-124m", settings);
  const Trace views = generated("gpt2-124m:gradients_as_bucket_views=true", settings);
  const Trace after = generated("gpt2-124m:gradient_reduction=after_backward", settings);
  TrainingJob job = load_training_job("gpt2-124m");
  set_all(job, settings);
  const Bytes bytes = 4 * parameter_count(job.model);
  for (const Trace* trace : {&t, &views, &after}) {
    Bytes reduced = 0;
    std::size_t collectives = 0;
    for (const Op& op : trace->ops) {
      if (op.kind != OpKind::collective) continue;
      EXPECT_EQ(trace->streams[op.stream].role, StreamRole::communication);
      reduced += op.bytes;
      ++collectives;
    }
    EXPECT_NEAR(static_cast<double>(reduced), 2.0 * 7 / 8 * static_cast<double>(bytes), 64);
    if (trace == &after)
      EXPECT_EQ(collectives, 1u);
    else
      EXPECT_GT(collectives, 4u);
    EXPECT_EQ(trace->ranks, 8u);
  }
  EXPECT_EQ(bytes_of_kind(t, StorageKind::communication_buffer), bytes);
  EXPECT_LT(peak_of(views), peak_of(t));
}

// --- the program

TEST(GenerateVerb, WritesATraceThatRunReads) {
  const ScratchFolder folder;
  const auto made = run_memwall(folder, "generate gpt2-124m --batch 2 --seq 64 --set layers=2 -o t.mwt --format json");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find("\"what\": \"parameters\", \"value\": 53561088"), std::string::npos) << made.out;
  EXPECT_NE(made.err.find("Wrote t.mwt"), std::string::npos) << made.err;
  const auto ran = run_memwall(folder, "run t.mwt --machine h100-sxm-80gb --no-provenance --format json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto direct = run_memwall(
      folder, "run gpt2-124m:batch=2,sequence=64,layers=2 --machine h100-sxm-80gb --no-provenance --format json");
  ASSERT_EQ(direct.code, 0) << direct.err;
  const auto peak = [](const std::string& json) { return json.substr(json.find("\"peak"), 60); };
  EXPECT_EQ(peak(direct.out), peak(ran.out));
}

TEST(GenerateVerb, RefusalsHaveTheirExitCodes) {
  const ScratchFolder folder;
  EXPECT_EQ(run_memwall(folder, "generate").code, 2);
  EXPECT_EQ(run_memwall(folder, "generate gpt2-123m").code, 2);
  EXPECT_EQ(run_memwall(folder, "generate gpt2-124m --set batch=0").code, 2);
  EXPECT_EQ(run_memwall(folder, "generate ./nowhere.textproto").code, 6);
  EXPECT_EQ(run_memwall(folder, "inspect nowhere.mwt").code, 6);
  const auto near = run_memwall(folder, "inspect gpt2-123m");
  EXPECT_EQ(near.code, 6);
  EXPECT_NE(near.err.find("no such workload (nearest: \"gpt2-124m\")"), std::string::npos) << near.err;
  write_content(folder / "config.json", R"({"architectures": ["X"], "model_type": "gpt2", "n_layer": 2})");
  EXPECT_EQ(run_memwall(folder, "inspect config.json").code, 0);
  const auto list = run_memwall(folder, "generate --list");
  EXPECT_EQ(list.code, 0);
  EXPECT_NE(list.out.find("mixtral-8x7b"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
