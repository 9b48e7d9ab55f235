// Does a framework's configuration become what the framework would do, and is refused what it refuses?
#include "models/workload/frameworks/framework_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class FrameworkJobOf : public ::testing::Test {
 protected:
  FrameworkJob read(Framework framework, const char* name, const std::string& text, std::uint32_t ranks = 0) {
    write_content(folder_ / name, text);
    return read_framework_job(framework, folder_ / name, {ranks});
  }
  FrameworkJob deepspeed(const std::string& text, std::uint32_t ranks = 0) {
    return read(Framework::deepspeed, "ds_config.json", text, ranks);
  }
  template <typename Error>
  static std::string refusal(const std::function<void()>& read) {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static bool has(const std::vector<std::string>& list, const std::string& what) {
    return std::find(list.begin(), list.end(), what) != list.end();
  }
  static bool mentions(const std::vector<std::string>& list, const std::string& what) {
    return std::any_of(list.begin(), list.end(),
                       [&](const std::string& each) { return each.find(what) != std::string::npos; });
  }

  ScratchFolder folder_;
};

// SuperOffload updates ahead of the norm unless gradients are clipped; nothing else asks for that.
TEST_F(FrameworkJobOf, DeepSpeedsSuperOffloadKnowsOfClipping) {
  const auto policy = [&](const std::string& super) {
    return deepspeed(
               R"({"gradient_clipping": 1.0, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu",
      "super_offload": )" +
                   super + R"(, "cpuadam_cores_perc": 0.9}}})",
               8)
        .policies;
  };
  EXPECT_EQ(policy("true"), std::vector<std::string>{"deepspeed:stage=3,ranks=8,offload_optimizer=cpu,super_offload=1,"
                                                     "gradient_clipping=1"});
  EXPECT_EQ(policy("false"),
            std::vector<std::string>{"deepspeed:stage=3,ranks=8,offload_optimizer=cpu,super_offload=0"});
}

// The interval of ZenFlow's updates on the host is what DeepSpeed accumulates over.
TEST_F(FrameworkJobOf, DeepSpeedsZenFlowAccumulatesOverItsInterval) {
  const FrameworkJob job = deepspeed(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1,
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"topk_ratio": 0.05,
      "select_strategy": "step", "select_interval": 16, "update_interval": 4, "overlap_step": true, "auto_ratio": 0.9}}})",
                                     8);
  EXPECT_EQ(job.policies, std::vector<std::string>{
                              "deepspeed:stage=2,ranks=8,offload_optimizer=cpu,zenflow=1,zenflow_topk_ratio=0.05,"
                              "zenflow_select_strategy=step,zenflow_overlap_step=1,zenflow_select_interval=16,"
                              "zenflow_update_interval=4"});
  EXPECT_TRUE(has(job.settings, "accumulation=4"));
  EXPECT_FALSE(has(job.settings, "accumulation=1"));
  EXPECT_TRUE(mentions(job.notes, "takes the place of gradient_accumulation_steps"));
  EXPECT_TRUE(job.unknown_keys.empty()) << job.unknown_keys.front();
  // DeepSpeed's default interval is the policy's to refuse.
  EXPECT_TRUE(mentions(deepspeed(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
    "zenflow": {"update_interval": "auto"}}})",
                                 8)
                           .policies,
                       "zenflow=1"));
}

TEST_F(FrameworkJobOf, DeepSpeedIsItsStageAndWhatTheFileSays) {
  const FrameworkJob job = deepspeed(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": 2e8,
      "stage3_max_live_parameters": 1e9, "offload_optimizer": {"device": "cpu", "pin_memory": true, "ratio": 0.5},
      "offload_param": {"device": "nvme", "nvme_path": "/local", "buffer_count": 6}},
    "aio": {"block_size": 262144, "queue_depth": 32, "thread_count": 2}, "steps_per_print": 10})");
  EXPECT_EQ(job.ranks, 8u) << "64 samples in steps of 2 x 4";
  EXPECT_EQ(job.policies,
            std::vector<std::string>{
                "deepspeed:stage=3,ranks=8,overlap_comm=1,reduce_bucket_size=200000000,max_live_parameters=1000000000,"
                "offload_optimizer=cpu,offload_param=nvme,ratio=0.5,pin_memory=1,offload_param_buffer_count=6,"
                "aio_block_size=262144B,aio_queue_depth=32,aio_intra_op_parallelism=2"});
  EXPECT_EQ(job.settings,
            (std::vector<std::string>{"batch=2", "accumulation=4", "precision=bf16", "master_parameters=true",
                                      "optimizer=adamw", "optimizer_kernels=fused"}));
  EXPECT_TRUE(job.unknown_keys.empty()) << job.unknown_keys.front();
}

TEST_F(FrameworkJobOf, DeepSpeedCompletesTheBatchAsItsConfigDoes) {
  EXPECT_EQ(deepspeed(R"({"train_batch_size": 32})", 4).batch, 8);
  EXPECT_EQ(deepspeed(R"({"train_batch_size": 32, "gradient_accumulation_steps": 2})", 4).batch, 4);
  EXPECT_EQ(deepspeed(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2})", 4).accumulation, 4);
  EXPECT_EQ(deepspeed(R"({"train_micro_batch_size_per_gpu": 2})", 4).accumulation, 1);
}

TEST_F(FrameworkJobOf, DeepSpeedsOwnRefusals) {
  const auto says = [&](const std::string& text, const char* what) {
    const std::string sentence = refusal<InputError>([&] { deepspeed(text, 4); });
    EXPECT_NE(sentence.find(what), std::string::npos) << sentence;
  };
  says(R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2})",
       "DeepSpeed refuses it: train_batch_size is 30");
  says(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})", "cannot be simultaneously enabled");
  says(R"({"zero_optimization": {"stage": 4}})",
       "\"zero_optimization.stage\" is 4; expected a whole number from 0 to 3");
  EXPECT_NE(refusal<UsageError>([&] { deepspeed(R"({"zero_optimization": {"stage": 2}})"); }).find("give --gpus N"),
            std::string::npos);
  EXPECT_NE(
      refusal<UsageError>([&] { deepspeed(R"({"tensor_parallel": {"autotp_size": 2}})", 4); }).find("not implemented"),
      std::string::npos);
}

TEST_F(FrameworkJobOf, TablesOfWhatIsNotImplementedAreRefusedByName) {
  const auto refused = [&](const std::string& text) { return refusal<UsageError>([&] { deepspeed(text, 4); }); };
  EXPECT_NE(refused(R"({"compression_training": {"layer_reduction": {"enabled": true}}})")
                .find("compression_training is not implemented"),
            std::string::npos);
  EXPECT_NE(refused(R"({"sparse_attention": {"mode": "fixed"}})").find("sparse_attention"), std::string::npos);
  const std::string inside = refusal<UsageError>(
      [&] { read(Framework::transformers, "args.json", R"({"deepspeed": {"zero_optimization": {"stage": 2}}})", 8); });
  EXPECT_NE(inside.find("put it into a file of its own"), std::string::npos) << inside;
  EXPECT_EQ(read(Framework::transformers, "args.json", R"({"deepspeed": null})", 8).policies,
            std::vector<std::string>{"ddp:ranks=8"});
}

TEST_F(FrameworkJobOf, AnotherProgramsFileIsRefused) {
  const char* torchtitans = "[model]\nname = \"llama3\"\n[training]\nlocal_batch_size = 1\n";
  const std::string refused = refusal<InputError>([&] { read(Framework::deepspeed, "run.toml", torchtitans, 8); });
  EXPECT_NE(refused.find("none of its 2 keys (model.name, …) is one of DeepSpeed's"), std::string::npos) << refused;
  // Of Transformers' arguments most do not change a step, and are known to nobody here.
  EXPECT_EQ(read(Framework::transformers, "args.json", R"({"output_dir": "a", "logging_steps": 5})", 8).policies,
            std::vector<std::string>{"ddp:ranks=8"});
}

TEST_F(FrameworkJobOf, DeepSpeedsUnknownAndOpenKeysAreNamed) {
  const FrameworkJob job = deepspeed(R"({"zero_optimization": {"stage": 3, "reduce_bucket_sise": 5,
    "stage3_prefetch_bucket_size": "auto"}, "batch": 2})",
                                     8);
  EXPECT_EQ(job.unknown_keys, (std::vector<std::string>{"zero_optimization.reduce_bucket_sise", "batch"}));
  EXPECT_EQ(job.meant_keys, (std::vector<std::string>{"zero_optimization.reduce_bucket_size", ""}));
  EXPECT_TRUE(mentions(job.notes, "stage3_prefetch_bucket_size is \"auto\""));
  EXPECT_EQ(job.policies, std::vector<std::string>{"deepspeed:stage=3,ranks=8"});
}

TEST_F(FrameworkJobOf, TorchtitanShardsChecksAndNamesItsNetwork) {
  const FrameworkJob job = read(Framework::torchtitan, "run.toml", R"(
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
global_batch_size = 64
seq_len = 8192
steps = 10
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[compile]
enable = true
)",
                                16);
  EXPECT_EQ(job.network, "llama3-8b");
  EXPECT_EQ(job.accumulation, 2);
  EXPECT_EQ(job.policies,
            (std::vector<std::string>{"torchtitan:mode=selective,selective_ac_option=op,early_stop=0",
                                      "fsdp:version=2,ranks=16,replicate=2,reduce_dtype=fp32,clip_grad_norm=1"}));
  for (const char* setting : {"batch=2", "sequence=8192", "accumulation=2", "precision=bf16", "master_parameters=true",
                              "optimizer=adamw", "optimizer_kernels=fused", "execution=compiled"})
    EXPECT_TRUE(has(job.settings, setting)) << setting;
  EXPECT_TRUE(job.unknown_keys.empty());
}

TEST_F(FrameworkJobOf, TorchtitanAloneAndReplicatedUsesAutocast) {
  const FrameworkJob alone = read(Framework::torchtitan, "run.toml", "[training]\nlocal_batch_size = 1\n", 1);
  EXPECT_TRUE(has(alone.settings, "precision=amp_bf16"));
  EXPECT_EQ(alone.policies, std::vector<std::string>{"torchtitan:mode=selective,selective_ac_option=2,early_stop=0"});
  const FrameworkJob replicated =
      read(Framework::torchtitan, "run.toml",
           "[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n"
           "[activation_checkpoint]\nmode = \"none\"\n");
  EXPECT_EQ(replicated.ranks, 4u);
  EXPECT_EQ(replicated.policies, std::vector<std::string>{"ddp:ranks=4,bucket_cap=100MiB"});
  EXPECT_TRUE(has(replicated.settings, "precision=amp_bf16"));
}

TEST_F(FrameworkJobOf, TorchtitansRefusals) {
  const auto toml = [&](const char* text) { read(Framework::torchtitan, "run.toml", text, 8); };
  EXPECT_NE(
      refusal<UsageError>([&] { toml("[parallelism]\ncontext_parallel_degree = 2\n"); }).find("context parallelism"),
      std::string::npos);
  EXPECT_NE(refusal<InputError>([&] { toml("[training]\nglobal_batch_size = 9\n"); }).find("must be a multiple"),
            std::string::npos);
  EXPECT_NE(
      refusal<InputError>([&] { toml("[parallelism]\ndata_parallel_replicate_degree = 3\n"); }).find("does not divide"),
      std::string::npos);
  EXPECT_NE(refusal<InputError>([&] { toml("[activation_checkpoint]\nmode = \"some\"\n"); }).find("selective, full"),
            std::string::npos);
}

// The most usual job: 8 GPUs of a node share each layer, FSDP2 is over the nodes.
TEST_F(FrameworkJobOf, TorchtitanSharesLayersAndWhatIsLeft) {
  const std::string common =
      "[training]\nlocal_batch_size = 4\nglobal_batch_size = 64\nseq_len = 8192\n[parallelism]\n"
      "tensor_parallel_degree = 8\n";
  const FrameworkJob eager = read(Framework::torchtitan, "run.toml", common, 64);
  for (const char* setting : {"tensor=8", "parallel_framework=torchtitan", "sequence_parallel=true", "batch=4",
                              "accumulation=2", "precision=bf16", "optimizer_kernels=fused"})
    EXPECT_TRUE(has(eager.settings, setting)) << setting;
  EXPECT_EQ(eager.policies, (std::vector<std::string>{"torchtitan:mode=selective,selective_ac_option=2,early_stop=0",
                                                      "fsdp:version=2,ranks=8,reduce_dtype=fp32,clip_grad_norm=1"}));
  EXPECT_EQ(eager.ranks, 64u);
  const FrameworkJob compiled = read(
      Framework::torchtitan, "run.toml",
      common + "data_parallel_replicate_degree = 2\nenable_async_tensor_parallel = true\n[compile]\nenable = true\n",
      64);
  EXPECT_TRUE(has(compiled.settings, "async_tensor_parallel=true"));
  EXPECT_FALSE(has(compiled.settings, "execution=compiled"));
  EXPECT_EQ(compiled.policies,
            (std::vector<std::string>{"compile:modules=layers.*",
                                      "torchtitan:mode=selective,selective_ac_option=2,early_stop=0",
                                      "fsdp:version=2,ranks=8,replicate=2,reduce_dtype=fp32,clip_grad_norm=1"}));
  // Nothing is shared but layers: no mixed precision, as torchtitan warns.
  const FrameworkJob one_node = read(Framework::torchtitan, "run.toml",
                                     "[training]\nmax_norm = 0.0\n[parallelism]\ntensor_parallel_degree = 8\n", 8);
  EXPECT_TRUE(has(one_node.settings, "precision=fp32"));
  EXPECT_TRUE(has(one_node.settings, "clip_gradients=false"));
  EXPECT_EQ(one_node.policies.size(), 1u);
  EXPECT_EQ(one_node.notes.size(), 1u);
}

TEST_F(FrameworkJobOf, TorchtitansFloat8) {
  const std::string common =
      "[training]\nlocal_batch_size = 4\nseq_len = 8192\n[parallelism]\ntensor_parallel_degree = 8\n";
  const auto with = [&](const std::string& more, int ranks = 64) {
    return read(Framework::torchtitan, "run.toml", common + more, ranks);
  };
  const FrameworkJob plain = with(
      "[model]\nconverters = [\"quantize.linear.float8\"]\n[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n");
  EXPECT_TRUE(has(plain.settings, "precision=fp8"));
  EXPECT_FALSE(has(plain.settings, "precision=bf16"));
  EXPECT_EQ(plain.notes, std::vector<std::string>{});
  EXPECT_EQ(plain.unknown_keys, std::vector<std::string>{});
  const FrameworkJob old = with("[model]\nconverters = [\"float8\"]\n[float8]\nenable_fsdp_float8_all_gather = true\n");
  EXPECT_TRUE(has(old.settings, "precision=fp8"));
  EXPECT_EQ(old.notes.size(), 2u);  // the output layer, and gathers in 16 bits
  EXPECT_NE(refusal<UsageError>([&] {
              with("[model]\nconverters = [\"quantize.linear.mx\"]\n");
            }).find("model.converters (quantize.linear.mx)"),
            std::string::npos);
  EXPECT_NE(refusal<UsageError>([&] {
              with("[model]\nconverters = [\"float8\"]\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n");
            }).find("quantize.linear.float8.recipe_name=rowwise"),
            std::string::npos);
  EXPECT_NE(refusal<UsageError>([&] {
              with("[model]\nconverters = [\"float8\"]\n", 8);
            }).find("without bf16 parameters of FSDP"),
            std::string::npos);
}

// torchao's filter by sizes takes none of Llama 3 8B's layers (4,096 and more inputs); by name it leaves two in 16
// bits.
TEST_F(FrameworkJobOf, TorchtitansFloat8SaysWhichLayersItLeaves) {
  const auto notes_of = [&](const std::string& flavor, const std::string& keys) {
    return read(Framework::torchtitan, "run.toml",
                fmt::format("[model]\nname = \"llama3\"\nflavor = \"{}\"\nconverters = [\"quantize.linear.float8\"]\n"
                            "[quantize.linear.float8]\n{}\n",
                            flavor, keys),
                8)
        .notes;
  };
  EXPECT_EQ(notes_of("8B", "filter_fqns = [\"output\", \"auto_filter_small_kn\"]"), std::vector<std::string>{});
  EXPECT_EQ(
      notes_of("8B", "filter_fqns = [\"attention.wk\", \"attention.wv\", \"output\"]"),
      (std::vector<std::string>{"quantize.linear.float8.filter_fqns leaves attention.wk, attention.wv of llama3-8b "
                                "in 16 bits, which are in fp8 here."}));
  // Whose layers are not known.
  EXPECT_EQ(notes_of("debugmodel", "filter_fqns = [\"output\"]"), std::vector<std::string>{});
  EXPECT_EQ(
      notes_of("debugmodel", "filter_fqns = [\"output\", \"auto_filter_small_kn\"]"),
      (std::vector<std::string>{"quantize.linear.float8.filter_fqns (output, auto_filter_small_kn): layers of blocks "
                                "that it leaves in 16 bits are in fp8 here."}));
  EXPECT_EQ(notes_of("8B", "filter_fqns = \"output\"\nprecompute_float8_dynamic_scale_for_fsdp = true"),
            std::vector<std::string>{})
      << "torchtitan passes it over, too";
  const auto gathered = notes_of("8B",
                                 "filter_fqns = \"output\"\nenable_fsdp_float8_all_gather = "
                                 "true\nprecompute_float8_dynamic_scale_for_fsdp = true");
  ASSERT_EQ(gathered.size(), 1u);
  EXPECT_NE(gathered.front().find("precompute_float8_dynamic_scale_for_fsdp"), std::string::npos);
  EXPECT_NE(refusal<UsageError>([&] {
              notes_of("8B", "filter_fqns = \"output\"\nemulate = true");
            }).find("quantize.linear.float8.emulate is not implemented"),
            std::string::npos);
}

TEST_F(FrameworkJobOf, TorchtitansRefusalsOfTensorParallelism) {
  const auto refused = [&](const char* text) {
    return refusal<InputError>([&] { read(Framework::torchtitan, "run.toml", text, 16); });
  };
  const auto not_implemented = [&](const char* text) {
    return refusal<UsageError>([&] { read(Framework::torchtitan, "run.toml", text, 16); });
  };
  const auto has_part = [](const std::string& sentence, const char* part) {
    return sentence.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has_part(refused("[parallelism]\ntensor_parallel_degree = 3\n"), "does not divide 16 GPUs"));
  EXPECT_TRUE(has_part(refused("[training]\nseq_len = 1032\n[parallelism]\ntensor_parallel_degree = 8\n"),
                       "no multiple of 2 times"));
  EXPECT_TRUE(has_part(refused("[parallelism]\ntensor_parallel_degree = 2\nenable_async_tensor_parallel = true\n"),
                       "needs compile.enable"));
  EXPECT_TRUE(has_part(refused("[parallelism]\ntensor_parallel_degree = 8\ndata_parallel_replicate_degree = 2\n"
                               "data_parallel_shard_degree = 1\n"),
                       "DDP has not supported > 1D parallelism"));
  EXPECT_TRUE(has_part(refused("[training]\nglobal_batch_size = 9\n[parallelism]\ntensor_parallel_degree = 8\n"),
                       "must be a multiple"));
  EXPECT_TRUE(has_part(not_implemented("[parallelism]\ntensor_parallel_degree = 2\ndisable_loss_parallel = true\n"),
                       "parallelism.disable_loss_parallel"));
  EXPECT_TRUE(has_part(not_implemented("[training]\ndtype = \"bfloat16\"\n[parallelism]\ntensor_parallel_degree = 2\n"),
                       "training.dtype=bfloat16"));
}

// Stages of four micro-batches each, FSDP2 over what is left: the generated stages' own.
TEST_F(FrameworkJobOf, TorchtitanCutsItsLocalBatchForAPipeline) {
  const std::string common =
      "[training]\nlocal_batch_size = 8\nseq_len = 8192\n[activation_checkpoint]\nmode = \"full\"\n[parallelism]\n"
      "pipeline_parallel_degree = 4\npipeline_parallel_microbatch_size = 2\n";
  const FrameworkJob job = read(Framework::torchtitan, "run.toml", common, 16);
  EXPECT_EQ(job.ranks, 16u);
  for (const char* setting : {"parallel_framework=torchtitan", "pipeline=4", "micro_batch=2", "batch=8",
                              "data_parallel=4", "precision=bf16", "master_parameters=true"})
    EXPECT_TRUE(has(job.settings, setting)) << setting;
  EXPECT_FALSE(has(job.settings, "accumulation=1")) << "micro-batches are the pipeline's";
  EXPECT_EQ(job.policies, std::vector<std::string>{"torchtitan:mode=full,early_stop=0"});
  EXPECT_TRUE(job.unknown_keys.empty());
  const FrameworkJob both = read(Framework::torchtitan, "run.toml",
                                 common + "tensor_parallel_degree = 2\npipeline_parallel_schedule = \"GPipe\"\n", 16);
  for (const char* setting : {"tensor=2", "sequence_parallel=true", "data_parallel=2", "pipeline_schedule=gpipe"})
    EXPECT_TRUE(has(both.settings, setting)) << setting;
  EXPECT_EQ(std::count(both.settings.begin(), both.settings.end(), "parallel_framework=torchtitan"), 1);
  // Nothing is shared but stages: no mixed precision, as torchtitan warns.
  const FrameworkJob alone = read(Framework::torchtitan, "run.toml", common, 4);
  EXPECT_TRUE(has(alone.settings, "precision=fp32"));
  EXPECT_FALSE(has(alone.settings, "data_parallel=1"));
  EXPECT_EQ(alone.notes.size(), 1u);
}

// The flagship: two stages on each GPU, compiled blocks, float8 and async tensor parallelism.
TEST_F(FrameworkJobOf, TorchtitansInterleavedPipelinesAreCompiledAndComputedAgain) {
  const std::string common =
      "[model]\nname = \"llama3\"\nflavor = \"405B\"\nconverters = [\"quantize.linear.float8\"]\n"
      "[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n[training]\nlocal_batch_size = 32\nseq_len = 8192\n"
      "[compile]\nenable = true\n[parallelism]\npipeline_parallel_degree = 8\ntensor_parallel_degree = 8\n"
      "enable_async_tensor_parallel = true\npipeline_parallel_schedule = \"Interleaved1F1B\"\n";
  const FrameworkJob job =
      read(Framework::torchtitan, "run.toml", common + "[activation_checkpoint]\nmode = \"full\"\n", 512);
  for (const char* setting : {"pipeline=8", "tensor=8", "interleave=2", "micro_batch=1", "batch=32", "data_parallel=8",
                              "precision=fp8", "async_tensor_parallel=true"})
    EXPECT_TRUE(has(job.settings, setting)) << setting;
  EXPECT_EQ(job.policies, (std::vector<std::string>{"compile:modules=layers.*", "torchtitan:mode=full,early_stop=0"}));
  EXPECT_FALSE(has(job.settings, "execution=compiled"));
  EXPECT_TRUE(job.unknown_keys.empty());
  const FrameworkJob by_operator =
      read(Framework::torchtitan, "run.toml", common + "[activation_checkpoint]\nselective_ac_option = \"op\"\n", 512);
  EXPECT_EQ(by_operator.policies.back(), "torchtitan:mode=selective,selective_ac_option=op,early_stop=0");
  // Without tensor parallelism blocks are compiled by the same policy.
  const FrameworkJob stages = read(Framework::torchtitan, "run.toml",
                                   "[compile]\nenable = true\n[activation_checkpoint]\nmode = "
                                   "\"none\"\n[parallelism]\npipeline_parallel_degree = 2\n",
                                   8);
  EXPECT_EQ(stages.policies, std::vector<std::string>{"compile:modules=layers.*"});
  EXPECT_FALSE(has(stages.settings, "execution=compiled"));
}

// As generate_llm_fqn_per_model_part divides: worked out by hand for 32 layers.
TEST_F(FrameworkJobOf, TorchtitansStagesAreThoseOfItsFile) {
  const std::string common =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[activation_checkpoint]\nmode = \"none\"\n[parallelism]\n"
      "pipeline_parallel_degree = 4\n";
  const auto layout = [&](const std::string& more) {
    const FrameworkJob job = read(Framework::torchtitan, "run.toml", common + more, 4);
    std::string text;
    for (const std::string& setting : job.settings)
      if (setting.starts_with("stage_layout=") || setting.starts_with("interleave=")) text += setting + " ";
    return text;
  };
  EXPECT_EQ(layout(""), "");
  EXPECT_EQ(layout("pipeline_parallel_schedule = \"interleaved1f1b\"\n"), "interleave=2 ");
  // 34 counted layers, 3 in each of 12 stages.
  EXPECT_EQ(layout("pipeline_parallel_schedule = \"Interleaved1F1B\"\npipeline_parallel_layers_per_stage = 3\n"),
            "interleave=3 ");
  // 32 + 0 + 2 = 34: 9, 9, 8, 8, of which the last has two for norm and output.
  EXPECT_EQ(layout("pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 2\n"),
            "stage_layout=Et*9|t*9|t*8|t*6L ");
  EXPECT_EQ(layout("module_fqns_per_model_part = [[\"tok_embeddings\", \"layers.0\"], [\"layers.1\", \"layers.2\"], "
                   "[\"layers.3\"], [\"norm\", \"output\"]]\n"),
            "stage_layout=Et|t*2|t|L ");
}

TEST_F(FrameworkJobOf, TorchtitansRefusalsOfPipelines) {
  const std::string full = "[activation_checkpoint]\nmode = \"full\"\n[training]\nlocal_batch_size = 6\n";
  const auto refused = [&](const std::string& text) {
    return refusal<InputError>([&] { read(Framework::torchtitan, "run.toml", text, 16); });
  };
  const auto not_implemented = [&](const std::string& text) {
    return refusal<UsageError>([&] { read(Framework::torchtitan, "run.toml", text, 16); });
  };
  const std::string four = "[parallelism]\npipeline_parallel_degree = 4\n";
  EXPECT_NE(refused(full + "[parallelism]\npipeline_parallel_degree = 3\n").find("does not divide 16 GPUs"),
            std::string::npos);
  EXPECT_NE(refused(full + four + "pipeline_parallel_microbatch_size = 4\n").find("must be divisible by"),
            std::string::npos);
  for (const auto& [more, part] :
       {std::pair("pipeline_parallel_schedule = \"ZBVZeroBubble\"\n", "pipeline_parallel_schedule=ZBVZeroBubble"),
        {"pipeline_parallel_schedule_csv = \"order.csv\"\n", "pipeline_parallel_schedule_csv"},
        {"pipeline_parallel_layers_per_stage = 4\n", "name no network"},
        {"pipeline_parallel_first_stage_less_layers = 0\n", "name no network"},
        {"data_parallel_replicate_degree = 2\n", "data_parallel_replicate_degree"},
        {"fsdp_reshard_after_forward = \"always\"\n", "fsdp_reshard_after_forward=always"}})
    EXPECT_NE(not_implemented(full + four + more).find(part), std::string::npos) << more;
  EXPECT_NE(not_implemented("[activation_checkpoint]\nmode = \"memory_budget\"\n" + four).find("mode=memory_budget"),
            std::string::npos);
  // Divisions of the 32 layers of Llama 3 8B.
  const std::string llama = full + "[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + four;
  for (const auto& [more, part] :
       {std::pair("pipeline_parallel_layers_per_stage = 5\n", "makes 7 stages of 34 layers"),
        {"pipeline_parallel_layers_per_stage = 3\n", "this schedule has one stage on each GPU"},
        {"pipeline_parallel_layers_per_stage = 9\npipeline_parallel_schedule = \"Interleaved1F1B\"\n",
         "at least two on each GPU"},
        {"pipeline_parallel_first_stage_less_layers = 20\n", "exceeds the 13 layers of a stage"},
        {"module_fqns_per_model_part = [[\"tok_embeddings\"], [\"output\"]]\n", "lists 2 stages"}})
    EXPECT_NE(refused(llama + more).find(part), std::string::npos) << more;
  for (const auto& [more, part] :
       {std::pair("module_fqns_per_model_part = [[\"tok_embeddings\"], [\"layers.1\"], [], []]\n",
                  "where layers.0 comes"),
        {"module_fqns_per_model_part = [[\"tok_embeddings\"], [\"layers.0\"], [\"norm\"], [\"output\"]]\n",
         "norm and output in two stages"}})
    EXPECT_NE(not_implemented(llama + more).find(part), std::string::npos) << more;
  EXPECT_NE(not_implemented(full + "global_batch_size = 48\n" + four).find("gradient accumulation"), std::string::npos);
}

TEST_F(FrameworkJobOf, AccelerateOfFsdpIsItsPlugin) {
  const FrameworkJob first = read(Framework::accelerate, "one.yaml", R"(
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch_policy: BACKWARD_PRE
  fsdp_forward_prefetch: false
  fsdp_offload_params: true
  fsdp_sharding_strategy: 2
  fsdp_use_orig_params: true
  fsdp_activation_checkpointing: true
mixed_precision: bf16
num_processes: 8
)");
  EXPECT_EQ(first.policies,
            (std::vector<std::string>{"fsdp:version=1,ranks=8,strategy=grad_op,backward_prefetch=pre,"
                                      "forward_prefetch=0,limit_all_gathers=1,use_orig_params=1,reduce_dtype=bf16,"
                                      "offload=cpu",
                                      "checkpoint:mode=full"}));
  EXPECT_TRUE(first.unknown_keys.empty());
  const FrameworkJob second = read(Framework::accelerate, "two.yaml",
                                   "distributed_type: FSDP\nmixed_precision: no\nnum_processes: 4\nfsdp_config:\n"
                                   "  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n  fsdp_sise: 3\n");
  EXPECT_EQ(second.policies, std::vector<std::string>{"fsdp:version=2,ranks=4,reshard_after_forward=0"});
  EXPECT_EQ(second.unknown_keys, std::vector<std::string>{"fsdp_config.fsdp_sise"});
  EXPECT_TRUE(second.settings.empty()) << "mixed_precision: no is YAML's false";
}

TEST_F(FrameworkJobOf, AccelerateOfDeepSpeedReadsTheNamedFile) {
  write_content(folder_ / "ds.json", R"({"train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 1}})");
  const FrameworkJob named = read(Framework::accelerate, "a.yaml",
                                  "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n"
                                  "  deepspeed_config_file: ds.json\n");
  EXPECT_EQ(named.policies, std::vector<std::string>{"deepspeed:stage=1,ranks=2"});
  EXPECT_EQ(named.batch, 3);
  EXPECT_EQ(named.files.size(), 2u);
  const FrameworkJob inside = read(Framework::accelerate, "b.yaml",
                                   "distributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: fp16\n"
                                   "deepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n"
                                   "  offload_param_device: none\n  gradient_accumulation_steps: 4\n");
  EXPECT_EQ(inside.policies, std::vector<std::string>{"deepspeed:stage=3,ranks=2,offload_optimizer=cpu"});
  EXPECT_TRUE(has(inside.settings, "accumulation=4"));
}

TEST_F(FrameworkJobOf, TransformersArgumentsAreDataParallelFsdpOrDeepSpeed) {
  const auto json = [&](const std::string& text) { return read(Framework::transformers, "args.json", text, 8); };
  const FrameworkJob plain = json(R"({"per_device_train_batch_size": 4, "bf16": true, "gradient_checkpointing": true,
    "optim": "adamw_torch", "ddp_bucket_cap_mb": 50, "learning_rate": 1e-4})");
  EXPECT_EQ(plain.policies, (std::vector<std::string>{"checkpoint:mode=full", "ddp:ranks=8,bucket_cap=50MiB"}));
  EXPECT_TRUE(has(plain.settings, "batch=4") && has(plain.settings, "precision=amp_bf16") &&
              has(plain.settings, "optimizer_kernels=foreach"));
  const FrameworkJob sharded = json(R"({"fsdp": true, "bf16": true, "fsdp_config": {"version": 2,
    "reshard_after_forward": true, "cpu_offload": true}})");
  EXPECT_EQ(sharded.policies,
            std::vector<std::string>{"fsdp:version=2,ranks=8,reshard_after_forward=1,reduce_dtype=bf16,offload=cpu"});
  write_content(folder_ / "ds.json", R"({"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 2}})");
  const FrameworkJob zero = json(R"({"deepspeed": "ds.json", "per_device_train_batch_size": 2, "bf16": true})");
  EXPECT_EQ(zero.policies, std::vector<std::string>{"deepspeed:stage=2,ranks=8"});
  EXPECT_TRUE(has(zero.settings, "batch=2") && has(zero.settings, "precision=bf16"));
  write_content(folder_ / "ds.json", R"({"train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 2}})");
  const std::string sentence = refusal<InputError>([&] { json(R"({"deepspeed": "ds.json"})"); });
  EXPECT_NE(sentence.find("do not match"), std::string::npos) << sentence;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
