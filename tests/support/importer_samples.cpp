#include "tests/support/importer_samples.h"

#include "tests/support/chakra_writer.h"
#include "tests/support/inject_writer.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/rocm_writer.h"
#include "tests/support/small_capture.h"
#include "tests/support/sqlite_writer.h"
#include "tests/support/synthetic_snapshot.h"
#include "tests/support/tensor_logs.h"

namespace memwall {
namespace {

// The names and thread numbers of 2021, an array without an object around it, ROCm's calls and missing sizes.
constexpr const char* kRocmArray = R"([
{"ph":"X","cat":"Operator","name":"aten::addmm","pid":"1","tid":"5","ts":100,"dur":60,"args":{"Input dims":[[8],[4,16],[16,8]],"Device":1}},
{"ph":"X","cat":"Runtime","name":"hipLaunchKernel","pid":"1","tid":"5","ts":110,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"Kernel","name":"Cijk_Ailk_Bljk_SB","pid":0,"tid":"stream 7","ts":130,"dur":20,"args":{"stream":7,"device":0,"correlation":1}},
{"ph":"X","cat":"hip_runtime","name":"hipMemcpyWithStream","pid":"1","tid":"5","ts":170,"dur":40,"args":{"correlation":2,"size":4096}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH","pid":0,"tid":7,"ts":190,"dur":15,"args":{"stream":7,"device":0,"correlation":2}},
{"ph":"i","cat":"","name":"[memory]","pid":"1","tid":"5","ts":220,"args":{"Device Type":6,"Device Id":0,"Bytes":512}},
{"ph":"i","cat":"","name":"[memory]","pid":"1","tid":"5","ts":230,"args":{"Device Type":6,"Device Id":0,"Bytes":-512}},
{"ph":"X","cat":"hip_runtime","name":"hipDeviceSynchronize","pid":"1","tid":"5","ts":240,"dur":4,"args":{"correlation":3}}
])";

constexpr const char* kCapturedStep =
    R"({"format":"memwall-capture","version":1,"name":"t","mode":"fake","end":true}
{"storage":0,"bytes":96,"kind":"parameter","place":"hbm","preexisting":true}
{"storage":1,"bytes":96,"kind":"activation","place":"hbm"}
{"step":"0"}
{"alloc":1}
{"op":"aten::bmm","reads":[0],"writes":[1],"class":"gemm","phase":"forward","flops":96,"module":"layers.0","inputs":[[[2,3,4],"fp32",0],[[2,4,3],"fp32",0,[12,1,4]]],"outputs":[[[2,3,3],"fp32",1]]}
{"op":"aten::view","reads":[1],"kernels":0,"calls":2}
{"op":"aten::_softmax","reads":[1],"writes":[1],"class":"reduction","phase":"backward","width":4,"inputs":[[[3,4,2],"fp32",1]],"outputs":[[[3,4,2],"fp32",1]]}
{"free":1}
{"end":8}
)";

constexpr const char* kKernels =
    "kernel_id,name,exec_cycles_at_1.2GHz,input_tensor_ids,output_tensor_ids\n"
    "0,Conv2d_Forward,12,1 0,2 3\n1,makeLoss,3,2,2\n2,Conv2d_Backward_Weight,1,2 1,4\n3,Conv2d_Apply_Grad,2,4 0,0\n";
constexpr const char* kTensors =
    "tensor_id,is_global_weight,size_bytes,offset_in_its_space,birth_kernel,death_kernel\n"
    "0,1,1000,0,,\n1,0,64,0,0,3\n2,0,256,64,0,3\n3,0,4096,320,0,-1\n4,0,1000,4416,2,4\n";

std::string captured_program() {
  constexpr std::uint64_t t = 1'700'000'000'000'000'000;
  InjectWriter w;
  w.process(4711, "./train");
  w.device(0, "NVIDIA H100 80GB HBM3", 85018279936, 132);
  w.context(1, 0);
  w.range("step 1", t, t + 900'000);
  w.range("aten::addmm, seq = 7, sizes = [[4, 8], [8, 2]]", t + 2000, t + 200'000);
  w.call({.name = "cudaLaunchKernel", .start = t + 10'000, .end = t + 15'000, .correlation = 1});
  w.kernel({.name = "gemm", .start = t + 19'000, .end = t + 60'000, .correlation = 1, .blocks = 264, .registers = 64});
  w.call({.name = "cudaMalloc", .start = t + 71'000, .end = t + 80'000, .correlation = 2});
  w.memory(1, t + 79'000, 0x1000, 1 << 20, 2);
  w.call({.name = "cudaMemcpyAsync", .start = t + 90'000, .end = t + 150'000, .correlation = 3});
  w.copy({.start = t + 95'000,
          .end = t + 140'000,
          .bytes = 1 << 20,
          .kind = 2,
          .source = 3,
          .destination = 1,
          .correlation = 3});
  w.call({.name = "cudaDeviceSynchronize", .start = t + 160'000, .end = t + 170'000, .correlation = 4});
  w.synchronization(4, t + 160'000, t + 170'000, 4, 0xffffffff);
  w.end();
  return w.bytes();
}

// Two operators of a forward pass, in the schema of 2023.
constexpr const char* kExecutionTrace = R"j({"schema":"1.0.1","pid":7,"start_ts":1,"finish_ts":2,"nodes":[
{"name":"aten::relu_","id":20,"rf_id":6,"parent":2,"fw_parent":0,"seq_id":-1,"scope":0,"tid":1,"fw_tid":0,"op_schema":"aten::relu_(Tensor(a!) self) -> Tensor(a!)","inputs":[[18,19,0,24,4,"cuda:0"]],"input_shapes":[[4,6]],"input_types":["Tensor(float)"],"outputs":[[18,19,0,24,4,"cuda:0"]],"output_shapes":[[4,6]],"output_types":["Tensor(float)"]},
{"name":"aten::addmm","id":14,"rf_id":5,"parent":2,"fw_parent":0,"seq_id":661,"scope":0,"tid":1,"fw_tid":0,"op_schema":"aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor","inputs":[[7,8,0,6,4,"cuda:0"],[3,4,0,20,4,"cuda:0"],[13,6,0,30,4,"cuda:0"],1,1],"input_shapes":[[6],[4,5],[5,6],[],[]],"input_types":["Tensor(float)","Tensor(float)","Tensor(float)","Int","Int"],"outputs":[[18,19,0,24,4,"cuda:0"]],"output_shapes":[[4,6]],"output_types":["Tensor(float)"]}
]})j";

// The same with what newer schemas add: attributes as a list, a process group, a Triton kernel, a second device.
constexpr const char* kNewExecutionTrace = R"j({"schema":"1.1.1-chakra.0.0.4","pid":7,"nodes":[
{"id":9,"name":"aten::mm","ctrl_deps":2,"inputs":{"values":[[7,8,0,20,4,"cuda:0"],[3,4,0,30,4,"cuda:0"]],"shapes":[[4,5],[5,6]],"types":["Tensor(float)","Tensor(float)"]},"outputs":{"values":[[18,19,0,24,4,"cuda:0"]],"shapes":[[4,6]],"types":["Tensor(float)"]},"attrs":[{"name":"rf_id","type":"uint64","value":5},{"name":"tid","type":"uint64","value":1},{"name":"op_schema","type":"string","value":"aten::mm(Tensor self, Tensor mat2) -> Tensor"}]},
{"id":11,"name":"record_param_comms","ctrl_deps":10,"inputs":{"values":[[[18,19,0,24,4,"cuda:0"]],3,["0","default_pg"],1,"allreduce",[],[],0,2,4],"shapes":[[[4,6]],[],[[],[]],[],[],[],[],[],[],[]],"types":["GenericList[Tensor(float)]","Int","Tuple[String,String]","Int","String","GenericList[]","GenericList[]","Int","Int","Int"]},"outputs":{"values":[],"shapes":[],"types":[]},"attrs":[{"name":"rf_id","type":"uint64","value":7},{"name":"tid","type":"uint64","value":2},{"name":"pg_size","type":"uint64","value":4}]},
{"id":12,"name":"triton_poi_0","ctrl_deps":2,"inputs":{"values":[[18,19,0,24,4,"cuda:0"],[20,21,0,24,4,"cuda:1"]],"shapes":[[4,6],[4,6]],"types":["Tensor(float)","Tensor(float)"]},"outputs":{"values":[],"shapes":[],"types":[]},"attrs":[{"name":"rf_id","type":"uint64","value":8},{"name":"tid","type":"uint64","value":1},{"name":"kernel_backend","type":"string","value":"triton"}]}
]})j";

constexpr const char* kChakraGraph = R"j({"workload_graph":[
{"Id":5,"Name":"aten::mm(0)","NodeType":4,"ctrlDeps":[1],"data_deps":[],"runtime":12,"is_cpu_op":true},
{"Id":6,"Name":"gemm","NodeType":4,"data_deps":[5],"runtime":40,"is_cpu_op":false},
{"Id":7,"Name":"ncclKernel_AllReduce_RING","NodeType":7,"data_deps":[5,6],"is_cpu_op":false,"comm_size":64,"comm_type":0}
]})j";

// As the protobuf is printed: one object after the other.
constexpr const char* kPrintedChakra = R"j({"version":"0.0.4"}
{"id":"1","name":"load","type":"MEM_LOAD_NODE","attr":[{"name":"tensor_size","uint64Val":"4096"}]}
{"id":"2","name":"layer","type":"COMP_NODE","dataDeps":["1"],"durationMicros":"12","attr":[{"name":"num_ops","int64Val":"9"}]}
)j";

std::string chakra_messages() {
  WrittenNode host{.id = 1, .name = "aten::mm(0)", .control = {9}, .duration = 12};
  host.values = "[[1, 2, 0, 20, 4, 'cuda:0'], [3, 4, 0, 30, 4, 'cuda:0'], True]";
  host.shapes = "[[4, 5], [5, 6], []]";
  host.types = "['Tensor(float)', 'Tensor(float)', 'Bool']";
  host.out_values = "[[5, 6, 0, 24, 4, 'cuda:0']]";
  host.out_shapes = "[[4, 6]]";
  host.out_types = "['Tensor(float)']";
  host.with("is_cpu_op", 1, 27)
      .with("tid", 1)
      .with("rf_id", 3)
      .with("op_schema", "aten::mm(Tensor a, Tensor b) -> Tensor");
  WrittenNode kernel{.id = 2, .name = "gemm", .data = {1}, .duration = 40};
  kernel.with("is_cpu_op", std::uint64_t{0}, 27).with("stream", 7);
  WrittenNode gather{.id = 3, .name = "ALL_GATHER", .type = 7, .data = {1, 2}};
  gather.with("comm_type", 2).with("comm_size", 640).with("stream", 20).with("pg_name", "0");
  WrittenNode next{.id = 4, .name = "aten::add", .data = {1, 2}, .duration = 5};
  next.with("is_cpu_op", 1, 27).with("tid", 2);
  return chakra_file({host, kernel, gather, next});
}

}  // namespace

std::vector<ImporterSample> importer_samples() {
  return {
      {"Kineto", {{"small.json", small_capture()}}},
      {"Kineto of 2021 on ROCm", {{"rocm.json", kRocmArray}}},
      {"captured step", {{"small.mwc", kCapturedStep}}},
      {"captured CUDA program", {{"small.mwi", captured_program()}}},
      {"ExecutionTrace", {{"small.et.json", kExecutionTrace}}},
      {"G10", {{"a-1.kernels.csv", kKernels}, {"a-1.tensors.csv", kTensors}}},
      {"newer ExecutionTrace", {{"new.et.json", kNewExecutionTrace}}},
      {"Chakra", {{"small.0.et", chakra_messages()}}},
      {"Chakra in JSON", {{"small.0.json", kChakraGraph}}},
      {"Chakra printed", {{"printed.json", kPrintedChakra}}},
      {"Nsight Systems", {{"small.sqlite", nsys_report()}}},
      {"ROCm", {{"small.db", rocpd_database()}}},
      {"newer ROCm", {{"small.db", rocpd_database(RocpdForm::referred)}}},
      {"ROCm in JSON", {{"small_results.json", rocprof_json()}}},
      {"TrioSim", {{"trace.csv", kTrioSimTrace}, {"tensor.csv", kTrioSimTensors}}},
      {"DTR", {{"small.log", kDtrLog}}},
      {"memory timeline", {{"small.raw.json", kMemoryTimeline}}},
      {"memory snapshot", {{"small.pickle", pickled(small_snapshot())}}},
  };
}

}  // namespace memwall
