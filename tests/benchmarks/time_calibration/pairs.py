"""The published pairs that can be reproduced, each as two recipes.

Left out, and why: pairs whose model is described too thinly to be rebuilt (pi0, TFT, MoFlow, FastPitch, Mask R-CNN,
DLRM); that another framework steps (DeepSpeed: ZeRO and its offload, also Qwen's full fine-tuning, whose 24 bytes a
parameter are its); that a compiler, FP8, or kernels of a package change; and those whose batch or GPU is not stated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.benchmarks.time_calibration.recipe import Pair, Pairs, Recipe, Side

_A100, _A100_40, _V100, _V100_32 = "a100-80", "a100-40", "v100-16", "v100-32"


def all_pairs() -> dict[str, Pair]:
    """Every reproduced pair by its name in timings.json."""
    pairs = Pairs()
    for add in (_layouts, _attention, _images, _speech, _transformer_xl, _bert, _translation, _llms, _scaling, _mpt):
        add(pairs)
    return pairs.by_name


def _ddp(recipe: Recipe, gpus: int, **options: Any) -> Side:
    return Side(recipe=recipe, gpus=gpus, samples=recipe.batch * options.get("accumulate", 1), **options)


def _scaled(pairs: Pairs, name: str, recipe: Recipe, gpus: int, **options: Any) -> None:
    """One GPU against several."""
    alone = {key: value for key, value in options.items() if key == "accumulate"}
    pairs.add(name, _ddp(recipe, 1, **alone), _ddp(recipe, gpus, **options))


def _layouts(pairs: Pairs) -> None:
    rows = {
        **{"p001": ("resnet18", 512, 224), "p002": ("resnet50", 512, 224), "p004": ("resnet152", 192, 224)},
        **{"p007": ("efficientnet_b4", 96, 320), "p008": ("tf_efficientnetv2_s", 128, 300)},
        **{"p010": ("mobilenetv3_large_100", 512, 224), "p011": ("ghostnet_100", 512, 224)},
        **{"p012": ("vgg16", 384, 224), "p017": ("mixer_b16_224", 256, 224)},
        **{"p020": ("vit_small_patch16_224", 384, 224), "p023": ("swin_tiny_patch4_window7_224", 256, 224)},
        **{"p024": ("swin_base_patch4_window7_224", 128, 224), "p025": ("regnety_032", 384, 224)},
        **{"p026": ("regnetx_032", 384, 224), "p027": ("dm_nfnet_f0", 384, 192)},
    }
    for name, (net, batch, size) in rows.items():
        recipe = Recipe(model=f"timm/{net}", gpu="3090", batch=batch, size=size, precision="amp-fp16", optimizer="sgd")
        pairs.add(name, recipe, replace(recipe, channels_last=True))


def _attention(pairs: Pairs) -> None:
    mobile, rows = (
        "3080-ti-mobile",
        {
            **{"p390": ("gpt2-large", 1, 128), "p396": ("gpt2-large", 2, 512), "p399": ("gpt2-large", 4, 512)},
            **{"p400": ("pythia-410m", 1, 128), "p401": ("pythia-410m", 1, 256), "p402": ("pythia-410m", 1, 512)},
            **{"p404": ("pythia-410m", 1, 2048), "p405": ("pythia-410m", 2, 128), "p406": ("pythia-410m", 2, 256)},
            **{"p407": ("pythia-410m", 2, 512), "p409": ("pythia-410m", 4, 128), "p410": ("pythia-410m", 4, 256)},
            **{"p412": ("opt-350m", 1, 512), "p416": ("opt-350m", 2, 1024), "p417": ("opt-350m", 2, 2048)},
            **{"p418": ("opt-350m", 4, 512), "p422": ("opt-350m", 8, 1024)},
        },
    )
    written = {"gpt2-large": "gpt2-2024", "pythia-410m": "gpt_neox-2024", "opt-350m": "opt-2024"}
    for name, (net, batch, size) in rows.items():
        gpu = "l40s" if net == "opt-350m" else mobile
        recipe = Recipe(model=f"decoder/{net}", gpu=gpu, batch=batch, size=size, precision="fp16")
        sides = [replace(recipe, options=(("attention", how), ("loss", "sum"))) for how in (written[net], "sdpa")]
        pairs.add(name, *sides, note="the optimizer is not stated: none is run, as the published memory says")


def _images(pairs: Pairs) -> None:
    ssd = Recipe(model="ssd300/", gpu=_A100, batch=64, precision="tf32", optimizer="sgd", channels_last=True)
    amp = replace(ssd, precision="amp-fp16")
    volta = replace(ssd, gpu=_V100, batch=32, precision="fp32")
    pairs.add("p073", ssd, amp)
    pairs.add("p074", _ddp(ssd, 4), _ddp(amp, 4))
    pairs.add("p084", volta, replace(volta, precision="amp-fp16"))
    _scaled(pairs, "p076", ssd, 4)
    _scaled(pairs, "p077", ssd, 8)
    _scaled(pairs, "p079", amp, 8)
    _scaled(pairs, "p087", volta, 4)
    _scaled(pairs, "p088", volta, 8)
    pairs.add("p294", amp, replace(amp, batch=128))

    flat = Recipe(model="nnunet/2d", gpu=_A100, batch=32, precision="tf32", optimizer="adam-loop")
    half = replace(flat, precision="amp-fp16")
    pairs.add("p091", flat, half)
    pairs.add("p096", _ddp(replace(flat, batch=128), 8), _ddp(replace(half, batch=128), 8))
    volta = replace(flat, gpu=_V100_32, batch=64, precision="fp32")
    pairs.add("p107", volta, replace(volta, precision="amp-fp16"))
    pairs.add("p108", _ddp(volta, 8), _ddp(replace(volta, precision="amp-fp16"), 8))
    pairs.add("p288", half, replace(half, batch=64))
    pairs.add("p291", replace(flat, batch=64), replace(flat, batch=128))
    _scaled(pairs, "p094", half, 8)
    _scaled(pairs, "p109", volta, 8)

    cube = Recipe(model="nnunet/3d", gpu=_A100, batch=2, precision="tf32", optimizer="adam-loop")
    half = replace(cube, precision="amp-fp16")
    volta = replace(cube, gpu=_V100_32, precision="fp32")
    pairs.add("p100", _ddp(cube, 8), _ddp(half, 8))
    pairs.add("p104", _ddp(volta, 8), _ddp(replace(volta, precision="amp-fp16"), 8))
    pairs.add("p292", replace(half, batch=1), half)
    pairs.add("p293", half, replace(half, batch=4))
    _scaled(pairs, "p105", volta, 8)


def _speech(pairs: Pairs) -> None:
    jasper = Recipe(model="speech/jasper", gpu=_A100, batch=32, size=1250, precision="tf32", optimizer="adam-foreach")
    half = replace(jasper, precision="amp-fp16")
    large, large_half = replace(jasper, batch=64), replace(half, batch=64)
    volta = replace(jasper, gpu=_V100_32, precision="fp32")
    pairs.add("p200", _ddp(jasper, 4), _ddp(half, 4))
    pairs.add("p201", _ddp(jasper, 8), _ddp(half, 8))
    pairs.add("p203", _ddp(large, 8), _ddp(large_half, 8))
    pairs.add("p212", _ddp(volta, 8), _ddp(replace(volta, precision="amp-fp16"), 8))
    pairs.add("p299", half, large_half)
    for name, recipe, gpus in (
        *(("p205", jasper, 8), ("p206", large, 8), ("p207", half, 4), ("p208", half, 8), ("p209", large_half, 8)),
        *(("p215", replace(volta, precision="amp-fp16"), 4), ("p216", replace(volta, precision="amp-fp16"), 8)),
    ):
        _scaled(pairs, name, recipe, gpus)
    quartz = replace(jasper, model="speech/quartznet", batch=72)
    pairs.add("p218", _ddp(quartz, 4), _ddp(replace(quartz, precision="amp-fp16"), 4))


def _transformer_xl(pairs: Pairs) -> None:
    model = Recipe(
        model="transformer-xl/base", gpu=_A100_40, batch=32, size=192, precision="tf32", optimizer="adam-fused"
    )
    half = replace(model, precision="amp-fp16")
    pairs.add("p136", _ddp(model, 2), _ddp(half, 2))
    pairs.add("p138", _ddp(model, 8), _ddp(half, 8))
    volta = replace(model, gpu=_V100, batch=16, precision="fp32")
    volta_half = replace(volta, precision="amp-fp16")
    for name, gpus in (("p156", 2), ("p157", 4), ("p158", 8)):
        pairs.add(name, _ddp(volta, gpus), _ddp(volta_half, gpus))
    for name, recipe, gpus in (
        *(("p139", model, 2), ("p142", half, 2), ("p143", half, 4), ("p144", half, 8)),
        *(("p159", volta, 2), ("p160", volta, 4), ("p161", volta, 8), ("p162", volta_half, 2)),
    ):
        _scaled(pairs, name, recipe, gpus)

    large = replace(model, model="transformer-xl/large", batch=8, size=384)
    half = replace(large, precision="amp-fp16")
    pairs.add("p145", large, half)
    pairs.add("p295", half, replace(half, batch=16))
    volta = replace(large, gpu=_V100, batch=2, precision="fp32")
    volta_half = replace(volta, precision="amp-fp16")
    pairs.add("p165", volta, volta_half)
    pairs.add("p168", _ddp(volta, 8), _ddp(volta_half, 8))
    wide = replace(large, gpu=_V100_32, precision="fp32")
    wide_half = replace(wide, precision="amp-fp16")
    for name, gpus in (("p175", 1), ("p176", 2), ("p179", 16)):
        pairs.add(name, _ddp(wide, gpus, per_machine=16), _ddp(wide_half, gpus, per_machine=16))
    for name, recipe, gpus in (
        *(("p149", large, 2), ("p151", large, 8), ("p153", half, 4), ("p154", half, 8)),
        *(("p169", volta, 2), ("p172", volta_half, 2), ("p182", wide, 8), ("p183", wide, 16)),
        *(("p184", wide_half, 2), ("p185", wide_half, 4), ("p186", wide_half, 8), ("p187", wide_half, 16)),
    ):
        _scaled(pairs, name, recipe, gpus, per_machine=16)


def _bert(pairs: Pairs) -> None:
    answers = Recipe(model="bert-large/qa", gpu=_A100, batch=32, size=384, precision="amp-fp16", optimizer="adam-fused")
    pairs.add("p120", _ddp(replace(answers, precision="tf32"), 8), _ddp(answers, 8))
    _scaled(pairs, "p122", answers, 8)
    pretrain = replace(answers, model="bert-large/pretrain", batch=256, size=128)
    _scaled(pairs, "p114", pretrain, 8, accumulate=32)
    volta = replace(pretrain, gpu=_V100_32, batch=32, precision="fp32")
    _scaled(pairs, "p125", volta, 8, accumulate=16)
    _scaled(pairs, "p126", replace(volta, batch=64, precision="amp-fp16"), 8, accumulate=8)
    for name, gpu, batch, gpus in (
        *(("p589", _A100, 112, 2), ("p591", _A100, 112, 4), ("p593", "h100", 112, 2), ("p595", "h100", 112, 4)),
        *(("p605", "3090", 28, 2), ("p611", "6000-ada", 64, 4), ("p614", _V100, 16, 2)),
    ):
        recipe = replace(answers, gpu=gpu, batch=batch, optimizer="adam-loop")
        _scaled(pairs, name, recipe, gpus, link="" if gpu in (_A100, "h100", _V100) else "pcie-4-x16")
    classes = Recipe(model="bert-large/classes", gpu=_V100, batch=4, size=512, optimizer="adam-loop")
    one = Side(recipe=replace(classes, batch=1), accumulate=4, samples=4)
    pairs.add("p381", one, replace(one, recipe=replace(one.recipe, checkpoint="full")))
    pairs.add("p384", classes, replace(classes, optimizer="adafactor"))


def _translation(pairs: Pairs) -> None:
    big = Recipe(model="translation-big/", gpu=_A100_40, batch=320, size=32, precision="tf32", optimizer="adam-fused")
    volta = replace(big, gpu=_V100, batch=80, precision="fp32")
    pairs.add("p188", big, replace(big, precision="amp-fp16"))
    for name, recipe, gpus in (("p191", big, 4), ("p192", big, 8), ("p197", volta, 8)):
        _scaled(pairs, name, recipe, gpus)

    t5 = Recipe(model="t5-base/", gpu=_A100_40, batch=32, size=96, optimizer="adam-loop")
    pairs.add("p424", t5, replace(t5, precision="tf32"))
    pairs.add("p425", t5, replace(t5, precision="amp-bf16"))
    pairs.add("p426", t5, replace(t5, precision="amp-fp16"))
    for name, precision in (("p429", "tf32"), ("p430", "fp32")):
        once = replace(t5, precision=precision)
        pairs.add(name, once, Side(recipe=once, accumulate=2, samples=64))
    lengths = {1: 40, 2: 48, 4: 64, 8: 72, 16: 84, 32: 96}  # of the longest sentence in a batch, about
    half = replace(t5, precision="amp-bf16")
    for name, gpu, batch in (
        *(("p431", _A100_40, 1), ("p434", _A100_40, 8), ("p435", _A100_40, 16)),
        *(("p437", "3090", 2), ("p438", "3090", 4)),
    ):
        small, twice = (replace(half, gpu=gpu, batch=b, size=lengths[b]) for b in (batch, 2 * batch))
        pairs.add(name, small, twice)
    loop = replace(half, gpu="3090", batch=16, size=lengths[16])
    pairs.add("p442", loop, replace(loop, optimizer="adam-fused"))


def _llms(pairs: Pairs) -> None:
    hopper = "h100-96"
    llama = Recipe(model="decoder/llama2-7b", gpu=hopper, batch=8, size=2048, precision="bf16", checkpoint="selective")
    shards = Side(recipe=llama, gpus=8, strategy="fsdp", blocks=33, samples=8)
    pairs.add("p318", shards, replace(shards, recipe=replace(llama, checkpoint="full")))
    many = replace(
        shards,
        recipe=replace(llama, model="decoder/llama2-13b", gpu=_A100, batch=2, size=4096, checkpoint="none"),
        gpus=64,
        samples=2,
        node_link="infiniband-hdr",
    )
    pairs.add("p312", many, replace(many, recipe=replace(many.recipe, checkpoint="selective")))
    eight = replace(shards, recipe=replace(llama, model="decoder/llama3-8b", batch=1, size=8192), samples=1)
    pairs.add("p329", eight, replace(eight, recipe=replace(eight.recipe, checkpoint="full")), note="compiled there")
    pairs.add("p340", eight, replace(eight, strategy="fsdp-keep"))

    small = Recipe(
        **{"model": "decoder/llama3.2-3b", "gpu": _A100, "batch": 2, "size": 4096, "precision": "bf16"},
        optimizer="adam-fused",
    )
    pairs.add("p350", small, replace(small, checkpoint="full"), note="compiled there, on both sides")
    tuned = replace(small, gpu="l40s", batch=4, size=280, optimizer="adam-foreach")
    for name, adapter in (("p509", "lora-32-q_proj+v_proj"), ("p512", "ia3"), ("p515", "vera")):
        pairs.add(name, tuned, replace(tuned, options=(("adapter", adapter),)))
    gpt = Recipe(model="decoder/gpt2", gpu="titan-rtx", batch=4, size=1024, optimizer="adam-loop")
    linked = Side(recipe=replace(gpt, options=(("attention", "gpt2-2024"),)), gpus=2, samples=4)
    pairs.add("p388", replace(linked, link="pcie-3-x16"), linked)


def _scaling(pairs: Pairs) -> None:
    for name, net, gpu, batch, size, precision in (
        *(("p044", "resnet50", _A100, 256, 224, "amp-fp16"), ("p051", "resnext101_32x4d", _A100, 128, 224, "tf32")),
        *(("p052", "resnext101_32x4d", _A100, 128, 224, "amp-fp16"),),
        *(("p056", "resnext101_32x4d", _V100, 128, 224, "amp-fp16"),),
        *(("p059", "seresnext101_32x4d", _A100, 128, 224, "tf32"),),
        *(("p060", "seresnext101_32x4d", _A100, 128, 224, "amp-fp16"),),
        *(("p063", "efficientnet_b0", _A100, 256, 224, "tf32"), ("p067", "efficientnet_b4", _A100, 64, 380, "tf32")),
        *(
            ("p071", "efficientnet_b0", _V100, 64, 224, "fp32"),
            ("p072", "efficientnet_b0", _V100, 128, 224, "amp-fp16"),
        ),
    ):
        recipe = Recipe(
            model=f"timm/{net}",
            gpu=gpu,
            batch=batch,
            size=size,
            precision=precision,
            optimizer="sgd",
            channels_last=precision == "amp-fp16",
        )
        _scaled(pairs, name, recipe, 8)
    for name, gpu, batch, gpus, link in (
        *(("p588", _A100, 1280, 2, ""), ("p596", "h100", 1280, 8, "")),
        *(("p597", "h100-pcie", 1280, 2, "pcie-5-x16"), ("p599", "h100-pcie", 1280, 4, "pcie-5-x16")),
        *(("p601", "h100-pcie", 1280, 8, "pcie-5-x16"), ("p606", "a6000", 928, 2, "pcie-4-x16")),
        *(("p613", _V100, 256, 2, ""), ("p617", _V100, 256, 8, "")),
    ):
        recipe = Recipe(model="timm/resnet50", gpu=gpu, batch=batch, size=224, precision="amp-fp16", optimizer="sgd")
        _scaled(pairs, name, recipe, gpus, link=link)


def _mpt(pairs: Pairs) -> None:
    for name, size, gpu, batch, gpus, full in (
        *(("p518", "30b", "h100", 8, (128, 512), True), ("p521", "3b", "h100", 8, (128, 512), False)),
        *(("p525", "760m", "h100", 24, (16, 32), False), ("p527", "7b", _A100_40, 18, (32, 128), True)),
        *(("p528", "3b", _A100_40, 6, (32, 128), False), ("p529", "1b", _A100_40, 10, (32, 128), False)),
        *(("p530", "760m", _A100_40, 12, (16, 128), False), ("p531", "350m", _A100_40, 18, (16, 128), False)),
        *(("p532", "125m", _A100_40, 26, (16, 128), False),),
    ):
        recipe = Recipe(
            **{"model": f"mpt/{size}", "gpu": gpu, "batch": batch, "size": 2048, "precision": "bf16"},
            checkpoint="full" if full else "none",
        )
        strategy = "fsdp-keep" if name == "p521" else "fsdp"
        node_link = "infiniband-ndr" if gpu == "h100" else "infiniband-hdr"
        sides = [
            Side(recipe=recipe, gpus=n, strategy=strategy, blocks=33, samples=batch, node_link=node_link) for n in gpus
        ]
        pairs.add(name, *sides)
