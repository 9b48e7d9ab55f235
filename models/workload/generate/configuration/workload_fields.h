// Every setting of a model and of a recipe with its name, once: files are read, settings changed and
// schemas compared by walking through it.
#pragma once

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"

namespace memwall {

// Calls visit(name, member) for each, in the order of workload.proto. `M` is Model or const Model.
template <class M, class Visit>
void for_each_model_field(M& m, Visit&& visit) {
  visit("name", m.name);
  visit("architecture", m.architecture);
  visit("layers", m.layers);
  visit("width", m.width);
  visit("heads", m.heads);
  visit("key_value_heads", m.key_value_heads);
  visit("head_size", m.head_size);
  visit("inner", m.inner);
  visit("vocabulary", m.vocabulary);
  visit("longest", m.longest);
  visit("normalization", m.normalization);
  visit("activation", m.activation);
  visit("positions", m.positions);
  visit("bias", m.bias);
  visit("query_key_value_bias", m.query_key_value_bias);
  visit("joint_query_key_value", m.joint_query_key_value);
  visit("tied_embedding", m.tied_embedding);
  visit("rotary_in_fp32", m.rotary_in_fp32);
  visit("expanded_key_value", m.expanded_key_value);
  visit("query_key_norm", m.query_key_norm);
  visit("modules", m.modules);
  visit("layer_order", m.layer_order);
  visit("query_key_norm_over_heads", m.query_key_norm_over_heads);
  visit("rotary_size", m.rotary_size);
  visit("sliding_window", m.sliding_window);
  visit("full_attention_every", m.full_attention_every);
  visit("local_rotary", m.local_rotary);
  visit("scaled_embedding", m.scaled_embedding);
  visit("normalized_embedding", m.normalized_embedding);
  visit("attention_softcapping", m.attention_softcapping);
  visit("logit_softcapping", m.logit_softcapping);
  visit("output_bias", m.output_bias);
  visit("position_offset", m.position_offset);
  visit("token_types", m.token_types);
  visit("residual_dropout_only", m.residual_dropout_only);
  visit("dropout", m.dropout);
  visit("experts", m.experts);
  visit("experts_per_token", m.experts_per_token);
  visit("image", m.image);
  visit("patch", m.patch);
  visit("classes", m.classes);
  visit("blocks", m.blocks);
  visit("channels", m.channels);
  visit("batch_norm", m.batch_norm);
}

// Likewise. `R` is Recipe or const Recipe.
template <class R, class Visit>
void for_each_recipe_field(R& r, Visit&& visit) {
  visit("batch", r.batch);
  visit("sequence", r.sequence);
  visit("precision", r.precision);
  visit("fp8_recipe", r.fp8_recipe);
  visit("fp8_parameters", r.fp8_parameters);
  visit("fp8_weight_cache", r.fp8_weight_cache);
  visit("attention", r.attention);
  visit("execution", r.execution);
  visit("optimizer", r.optimizer);
  visit("optimizer_kernels", r.optimizer_kernels);
  visit("optimizer_in_backward", r.optimizer_in_backward);
  visit("accumulation", r.accumulation);
  visit("master_parameters", r.master_parameters);
  visit("loss_chunks", r.loss_chunks);
  visit("loss_in_fp32", r.loss_in_fp32);
  visit("checkpoint", r.checkpoint);
  visit("activation_offload", r.activation_offload);
  visit("lora_rank", r.lora_rank);
  visit("lora_targets", r.lora_targets);
  visit("weights_in_nf4", r.weights_in_nf4);
  visit("weights_in_gptq", r.weights_in_gptq);
  visit("trained_embeddings", r.trained_embeddings);
  visit("tile_factor", r.tile_factor);
  visit("data_parallel", r.data_parallel);
  visit("set_to_none", r.set_to_none);
  visit("sums_in_place", r.sums_in_place);
  visit("gradient_reduction", r.gradient_reduction);
  visit("gradients_as_bucket_views", r.gradients_as_bucket_views);
  visit("fused_kernels", r.fused_kernels);
  visit("compiled_loss", r.compiled_loss);
  visit("lora_dropout", r.lora_dropout);
  visit("fused_linear_loss", r.fused_linear_loss);
  visit("lora_in_fp32", r.lora_in_fp32);
  visit("returned_logits", r.returned_logits);
  visit("shifted_logits", r.shifted_logits);
  visit("liger_kernels", r.liger_kernels);
  visit("synchronizing_attention", r.synchronizing_attention);
  visit("paged_optimizer", r.paged_optimizer);
  visit("embedding_states_in_fp32", r.embedding_states_in_fp32);
  visit("launch_blocking", r.launch_blocking);
  visit("parallel_framework", r.parallel.framework);
  visit("tensor", r.parallel.tensor);
  visit("pipeline", r.parallel.pipeline);
  visit("interleave", r.parallel.interleave);
  visit("sequence_parallel", r.parallel.sequence_parallel);
  visit("async_tensor_all_reduce", r.parallel.async_tensor_all_reduce);
  visit("tp_comm_overlap", r.parallel.tp_comm_overlap);
  visit("async_tensor_parallel", r.parallel.async_tensor_parallel);
  visit("cross_entropy_loss_fusion", r.parallel.cross_entropy_loss_fusion);
  visit("pipe_partitioned", r.parallel.pipe_partitioned);
  visit("scatter_gather_tensors", r.parallel.scatter_gather_tensors);
  visit("pipeline_schedule", r.parallel.schedule);
  visit("microbatch_group", r.parallel.microbatch_group);
  visit("first_stage_layers", r.parallel.first_stage_layers);
  visit("last_stage_layers", r.parallel.last_stage_layers);
  visit("embedding_in_split", r.parallel.embedding_in_split);
  visit("loss_in_split", r.parallel.loss_in_split);
  visit("stage_layout", r.parallel.stage_layout);
  visit("rank_order", r.parallel.rank_order);
  visit("checkpoint_method", r.parallel.checkpoint_method);
  visit("checkpoint_layers", r.parallel.checkpoint_layers);
  visit("main_gradients", r.parallel.main_gradients);
  visit("distributed_optimizer", r.parallel.distributed_optimizer);
  visit("overlap_grad_reduce", r.parallel.overlap_grad_reduce);
  visit("overlap_param_gather", r.parallel.overlap_param_gather);
  visit("clip_gradients", r.parallel.clip_gradients);
  visit("deallocate_outputs", r.parallel.deallocate_outputs);
  visit("micro_batch", r.parallel.micro_batch);
  visit("global_batch", r.parallel.global_batch);
}

}  // namespace memwall
