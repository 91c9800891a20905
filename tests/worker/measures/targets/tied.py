"""GPT-2 as Hugging Face builds it, narrow: the output head is the embedding, dropout is on, more words than tokens."""

import torch
import transformers

BATCH_SIZE = 6


def build_model():
    config = transformers.GPT2Config(vocab_size=6000, n_positions=192, n_embd=192, n_layer=3, n_head=3)
    return transformers.GPT2LMHeadModel(config)


def make_batch(batch_size):
    ids = torch.randint(6000, (batch_size, 192))
    return {"input_ids": ids, "labels": ids}


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=0.1)
