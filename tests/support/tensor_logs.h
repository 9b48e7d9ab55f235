// Small logs of other simulators and of PyTorch's memory profiler, written by hand by the rules of their formats. For
// tests of their importers.
#pragma once

namespace memwall {

// TrioSim: a convolution, a ReLU in place, a linear layer, the loss, their backward passes and Adam. Storage number 50
// is the convolution's output and comes back in the backward pass; tensor 31 is made inside the linear layer's op.
inline constexpr const char* kTrioSimTrace =
    "OperatorID,OperatorName,Operator_input,Operator_output,Operator_cudatime,Operator_cudatimenooverlap,InputSize,"
    "OutputSize,gpuid,stage,tpflag\n"
    "1,aten::conv2d,[4; 6],[10],100,90,[24; 12],[32],0,forward,1\n"
    "2,aten::relu_,[10],[10],5,5,[32],[32],0,forward,0\n"
    "3,aten::linear,[20; 22; 24],[40],20,20,[32; 64; 8],[16],0,forward,1\n"
    "4,aten::cross_entropy_loss,[40; 42],[44],30,4,[16; 2],[1],0,forward,0\n"
    "5,autograd::engine::evaluate_function: LogSoftmaxBackward0,[31; 40],[50],3,3,[16; 16],[16],0,backward,0\n"
    "6,autograd::engine::evaluate_function: AddmmBackward0,[52],[54],50,40,[64],[64],0,backward,1\n"
    "7,autograd::engine::evaluate_function: ConvolutionBackward0,[56; 4; 6],[9; 60; 9],200,180,[32; 24; 12],[0; 12; "
    "0],0,backward,1\n"
    "8,aten::_foreach_addcdiv_,[6; 22; 60; 70; 72; 74],[],12,10,[12; 64; 12; 64; 12; 64],[],0,optimizer,0\n"
    "9,aten::_foreach_mul_,[72; 74],[],2,2,[12; 64],[],0,optimizer,0\n";
inline constexpr const char* kTrioSimTensors =
    "Index,TensorID,TensorShape,TensorNumElement,TensorEachByte,TensorType,TensorStorgeid,gpuid\n"
    "0,4,\"[2, 3, 2, 2]\",24,4,input,5,0\n"
    "1,6,\"[4, 3, 1, 1]\",12,4,weight,7,0\n"
    "2,10,\"[2, 4, 2, 2]\",32,4,output,50,0\n"
    "3,20,\"[2, 16]\",32,4,input,50,0\n"
    "4,22,\"[8, 8]\",64,4,weight,23,0\n"
    "5,24,[8],8,4,bias=None,25,0\n"
    "6,31,\"[2, 8]\",16,4,grad_output,32,0\n"
    "7,40,\"[2, 8]\",16,4,output,41,0\n"
    "8,42,[2],2,8,target,43,0\n"
    "9,44,[],1,4,output,45,0\n"
    "10,50,\"[2, 8]\",16,4,output,50,0\n"
    "11,52,\"[8, 8]\",64,4,input,23,0\n"
    "12,54,\"[8, 8]\",64,4,output,23,0\n"
    "13,56,\"[2, 4, 2, 2]\",32,4,grad_output,57,0\n"
    "14,9,[],0,0,output,0,0\n"
    "15,60,\"[4, 3, 1, 1]\",12,4,output,61,0\n"
    "16,70,\"[8, 8]\",64,4,input,71,0\n"
    "17,72,\"[4, 3, 1, 1]\",12,4,input,73,0\n"
    "18,74,\"[8, 8]\",64,4,input,75,0\n";

// DTR: x0 is a parameter that was made long ago, x9 only lives before the step.
inline constexpr const char* kDtrLog =
    R"({"INSTRUCTION":"CONSTANT","NAME":"x9"}
{"INSTRUCTION":"MEMORY","MEMORY":"64","NAME":"x9"}
{"ARGS":["x9"],"INSTRUCTION":"CALL","NAME":"relu","RESULT":["x10"],"TIME":"5"}
{"INSTRUCTION":"MEMORY","MEMORY":"64","NAME":"x10"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"x10"}
{"INSTRUCTION":"RELEASE","NAME":"x9"}
{"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"}
{"INSTRUCTION":"CONSTANT","NAME":"x0"}
{"INSTRUCTION":"MEMORY","MEMORY":"1024","NAME":"x0"}
{"ARGS":["x0","x10"],"INSTRUCTION":"CALL","NAME":"cudnn_convolution","RESULT":["x1"],"TIME":"733881"}
{"INSTRUCTION":"MEMORY","MEMORY":"4096","NAME":"x1"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"x1"}
{"DST":"x2","INSTRUCTION":"COPY","SRC":"x1"}
{"ARGS":["x1"],"INSTRUCTION":"CALL","NAME":"view","RESULT":["x3"],"TIME":"1000"}
{"INSTRUCTION":"MEMORY","MEMORY":"4096","NAME":"x3"}
{"ALIAS":"0","INSTRUCTION":"ALIAS","NAME":"x3"}
{"INSTRUCTION":"RELEASE","NAME":"x1"}
{"INSTRUCTION":"RELEASE","NAME":"x2"}
{"ARGS":["x3"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"relu_","TIME":"2000"}
{"ARGS":["x3","x0"],"INSTRUCTION":"CALL","NAME":"cudnn_convolution_backward","RESULT":["x4","x5"],"TIME":"900000"}
{"INSTRUCTION":"MEMORY","MEMORY":"64","NAME":"x4"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"x4"}
{"INSTRUCTION":"MEMORY","MEMORY":"1024","NAME":"x5"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"x5"}
{"INSTRUCTION":"RELEASE","NAME":"x3"}
{"INSTRUCTION":"RELEASE","NAME":"x4"}
{"INSTRUCTION":"RELEASE","NAME":"x77"}
{"INSTRUCTION":"PIN","NAME":"x5"}
{"DST":"x10","INSTRUCTION":"COPY_FROM","SRC":"x5"}
)";

// A memory timeline: a parameter, an input of which nobody knows, an activation that was a temporary first.
inline constexpr const char* kMemoryTimeline =
    "[[-1, 1, 4096, 0], [-1, 1, 512, 7], [1000, 2, 2048, 3], [3000, 3, -2048, 3], [3000, 3, 2048, 4], [3000, 3, -512, "
    "7], [3000, 3, 512, 7],\n [5000, 2, 1024, 5], [9000, 4, -2048, 4], [9500, 4, -512, 7]]";

}  // namespace memwall
