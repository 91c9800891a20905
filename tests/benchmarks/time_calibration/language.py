"""Language models: Hugging Face's, from their configurations, and a plain GPT for MPT's sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.benchmarks.time_calibration import attention_2024
from tests.benchmarks.time_calibration.recipe import Recipe, Workload, model, token_ids

_LLAMA = {
    "llama2-7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
    "llama2-13b": {"hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40, "num_attention_heads": 40},
    "llama3-8b": {
        **{"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32},
        **{"num_key_value_heads": 8, "vocab_size": 128256},
    },
    "llama3.2-3b": {
        **{"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24},
        **{"num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": True},
    },
}
_DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", {}),
    "gpt2-large": ("GPT2", {"n_embd": 1280, "n_layer": 36, "n_head": 20}),
    "pythia-410m": (
        "GPTNeoX",
        {
            **{"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
            "vocab_size": 50304,
        },
    ),
    "opt-350m": (
        "OPT",
        {
            **{"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096},
            **{"word_embed_proj_dim": 512, "do_layer_norm_before": False, "vocab_size": 50272},
        },
    ),
    "qwen-1.8b": (
        "Qwen2",
        {
            **{"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 5504},
            **{"num_key_value_heads": 16, "vocab_size": 151936},
        },
    ),
    **{name: ("Llama", values) for name, values in _LLAMA.items()},
}


@model("decoder")
def build_decoder(name: str, recipe: Recipe) -> Workload:
    """A causal model with its labels. Options: ``attention``; ``adapter`` with a rank and its targets."""
    import transformers

    options = dict(recipe.options)
    family, values = _DECODERS[name]
    attention_2024.register()
    config = getattr(transformers, f"{family}Config")(
        **values, use_cache=False, attn_implementation=options.get("attention", "sdpa")
    )
    net = transformers.AutoModelForCausalLM.from_config(config)
    if "adapter" in options:
        net = _with_adapter(net, str(options["adapter"]))
    ids = token_ids(recipe.batch, recipe.size, config.vocab_size)
    if options.get("loss") == "sum":
        return Workload(model=net, loss=lambda net: net(input_ids=ids).logits.sum())
    return Workload(model=net, loss=lambda net: net(input_ids=ids, labels=ids).loss)


def _with_adapter(net: nn.Module, adapter: str) -> nn.Module:
    """Parameters frozen, and ``lora-RANK-TARGETS``, ``ia3`` or ``vera`` on top."""
    import peft

    kind, _, rest = adapter.partition("-")
    if kind == "ia3":
        config: Any = peft.IA3Config(task_type="CAUSAL_LM")
    elif kind == "vera":
        config = peft.VeraConfig(r=256, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    else:
        rank, _, targets = rest.partition("-")
        config = peft.LoraConfig(r=int(rank), target_modules=targets.split("+"), task_type="CAUSAL_LM")
    with torch.device("cpu"):  # VeRA draws its shared matrices from a generator of the host
        adapted: nn.Module = peft.get_peft_model(net, config)
    return adapted.cuda()


@model("bert-large")
def build_bert(task: str, recipe: Recipe) -> Workload:
    """BERT large with attention written out, for questions (``qa``) or for pre-training."""
    import transformers

    config = transformers.BertConfig(
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        attn_implementation="eager",
    )
    ids = token_ids(recipe.batch, recipe.size, config.vocab_size)
    mask = torch.ones_like(ids)
    if task == "qa":
        net: nn.Module = transformers.BertForQuestionAnswering(config)
        ends = torch.zeros(recipe.batch, dtype=torch.long)
        return Workload(
            model=net,
            loss=lambda net: net(ids, attention_mask=mask, start_positions=ends, end_positions=ends).loss,
        )
    net = transformers.BertForSequenceClassification(config) if task == "classes" else _PreTraining(config)
    labels = torch.zeros(recipe.batch, dtype=torch.long) if task == "classes" else None
    if labels is not None:
        return Workload(model=net, loss=lambda net: net(ids, attention_mask=mask, labels=labels).loss)
    return Workload(model=net, loss=lambda net: net(ids, mask))


class _PreTraining(nn.Module):
    """Masked words, predicted where they are: fifteen of a hundred."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        import transformers

        net = transformers.BertForPreTraining(config)
        self.bert, self.head = net.bert, net.cls

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        made = self.bert(ids, attention_mask=mask)
        chosen = int(0.15 * ids.shape[1])
        words, following = self.head(made.last_hidden_state[:, :chosen], made.pooler_output)
        first = functional.cross_entropy(words.flatten(0, 1), ids[:, :chosen].flatten())
        return first + functional.cross_entropy(following, torch.zeros(len(ids), dtype=torch.long))


@model("t5-base")
def build_t5(_: str, recipe: Recipe) -> Workload:
    """T5 base, translation: source and target of the same length."""
    import transformers

    config = transformers.T5Config(
        d_model=768, d_ff=3072, num_layers=12, num_heads=12, vocab_size=32128, use_cache=False, decoder_start_token_id=0
    )
    net = transformers.T5ForConditionalGeneration(config)
    ids = token_ids(recipe.batch, recipe.size, config.vocab_size)
    return Workload(model=net, loss=lambda net: net(input_ids=ids, labels=ids).loss)


@model("translation-big")
def build_translation(_: str, recipe: Recipe) -> Workload:
    """The big Transformer of WMT: six layers each way, attention written out."""
    import transformers

    config = transformers.BartConfig(
        **{"d_model": 1024, "encoder_layers": 6, "decoder_layers": 6, "vocab_size": 33712, "use_cache": False},
        **{"encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096},
        encoder_attention_heads=16,
        decoder_attention_heads=16,
        attn_implementation="eager",
    )
    net = transformers.BartForConditionalGeneration(config)
    ids = token_ids(recipe.batch, recipe.size, config.vocab_size)
    return Workload(model=net, loss=lambda net: net(input_ids=ids, labels=ids).loss)


class Block(nn.Module):
    """A block of a GPT with fused attention and no biases."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.mlp_norm = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width, bias=False), nn.GELU(), nn.Linear(4 * width, width, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class MPT(nn.Module):
    """A GPT whose embedding and head share one matrix."""

    VOCABULARY = 50368

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(self.VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


MPT_SIZES = {
    "125m": (12, 768, 12),
    "350m": (24, 1024, 16),
    "760m": (24, 1536, 12),
    "1b": (24, 2048, 16),
    "3b": (32, 2560, 20),
    "7b": (32, 4096, 32),
    "30b": (48, 7168, 56),
}
"""Layers, width, heads."""


@model("mpt")
def build_mpt(name: str, recipe: Recipe) -> Workload:
    """One of MPT's sizes."""
    net = MPT(*MPT_SIZES[name])
    ids = token_ids(recipe.batch, recipe.size, MPT.VOCABULARY)
    return Workload(model=net, loss=lambda net: functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten()))
