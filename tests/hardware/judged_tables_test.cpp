// Are tables divided, fitted and judged as the page says? Against closed forms, and with a planted error.
#include "validate/published/judged_tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"
#include "tests/support/scratch_folder.h"
#include "validate/published/fit_constants.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<PublishedCase> cases_of(std::size_t usable, std::size_t refused) {
  std::vector<PublishedCase> cases(usable + refused);
  for (std::size_t i = 0; i < refused; ++i) cases[2 * i].why_not = "tensor parallelism is not implemented";
  return cases;
}

std::size_t count(const std::vector<PublishedCase>& cases, Half half) {
  std::size_t n = 0;
  for (const PublishedCase& c : cases) n += c.half == half ? 1 : 0;
  return n;
}

TEST(JudgedTables, TheFirstHalfOfWhatIsUsableIsFitted) {
  auto cases = cases_of(9, 2);
  halve(cases);
  EXPECT_EQ(count(cases, Half::fitted), 4U);
  EXPECT_EQ(count(cases, Half::judged), 5U) << "the judged half has one more";
  EXPECT_EQ(count(cases, Half::none), 2U);
  EXPECT_EQ(cases[0].half, Half::none) << "it is refused";
  EXPECT_EQ(cases[1].half, Half::fitted);
  EXPECT_EQ(cases[5].half, Half::fitted) << "the fourth usable row";
  EXPECT_EQ(cases[6].half, Half::judged);
}

TEST(JudgedTables, ATableOfFewerThanFourUsableRowsIsJudgedWhole) {
  auto three = cases_of(3, 1), four = cases_of(4, 1);
  halve(three);
  halve(four);
  EXPECT_EQ(count(three, Half::fitted), 0U);
  EXPECT_EQ(count(three, Half::judged), 3U);
  EXPECT_EQ(count(four, Half::fitted), 2U);
}

TEST(JudgedTables, RankCorrelationIsSpearmans) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {10, 20, 35, 36}).value(), 1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}).value(), -1);
  // 1 - 6 sum d^2 / (n (n^2 - 1)), without equal values: d = 1, 1, 0, 0, 0.
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4, 5}, {2, 1, 3, 4, 5}).value(), 1 - 6.0 * 2 / (5 * 24));
  // Equal values share their ranks: of 1, 2.5, 2.5, 4 against 1, 2, 3, 4 the covariance is 4.5, the variances 4.5
  // and 5.
  EXPECT_DOUBLE_EQ(rank_correlation({1, 7, 7, 9}, {1, 2, 3, 4}).value(), 4.5 / std::sqrt(4.5 * 5));
  EXPECT_FALSE(rank_correlation({1}, {1}).has_value());
  EXPECT_FALSE(rank_correlation({1, 1, 1}, {1, 2, 3}).has_value());
}

PublishedResult step(Half half, const std::string& gpu, double measured, double predicted, double at_peak) {
  PublishedResult r;
  r.table = "t";
  r.metric = "step time";
  r.unit = "s";
  r.protocol = Protocol::halves;
  r.half = half;
  r.gpu = gpu;
  r.measured = measured;
  r.predicted = predicted;
  r.seconds_at_peak = at_peak;
  return r;
}

TEST(JudgedTables, TheNullModelHasOneUtilizationPerGpuAndThatOfTheTableForOthers) {
  const std::vector<PublishedResult> results{step(Half::fitted, "a", 10, 10, 4), step(Half::fitted, "a", 10, 10, 5),
                                             step(Half::fitted, "a", 10, 10, 9), step(Half::fitted, "b", 10, 10, 1),
                                             step(Half::judged, "a", 3, 3, 1),   step(Half::judged, "b", 3, 3, 1),
                                             step(Half::judged, "c", 3, 3, 1)};
  const auto null = null_seconds(results);
  EXPECT_DOUBLE_EQ(null[4].value(), 1 / 0.5) << "the median of 0.4, 0.5 and 0.9";
  EXPECT_DOUBLE_EQ(null[5].value(), 1 / 0.1);
  EXPECT_DOUBLE_EQ(null[6].value(), 1 / 0.45) << "of a GPU without a fitted row: the median of all four";
  EXPECT_DOUBLE_EQ(null[1].value(), 5 / 0.5);
}

TEST(JudgedTables, WithoutAFittedRowThereIsNoNull) {
  const auto null = null_seconds({step(Half::judged, "a", 1, 1, 1)});
  EXPECT_FALSE(null[0].has_value());
}

TEST(JudgedTables, FittedAndJudgedRowsAreToldApart) {
  std::vector<PublishedResult> results{step(Half::fitted, "a", 10, 20, 5), step(Half::fitted, "a", 20, 20, 10)};
  for (int i = 1; i <= 10; ++i) results.push_back(step(Half::judged, "a", 100 + i, (100 + i) * (1 + i / 100.0), 40));
  PublishedResult refused = step(Half::judged, "a", 5, 0, 0);
  refused.why_not = "not implemented";
  results.push_back(refused);
  PublishedResult memory = step(Half::judged, "a", 0, 1, 0);  // measured: out of memory; predicted: it fits
  memory.metric = "fits";
  results.push_back(memory);
  const auto tables = judged_tables(results);
  ASSERT_EQ(tables.size(), 1U);
  const JudgedTable& t = tables[0];
  EXPECT_EQ(t.fitted.rows, 2U);
  EXPECT_DOUBLE_EQ(t.fitted.median, 0.5) << "the mean of 1 and 0";
  EXPECT_EQ(t.judged.rows, 10U);
  EXPECT_NEAR(t.judged.median, 0.055, 1e-12);
  EXPECT_NEAR(t.judged.p90, 0.09, 1e-12) << "nearest rank: the ninth of ten";
  EXPECT_NEAR(t.judged.null_median.value(), std::abs(80 / 105.5 - 1), 1e-3) << "utilization 0.5: 80 s for each";
  EXPECT_DOUBLE_EQ(t.order.value(), 1);
  EXPECT_EQ(t.not_predicted, 1U);
  EXPECT_EQ(t.fits_told, 1U);
  EXPECT_EQ(t.fits_right, 0U);
}

// A planted error: rows whose order is turned round, and times that are doubled, are seen.
TEST(JudgedTables, APlantedErrorIsSeen) {
  std::vector<PublishedResult> results;
  for (int i = 1; i <= 6; ++i) results.push_back(step(Half::judged, "a", i, i, 1));
  const JudgedTable right = judged_tables(results)[0];
  EXPECT_DOUBLE_EQ(right.judged.median, 0);
  EXPECT_DOUBLE_EQ(right.order.value(), 1);
  for (PublishedResult& r : results) r.predicted *= 2;
  EXPECT_DOUBLE_EQ(judged_tables(results)[0].judged.median, 1);
  for (PublishedResult& r : results) r.predicted = 7 - r.measured;
  EXPECT_DOUBLE_EQ(judged_tables(results)[0].order.value(), -1);
}

// Step times that follow a law whose constants are known: products p, collectives 2 / n beside them, host h.
std::vector<double> law(const FrameworkConstants& c) {
  return {4 * c.products + c.host, std::max(3 * c.products, 2 / c.network), 10 * c.products, 6 / c.network, 5 * c.host};
}

TEST(FitConstants, ConstantsOfAKnownLawAreFound) {
  const FrameworkConstants truth{.products = 1.2, .network = 0.4, .host = 2};
  const FittedConstants fitted = fit_constants(law(truth), law, 3);
  EXPECT_NEAR(fitted.constants.products, truth.products, 0.02);
  EXPECT_NEAR(fitted.constants.network, truth.network, 0.01);
  EXPECT_NEAR(fitted.constants.host, truth.host, 0.04);
  EXPECT_LT(fitted.error, 0.02);
  EXPECT_GT(fitted.before, 0.3);
}

TEST(FitConstants, AConstantThatChangesNothingStaysAsItIs) {
  const auto products_alone = [](const FrameworkConstants& c) {
    return std::vector<double>{c.products, 3 * c.products};
  };
  const FittedConstants fitted = fit_constants({1.5, 4.5}, products_alone, 3);
  EXPECT_NEAR(fitted.constants.products, 1.5, 0.01);
  EXPECT_EQ(fitted.constants.network, 1);
  EXPECT_EQ(fitted.constants.host, 1);
}

// Four rows of one job whose host works longer for smaller micro-batches. Whoever begins with the products takes them
// for what they are not, and each constant alone is then where it is best.
TEST(FitConstants, ASlowHostIsNotTakenForSlowProducts) {
  const auto rows = [](const FrameworkConstants& c) {
    return std::vector<double>{87 * c.products + 6 * c.host + 30, 86 * c.products + 3 * c.host + 28,
                               85 * c.products + 1.5 * c.host + 28, 90 * c.products + 0.8 * c.host + 28};
  };
  const FrameworkConstants truth{.products = 1.1, .host = 3};
  const FittedConstants fitted = fit_constants(rows(truth), rows, 3);
  EXPECT_NEAR(fitted.constants.products, truth.products, 0.01);
  EXPECT_NEAR(fitted.constants.host, truth.host, 0.1);
}

TEST(FitConstants, NoMoreConstantsAreFittedThanAsked) {
  const FittedConstants fitted = fit_constants(law({.products = 1.2, .network = 0.4, .host = 2}), law, 1);
  EXPECT_NE(fitted.constants.products, 1);
  EXPECT_EQ(fitted.constants.network, 1);
  EXPECT_EQ(fitted.constants.host, 1);
}

TEST(FrameworkConstants, TheyAreAppliedWhereTheySay) {
  const Machine machine = load_machine("dgx-a100-80gb");
  const Machine slower = with_network(machine, 0.5);
  ASSERT_EQ(slower.fabrics.size(), machine.fabrics.size());
  for (std::size_t i = 0; i < machine.fabrics.size(); ++i)
    EXPECT_DOUBLE_EQ(slower.fabrics[i].bus_bandwidth, machine.fabrics[i].bus_bandwidth / 2);
  EXPECT_EQ(with_network(machine, 1), machine);
  EXPECT_EQ(scale_text({.products = 1.25, .network = 0.5, .host = 2}), "kernels=1,host=2,collectives=1");
}

// A large product takes so many times as long, what memory bounds the same.
TEST(FrameworkConstants, ProductsAreSlowerAndWhatMemoryBoundsIsNot) {
  const Machine machine = load_machine("dgx-a100-80gb"), slower = with_products(machine, 1.5);
  Op product;
  product.kind = OpKind::kernel;
  product.operator_class = OperatorClass::gemm;
  product.data_type = DataType::bf16;
  product.flops = 2.0 * 8192 * 8192 * 8192;
  product.bytes = Bytes{3} * 8192 * 8192 * 2;
  const Shape extents{1, 8192, 8192, 8192};
  EXPECT_NEAR(
      to_seconds(kernel_duration(slower, product, extents)) / to_seconds(kernel_duration(machine, product, extents)),
      1.5, 0.01);
  Op sum;
  sum.kind = OpKind::kernel;
  sum.operator_class = OperatorClass::elementwise;
  sum.data_type = DataType::bf16;
  sum.bytes = Bytes{1} << 30;
  EXPECT_EQ(kernel_duration(slower, sum, {}), kernel_duration(machine, sum, {}));
  EXPECT_EQ(with_products(machine, 1), machine);
}

TEST(FrameworkConstants, HooksTakeTheHostsTimeToo) {
  const std::vector<std::string> policies{"fsdp:ranks=8", "deepspeed:stage=3,ranks=8", "torchtitan:mode=full"};
  EXPECT_EQ(with_hooks(policies, 1), policies);
  EXPECT_EQ(with_hooks(policies, 2.5),
            (std::vector<std::string>{"fsdp:ranks=8,hook_us=250", "deepspeed:stage=3,ranks=8,hook_us=150",
                                      "torchtitan:mode=full"}));
}

TEST(FrameworkConstants, AGpuWithoutFittedRowsTakesWhatBelongsToTheProgram) {
  const FrameworkConstants fitted = fitted_constants("answerai_fsdp_qlora", "2x3090");
  EXPECT_NE(fitted.products, 1);
  const FrameworkConstants other = fitted_constants("answerai_fsdp_qlora", "2xA5000");
  EXPECT_EQ(other, (FrameworkConstants{.host = fitted.host})) << "products and collectives are of GPU and computer";
  EXPECT_EQ(fitted_constants("no such table", "2x3090"), FrameworkConstants());
}

constexpr const char* kTitan = "torchtitan_llama_perf_memory.csv";
constexpr const char* kTitanColumns =
    "model,gpu,gpus,fsdp,tp,pp,cp,seq,local_batch,global_batch,act_ckpt,options,tokens_per_s_per_gpu,peak_mem_gib,"
    "mfu_pct,confidence,source\n";

TEST(JudgedTables, RowsBecomeTheJobsTheyDescribe) {
  const ScratchFolder folder;
  write_content(folder / kTitan, std::string(kTitanColumns) +
                                     "llama3.1-8B,H200-141GB,8,8,1,1,1,8192,2,16,selective(op),eager,4096,50,,x,y\n"
                                     "llama3.1-70B,H200-141GB,256,32,8,1,1,8192,16,512,full,compile,876,67.6,,x,y\n"
                                     "llama2-70B,A100-80GB,64,64,1,1,1,4096,2,128,none,eager,OOM,OOM,,x,y\n");
  const auto cases = published_cases(folder.path());
  ASSERT_EQ(cases.size(), 3U);
  EXPECT_EQ(cases[0].why_not, "");
  EXPECT_DOUBLE_EQ(cases[0].step_seconds, 4) << "2 x 8192 tokens";
  EXPECT_DOUBLE_EQ(cases[0].reserved_bytes, 50.0 * (1 << 30));
  EXPECT_EQ(cases[0].half, Half::judged) << "two usable rows are judged whole";
  EXPECT_EQ(cases[0].machine, "hgx-h200");
  ASSERT_EQ(cases[0].policies.size(), 2U);
  EXPECT_EQ(cases[0].policies[0].rfind("fsdp:", 0), 0U) << cases[0].policies[0];
  EXPECT_NE(cases[0].policies[0].find("ranks=8"), std::string::npos);
  EXPECT_EQ(cases[1].ran, std::optional(false));
  EXPECT_EQ(cases[1].step_seconds, 0);
  EXPECT_EQ(cases[2].why_not, "") << "of the table of tensor-parallel rows, behind the others";
  EXPECT_EQ(cases[2].half, Half::judged);
  EXPECT_NE(cases[2].policies[0].find("ranks=32"), std::string::npos) << cases[2].policies[0];
}

// Rows that nobody measured: pipelines of both schedules, micro-batches as many as stages. What is predicted lies above
// the time of the FLOPs at the peak rate and, of what torchtitan fits, below the GPU's memory.
TEST(JudgedTables, RowsOfTorchtitansPipelinesArePredicted) {
  const ScratchFolder folder;
  const std::string h100 = ",H100-96GB HBM2e 500W,";
  write_content(folder / kTitan,
                std::string(kTitanColumns) + "llama3.1-70B" + h100 +
                    "64,2,8,4,1,8192,16,32,full,compile+float8+asyncTP 1F1B,1000,70,,x,y\n" + "llama3.1-70B" + h100 +
                    "64,2,8,4,1,8192,16,32,full,compile+float8+asyncTP Interleaved 1F1B,1000,70,,x,y\n" +
                    "llama3.1-8B" + h100 + "16,4,2,2,1,8192,4,16,selective(op),bf16 Interleaved 1F1B,1000,70,,x,y\n" +
                    "llama3.1-8B" + h100 + "16,4,2,2,1,8192,3,12,none,eager 1F1B,1000,70,,x,y\n" + "llama3.1-8B" +
                    h100 + "16,4,2,2,1,8192,4,16,none,eager ZBV,1000,70,,x,y\n" + "llama3.1-8B" + h100 +
                    "16,2,2,2,2,8192,4,16,none,eager 1F1B,1000,70,,x,y\n");
  const auto cases = published_cases(folder.path());
  ASSERT_EQ(cases.size(), 6U);
  const Recipe &plain = cases[0].job.recipe, &interleaved = cases[1].job.recipe, &eager = cases[2].job.recipe;
  EXPECT_EQ(plain.accumulation, 4);
  EXPECT_EQ(plain.batch, 4);
  EXPECT_EQ(plain.data_parallel, 2U);
  EXPECT_EQ(plain.parallel.pipeline, 4);
  EXPECT_EQ(interleaved.parallel.interleave, 2);
  EXPECT_EQ(interleaved.accumulation, 8);
  EXPECT_EQ(interleaved.batch, 2);
  EXPECT_EQ(eager.precision, Precision::bf16);
  EXPECT_EQ(cases[0].policies, (std::vector<std::string>{"compile:modules=layers.*", "torchtitan:mode=full"}));
  EXPECT_EQ(cases[2].policies, std::vector<std::string>{"torchtitan:mode=selective,selective_ac_option=op"});
  EXPECT_DOUBLE_EQ(cases[0].step_seconds, 16 * 8192 / (1000.0 * 8 * 4));
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(cases[i].name);
    EXPECT_EQ(cases[i].why_not, "");
    double seconds = 0;
    for (const PublishedResult& result : predict(cases[i], false)) {
      EXPECT_EQ(result.why_not, "");
      if (result.metric == "step time") {
        seconds = result.predicted;
        EXPECT_GT(result.predicted, result.seconds_at_peak);
        EXPECT_LT(result.predicted, 12 * result.seconds_at_peak);
      }
      if (result.metric == "peak reserved") {
        EXPECT_GT(result.predicted, 20e9);
        EXPECT_LT(result.predicted, 96e9);
      }
    }
    EXPECT_GT(seconds, 0);
  }
  EXPECT_NE(cases[3].why_not.find("cannot be cut"), std::string::npos) << cases[3].why_not;
  EXPECT_NE(cases[4].why_not.find("schedule is not known"), std::string::npos);
  EXPECT_NE(cases[5].why_not.find("context parallelism"), std::string::npos);
}

// A GPU's tokens are its share of those of the ranks that share its layers, whose micro-batches are twice as large.
TEST(JudgedTables, RowsOfTwoTensorParallelRanksAreOneJobOfHalfAsManyReplicas) {
  const ScratchFolder folder;
  write_content(folder / "internevo_7b_a100_zero1_scope.csv",
                "config,gpus,tokens_per_gpu_s,confidence\n\"(tp=1, zero1=8)\",32,2048,x\n"
                "\"(tp=2, zero1=4)\",32,2048,x\n\"(tp=2, zero1=-1)\",32,2048,x\n\"(tp=3, zero1=-1)\",32,2048,x\n");
  const auto cases = published_cases(folder.path());
  ASSERT_EQ(cases.size(), 4U);
  EXPECT_DOUBLE_EQ(cases[0].step_seconds, 2 * 4);
  EXPECT_NE(cases[0].policies[0].find("ranks=32,partition_ranks=8,"), std::string::npos) << cases[0].policies[0];
  EXPECT_EQ(cases[1].job.recipe.parallel.tensor, 2);
  EXPECT_EQ(cases[1].job.recipe.batch, 4);
  EXPECT_DOUBLE_EQ(cases[1].step_seconds, 4 * 4 / 2.0);
  EXPECT_NE(cases[1].policies[0].find("ranks=16,partition_ranks=4,"), std::string::npos) << cases[1].policies[0];
  EXPECT_NE(cases[2].policies[0].find("ranks=16,partition_ranks=16,"), std::string::npos) << cases[2].policies[0];
  EXPECT_EQ(cases[3].why_not, "its GPUs are not TP x DP");
}

TEST(JudgedTables, MicroBatchesThatDoNotAddUpAreNotPredicted) {
  const ScratchFolder folder;
  const std::string columns =
      "table,model,d_model,n_heads,n_layers,vocab,seq,gpus,gpu,precision,mp_mode,sharding,act_ckpt,act_cpu_offload,"
      "microbatch,grad_accum,global_batch,derived_step_time_s\n";
  write_content(folder / "mosaic_llmfoundry_mpt_throughput.csv",
                columns + "t,125m,768,12,12,50368,2048,8,a100_40gb,bf16,PURE,FULL_SHARD,True,False,2,3,48,1.5\n" +
                    "t,125m,768,12,12,50368,2048,8,a100_40gb,bf16,PURE,FULL_SHARD,True,False,2,3,64,1.5\n" +
                    "t,125m,768,12,12,50368,2048,8,abacus,bf16,PURE,FULL_SHARD,True,False,2,3,48,1.5\n");
  const auto cases = published_cases(folder.path());
  ASSERT_EQ(cases.size(), 3U);
  EXPECT_EQ(cases[0].why_not, "");
  EXPECT_EQ(cases[0].job.recipe.accumulation, 3);
  EXPECT_EQ(cases[0].job.recipe.batch, 2);
  EXPECT_EQ(cases[0].job.recipe.checkpoint, ActivationCheckpoint::full);
  EXPECT_NE(cases[1].why_not.find("micro batches"), std::string::npos);
  EXPECT_NE(cases[2].why_not.find("no machine file"), std::string::npos);
}

// A rate of the table's own formula becomes a step time.
TEST(JudgedTables, RatesBecomeStepTimesByTheTablesFormula) {
  const ScratchFolder folder;
  write_content(folder / "deepspeed_azure_zero3_a100.csv",
                "model,hidden,layers,heads,seq,gpus,micro_batch,tflops_per_gpu,confidence\n"
                "toy,1024,24,16,1024,64,2,100,x\n");
  const auto cases = published_cases(folder.path());
  ASSERT_EQ(cases.size(), 1U);
  const double flops = 96.0 * 2 * 1024 * 24 * 1024 * 1024 * (1 + 1024.0 / (6 * 1024) + 50304.0 / (16.0 * 24 * 1024));
  EXPECT_DOUBLE_EQ(cases[0].step_seconds, flops / 100e12);
  EXPECT_FALSE(cases[0].policies_where_needed.empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
