"""Programs whose memory hangs on values: what derives from host data, and what rules decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LLAMA = """
import torch
from contextlib import nullcontext
from transformers import LlamaConfig, LlamaModel, masking_utils
from vramdoc.worker.values import ValueShadow

find = masking_utils.find_packed_sequence_indices

def ask_on_device(position_ids):
    packed = find(position_ids)
    return None if (packed[:, -1] == 0).all() else packed

def kept(shadowed):
    with ValueShadow() if shadowed else nullcontext() as shadow:
        config = LlamaConfig(hidden_size=256, intermediate_size=345, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=4, vocab_size=128, max_position_embeddings=4096, use_cache=False)
        model = LlamaModel(config).to(torch.bfloat16).cuda()
        ids = torch.randint(0, 128, (2, 4096))
        before = torch.cuda.memory_allocated()
        output = model(ids.cuda())
        size = torch.cuda.memory_allocated() - before
    return size / 2**20, shadow.exact if shadowed else None

one = torch.ones(1, 1, dtype=torch.bfloat16, device="cuda")
one @ one  # makes the cuBLAS workspace, which is not the model's
masking_utils.find_packed_sequence_indices = ask_on_device
emit([kept(False), kept(True)])
"""


def test_llama_that_asks_for_its_mask_on_the_device(on_null_gpu: Callable[..., Any]) -> None:
    """Told "no", the model builds a T x T mask and leaves flash attention: 284.6 MiB are kept instead of 156.6.

    transformers 5 asks ``(mask[:, -1] == 0).all()`` on the device; 4.57.6, which is installed, does not, so its
    function is replaced by one that asks as version 5 does. Two layers at 2 x 4096 in bfloat16; the width of the
    feed-forward layer was sought so that the two figures come out, and both come from the real run.
    """
    (unshadowed, _), (shadowed, exact) = on_null_gpu(LLAMA)
    assert round(unshadowed, 1) == 284.6
    assert round(shadowed, 1) == 156.6
    assert unshadowed - shadowed == 128.0
    assert exact


FROM_HOST_DATA = """
import torch
from torch import nn
from vramdoc.worker.values import ValueShadow

found = {}
with ValueShadow() as shadow:
    # A padded batch: only the tokens that are not padding are computed.
    lengths = [7, 3, 5]
    ids = torch.zeros(3, 8, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(1, 100, (length,))
    ids = ids.cuda()
    padding = ids != 0
    embed = nn.Embedding(100, 16).cuda()
    hidden = embed(ids)[padding]
    found["unpadded"] = list(hidden.shape)
    found["lengths"] = padding.sum(1).tolist()
    found["longest"] = padding.sum(1).max().item()

    # Image tokens: their number must agree with the features that take their place.
    prompt = torch.randint(0, 50, (2, 64))
    prompt[:, 4:20] = 99
    prompt = prompt.cuda()
    embeddings = nn.Embedding(100, 128).cuda()(prompt)
    features = torch.randn(32, 128, device="cuda")
    image = (prompt == 99).unsqueeze(-1).expand_as(embeddings)
    found["image"] = [embeddings[image].numel(), features.numel(), (prompt == 99).sum().item()]
    embeddings.masked_scatter(image, features).sum().backward()

    # A graph net: messages along the edges, loops left out, then a sum over every graph of the batch.
    nodes = nn.Linear(16, 32).cuda()(torch.randn(1000, 16).cuda())
    edges = torch.arange(2000).view(2, 1000).remainder(1000)
    edges[1, 10:] = edges[1, 10:].roll(1)
    edges, batch = edges.cuda(), torch.arange(8).repeat_interleave(125).cuda()
    edges = edges[:, edges[0] != edges[1]]
    messages = torch.zeros(1000, 32, device="cuda").index_add(0, edges[1], nodes[edges[0]])
    pooled = torch.zeros(batch.max().item() + 1, 32, device="cuda").index_add(0, batch, messages)
    pooled.sum().backward()
    found["graph"] = [edges.shape[1], list(pooled.shape), torch.unique(batch).numel()]
    found["exact"] = shadow.exact
emit(found)
"""


def test_sizes_that_come_from_the_batch_are_exact(on_null_gpu: Callable[..., Any]) -> None:
    """Padding, image tokens and graphs: the batch is known on the host, so nothing is assumed."""
    assert on_null_gpu(FROM_HOST_DATA) == {
        "unpadded": [15, 16],
        "lengths": [7, 3, 5],
        "longest": 7,
        "image": [4096, 4096, 32],
        "graph": [990, [8, 32], 8],
        "exact": True,
    }


BY_RULE = """
import torch
from torch import nn
from vramdoc.assumptions import alternatives
from vramdoc.worker.values import ValueShadow

def run(program, **assume):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with ValueShadow(assume) as shadow:
        result = program()
    notes = {(a.op, a.rule) for a in shadow.assumptions()}
    ends = alternatives(shadow.assumptions(), assume)
    return [result, sorted(map(list, notes)), ends, torch.cuda.max_memory_allocated() - before]

class Experts(nn.Module):
    def __init__(self, experts=8, width=128):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 4 * width))
        self.down = nn.Parameter(torch.randn(experts, 4 * width, width))

    def route(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        return weights, chosen

class Eager(Experts):
    def forward(self, x):
        weights, chosen = self.route(x)
        result, sizes = torch.zeros_like(x), []
        for expert in range(len(self.up)):
            token, slot = torch.where(chosen == expert)
            sizes.append(len(token))
            y = torch.relu(x[token] @ self.up[expert]) @ self.down[expert]
            result = result.index_add(0, token, y * weights[token, slot, None])
        return result, sizes

class Grouped(Experts):
    def forward(self, x):
        weights, chosen = self.route(x)
        order = chosen.flatten().argsort()
        sizes = torch.bincount(chosen.flatten(), minlength=len(self.up)).tolist()
        groups = x[order // 2].split(sizes)
        padded = torch.nn.utils.rnn.pad_sequence(groups, batch_first=True)
        y = torch.relu(padded @ self.up) @ self.down
        y = torch.cat([part[:size] for part, size in zip(y, sizes)]) * weights.flatten()[order, None]
        return torch.zeros_like(x).index_add(0, order // 2, y), sizes

def mixture(kind):
    def program():
        output, sizes = kind().cuda()(torch.randn(2048, 128, device="cuda"))
        output.sum().backward()
        return sizes
    return program

def guards():
    model = nn.Linear(1024, 1024).cuda()
    loss = model(torch.randn(8, 1024, device="cuda")).sum()
    loss.backward()
    fine = torch.isfinite(loss).item() and not torch.isnan(model.weight.grad).any().item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    return fine

def distributions():
    mean = nn.Linear(4, 4).cuda()(torch.randn(8, 4, device="cuda"))
    normal = torch.distributions.Normal(mean, mean.exp())  # validates its arguments on the device
    normal.log_prob(normal.rsample())
    choice = torch.distributions.Categorical(logits=mean)
    return list(choice.log_prob(choice.sample()).shape)

def detection():
    scores, boxes = nn.Linear(4, 1).cuda()(torch.randn(20000, 4, device="cuda")), torch.randn(20000, 4, device="cuda")
    best, place = scores[:, 0].sigmoid().topk(2000)
    chosen = boxes[place]
    keep = torch.where((best > 0.05) & ((chosen[:, 2] - chosen[:, 0]) > 1e-3))[0]
    return chosen[keep][:1000].shape[0]

def generation():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4,
                         vocab_size=2000, eos_token_id=7, pad_token_id=0)
    model = LlamaForCausalLM(config).cuda()
    ids = torch.randint(10, 1000, (2, 16)).cuda()
    ask = lambda **how: model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, **how).shape[1]
    return [ask(do_sample=False), ask(do_sample=True, top_k=50)]

emit({
    "eager": run(mixture(Eager)),
    "eager skewed": run(mixture(Eager), routing="skewed"),
    "grouped": run(mixture(Grouped)),
    "grouped skewed": run(mixture(Grouped), routing="skewed"),
    "guards": run(guards),
    "distributions": run(distributions),
    "detection": run(detection),
    "detection low": run(detection, index="one"),
    "generation": run(generation),
    "generation low": run(generation, end_of_sequence="at_once"),
})
"""


def test_unknown_values_follow_the_rules(on_null_gpu: Callable[..., Any]) -> None:
    """What no host data decides is answered by a rule that is named, and that can be set to give the range."""
    found = on_null_gpu(BY_RULE)
    result, rules, ends, memory = ({name: row[part] for name, row in found.items()} for part in range(4))

    balanced, skewed = [512] * 8, [2048, 2048, 0, 0, 0, 0, 0, 0]
    assert result["eager"] == result["grouped"] == balanced
    assert result["eager skewed"] == result["grouped skewed"] == skewed
    assert rules["eager"] == [["aten.nonzero", "routing"]]
    assert rules["grouped"] == [["aten._to_copy", "routing"], ["aten.bincount", "routing"]]
    assert ends["eager"] == [{"routing": "balanced"}, {"routing": "skewed"}]
    assert ends["eager skewed"] is None
    assert memory["grouped skewed"] > 2 * memory["grouped"]

    assert result["guards"] is True
    assert {rule for _, rule in rules["guards"]} <= {"finite", "any"}
    assert ends["guards"] is None
    assert result["distributions"] == [8]

    assert (result["detection"], result["detection low"]) == (1000, 1)
    assert rules["detection"] == [["aten.nonzero", "index"]]
    assert ends["detection"] == [{"index": "one"}, {"index": "full"}]

    assert result["generation"] == [28, 28]
    assert result["generation low"] == [17, 17]
    assert ["aten._local_scalar_dense", "end_of_sequence"] in rules["generation"]
