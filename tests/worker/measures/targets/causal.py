"""A Hugging Face causal model with eager attention, which computes its own loss."""

import torch
import transformers

BATCH_SIZE = 4


def build_model():
    config = transformers.LlamaConfig(
        vocab_size=8192, hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=4,
        attn_implementation="eager",
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def make_batch(batch_size):
    ids = torch.randint(8192, (batch_size, 256))
    return {"input_ids": ids, "labels": ids}
