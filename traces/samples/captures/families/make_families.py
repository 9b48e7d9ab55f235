#!/usr/bin/env python3
"""Makes the captures beside this file: one training step of a small network of each family of Hugging Face's transformers
that the generators write as that library has it. Generated steps are compared with them operator by operator
(tests/unit/models/workload/generate/family_captures_test.cpp).

    make_families.py [NAME...] [--out DIR]      # needs torch and transformers 5.23; a minute for all

The classes are transformers' own, with the attention that each takes by itself for training (sdpa, or eager where the
class has no other), in bf16 as from_pretrained(dtype=torch.bfloat16) gives it, or under autocast. On fake tensors; the second step is
recorded, so that the optimizer's states exist. NAME.json beside a capture is the config.json that it was made of.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "..", "capture")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import transformers  # noqa: E402
import transformers.masking_utils  # noqa: E402

import memwall_capture  # noqa: E402
from chosen import chosen  # noqa: E402

# On a GPU this looks whether a row holds several sequences, and finds none; of fake tensors it cannot know.
transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None

BATCH, LENGTH, WORDS = 2, 64, 500
LLAMA_LIKE = {"hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "vocab_size": WORDS, "max_position_embeddings": 256}
GEMMA = {**LLAMA_LIKE, "head_dim": 48}
BERT = {"hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 2, "num_attention_heads": 4,
        "vocab_size": WORDS, "max_position_embeddings": 256, "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1}

# name: config.json
FAMILIES = {
    "gemma": {"model_type": "gemma", **GEMMA},
    "gemma2": {"model_type": "gemma2", **GEMMA, "sliding_window": 16, "query_pre_attn_scalar": 48},
    "gemma3": {"model_type": "gemma3_text", **GEMMA, "num_hidden_layers": 3, "sliding_window": 128,
               "query_pre_attn_scalar": 48, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
    "olmo2": {"model_type": "olmo2", **LLAMA_LIKE},
    "gpt_neox": {"model_type": "gpt_neox", "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "vocab_size": WORDS, "max_position_embeddings": 256, "rotary_pct": 0.25,
                 "use_parallel_residual": True},
    "opt": {"model_type": "opt", "hidden_size": 128, "ffn_dim": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
            "vocab_size": WORDS, "max_position_embeddings": 256, "word_embed_proj_dim": 128, "dropout": 0.1,
            "attention_dropout": 0.0, "do_layer_norm_before": True, "activation_function": "relu"},
    "phi": {"model_type": "phi", "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 2,
            "num_attention_heads": 4, "vocab_size": WORDS, "max_position_embeddings": 256, "partial_rotary_factor": 0.5,
            "resid_pdrop": 0.1, "embd_pdrop": 0.0},
    "bloom": {"model_type": "bloom", "hidden_size": 128, "n_layer": 2, "n_head": 4, "vocab_size": WORDS},
    "falcon": {"model_type": "falcon", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
               "vocab_size": WORDS, "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False,
               "new_decoder_architecture": False},
    "falcon_new": {"model_type": "falcon", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                   "vocab_size": WORDS, "num_kv_heads": 2, "parallel_attn": True, "bias": False, "alibi": False,
                   "new_decoder_architecture": True},
    "roberta": {"model_type": "roberta", **BERT, "type_vocab_size": 1, "pad_token_id": 1},
    "distilbert": {"model_type": "distilbert", "dim": 128, "hidden_dim": 320, "n_layers": 2, "n_heads": 4,
                   "vocab_size": WORDS, "max_position_embeddings": 256, "dropout": 0.1, "attention_dropout": 0.1},
}
# What else their configurations say.
for name, family, changes in (
        ("gemma3_eager", "gemma3", {}), ("olmo2_eager", "olmo2", {}), ("opt_eager", "opt", {}),
        ("roberta_eager", "roberta", {}),
        ("gpt_neox_sequential", "gpt_neox", {"use_parallel_residual": False, "hidden_dropout": 0.1,
                                             "attention_dropout": 0.1}),
        ("gpt_neox_whole_heads", "gpt_neox", {"rotary_pct": 1.0}),
        ("phi_grouped", "phi", {"num_key_value_heads": 2, "embd_pdrop": 0.1, "attention_dropout": 0.1}),
        ("bloom_dropout", "bloom", {"hidden_dropout": 0.1, "attention_dropout": 0.1, "n_head": 12, "hidden_size": 96}),
        ("falcon_one_norm", "falcon_new", {"num_ln_in_parallel_attn": 1, "tie_word_embeddings": False,
                                           "hidden_dropout": 0.1, "attention_dropout": 0.1})):
    FAMILIES[name] = {**FAMILIES[family], **changes}
MASKED = {"roberta", "distilbert"}
FAMILIES.update({f"{name}_checkpointed": FAMILIES[name] for name in ("gemma2", "opt", "falcon", "bloom", "roberta")})
# Under autocast to bf16, with fp32 parameters.
FAMILIES.update({f"{name}_amp": FAMILIES[name] for name in (
    "gemma", "gemma2", "gemma3", "olmo2", "gpt_neox", "opt", "phi", "bloom", "falcon_new", "roberta", "distilbert")})


def is_eager(name):
    """Falcon by scaled_dot_product_attention makes a mask that its fast kernels refuse."""
    return name.endswith("_eager") or name.startswith("falcon")


def configuration(values):
    known = {"pad_token_id": 0, **values}
    kind = known.pop("model_type")
    return transformers.AutoConfig.for_model(kind, **known)


def capture(name, path):
    values = FAMILIES[name]
    classes = transformers.AutoModelForMaskedLM if values["model_type"] in MASKED else transformers.AutoModelForCausalLM
    with memwall_capture.fake():
        with torch.device("cuda"):
            attention = {"attn_implementation": "eager"} if is_eager(name) else {}
            dtype = torch.float32 if name.endswith("_amp") else torch.bfloat16
            model = classes.from_config(configuration(values), dtype=dtype, **attention)
        model.train()
        if name.endswith("_checkpointed"):
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        words, targets = (torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda") for _ in range(2))
        options = {} if values["model_type"] in MASKED else {"use_cache": False}

        def train_step():
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=name.endswith("_amp")):
                logits = model(words, **options).logits
                if not torch.is_autocast_enabled("cuda"):
                    logits = logits.float()
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
                del logits
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        train_step()
        with memwall_capture.step(path, model=model, optimizer=optimizer, name=name, samples_per_step=BATCH,
                                  tokens_per_step=BATCH * LENGTH):
            train_step()


def main():
    for name, path in chosen(__doc__.split("\n")[0], FAMILIES, HERE):
        capture(name, path)
        with open(path.replace(".mwc.gz", ".json"), "w") as file:
            json.dump(FAMILIES[name], file, indent=2)
            file.write("\n")
        print(f"{name}: file {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
