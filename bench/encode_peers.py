"""The peers of the section encode that are Python packages, one of them in a process:

    encode_peers.py prepare MODEL_FOLDER TO TEXTS   makes the files of all variants
    encode_peers.py WHO MODEL THREADS               answers requests from standard input
    encode_peers.py WHO MODEL THREADS TEXT          embeds that text and ends

WHO is `onnxruntime` or `openvino`, whose models are files beside a tokenizer, or `sentence-transformers`, whose
model is a folder. A request is a line, its answer a line of JSON. Times are taken here, so that starting Python and
passing text do not count. Only what a peer needs itself is imported: the rest would count as its memory."""

import json
import os
import shutil
import sys
import time

BATCH = 32
TOKENS = 256
# Values that the closer of the rounded variants round together; ours has as many.
GROUP = 32


class Graph:
    """What sentence-transformers does, with less around it: the tokenizer, the graph and pooling in NumPy."""

    def __init__(self, path):
        import numpy

        self.numpy = numpy
        self.tokenizer = tokenizer(os.path.dirname(path))

    def batch(self, texts):
        numpy = self.numpy
        inputs = tokens(numpy, self.tokenizer, texts)
        hidden = self.run(inputs)
        weights = inputs["attention_mask"].astype(numpy.float32)[:, None, :]
        vectors = (weights @ hidden)[:, 0] / weights.sum(2)
        return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)

    def embed(self, texts):
        # Texts of similar length share a batch, which is the way to spare padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        made = [None] * len(texts)
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            for i, vector in zip(part, self.batch([texts[i] for i in part])):
                made[i] = vector
        return self.numpy.stack(made)


def tokenizer(folder):
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    made.enable_truncation(TOKENS)
    made.enable_padding()
    return made


def tokens(numpy, tokenizer, texts):
    """The inputs of the graph."""
    encodings = tokenizer.encode_batch(texts)
    ids = numpy.array([e.ids for e in encodings], numpy.int64)
    mask = numpy.array([e.attention_mask for e in encodings], numpy.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}


class OnnxRuntime(Graph):
    def __init__(self, path, threads):
        super().__init__(path)
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, inputs):
        return self.session.run(None, inputs)[0]


class OpenVino(Graph):
    def __init__(self, path, threads):
        super().__init__(path)
        import openvino

        # In f32 it is to compute in f32, also where the processor has bf16.
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        if path.endswith("-groups.xml"):
            settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = GROUP
        self.model = openvino.Core().compile_model(path, "CPU", settings)

    def run(self, inputs):
        return self.model(inputs)[0]


class SentenceTransformers:
    def __init__(self, folder, threads):
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        torch.set_num_threads(threads)
        self.model = SentenceTransformer(folder, device="cpu")

    def embed(self, texts):
        # It sorts by length itself.
        return self.model.encode(texts, batch_size=BATCH, show_progress_bar=False)


WHO = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "sentence-transformers": SentenceTransformers}


def export(folder, to):
    """The model as it is in PyTorch. Written with the exporter whose graphs the optimizer below knows."""
    import torch
    from transformers import AutoModel

    class LastState(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, token_type_ids):
            named = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
            return self.model(input_ids=input_ids, **named).last_hidden_state

    model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    ids = torch.full((2, 16), 1000)
    mask = torch.ones_like(ids)
    mask[1, 10:] = 0
    inputs, output = ["input_ids", "attention_mask", "token_type_ids"], "last_hidden_state"
    with torch.no_grad():
        torch.onnx.export(
            LastState(model),
            (ids, mask, torch.zeros_like(ids)),
            to,
            input_names=inputs,
            output_names=[output],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in [*inputs, output]},
            opset_version=17,
            dynamo=False,
        )


def to_openvino(to, onnx_file, texts):
    """OpenVINO's own files: in f32, and in 8 bits with ranges found on some texts, as its documentation has it."""
    import nncf
    import numpy
    import openvino

    model = openvino.convert_model(onnx_file)
    openvino.save_model(model, os.path.join(to, "f32.xml"), compress_to_fp16=False)
    made = tokenizer(to)
    dataset = nncf.Dataset(texts, lambda text: tokens(numpy, made, [text]))
    rounded = nncf.quantize(
        model, dataset, model_type=nncf.ModelType.TRANSFORMER, subset_size=min(300, len(texts))
    )
    openvino.save_model(rounded, os.path.join(to, "int8.xml"))
    # Only the weights, a scale for each of their columns; the rows when they are multiplied.
    rounded = nncf.compress_weights(openvino.convert_model(onnx_file), mode=nncf.CompressWeightsMode.INT8_SYM)
    openvino.save_model(rounded, os.path.join(to, "int8-groups.xml"))


def prepare(folder, to, texts):
    """Which variant is the fastest depends on the machine, so the usual ones are made and all are tried: the
    graph as exported (the session optimizes it when it opens it) and with the operators for transformers; in
    8 bits a scale for each matrix, for each of its columns and for each block of these."""
    import logging

    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    from onnxruntime.transformers import optimizer

    # They tell of every tensor.
    logging.disable(logging.WARNING)
    config = json.load(open(os.path.join(folder, "config.json")))
    heads, width = config["num_attention_heads"], config["hidden_size"]
    os.makedirs(to, exist_ok=True)
    shutil.copy(os.path.join(folder, "tokenizer.json"), to)
    path = lambda name: os.path.join(to, name + ".onnx")
    export(folder, path("f32-plain"))
    fused = optimizer.optimize_model(path("f32-plain"), "bert", num_heads=heads, hidden_size=width, opt_level=0)
    attentions = fused.get_fused_operator_statistics()["Attention"]
    if attentions != config["num_hidden_layers"]:
        raise SystemExit(f"only {attentions} attentions were recognized: the variant would be none")
    fused.save_model_to_file(path("f32-fused"))
    for graph in ["plain", "fused"]:
        for scales, each in [("matrix", False), ("column", True)]:
            quantize_dynamic(
                path(f"f32-{graph}"),
                path(f"int8-{graph}-{scales}"),
                per_channel=each,
                weight_type=QuantType.QInt8,
                # The types of the operators for transformers are not inferred.
                extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
            )
        # Level 4 of accuracy is the one that multiplies bytes.
        blocks = MatMulNBitsQuantizer(
            onnx.load(path(f"f32-{graph}")), bits=8, block_size=GROUP, is_symmetric=True, accuracy_level=4
        )
        blocks.process()
        blocks.model.save_model_to_file(path(f"int8-{graph}-blocks"))
    to_openvino(to, path("f32-plain"), json.load(open(texts, encoding="utf-8")))
    # The stamp is written last.
    open(os.path.join(to, "made"), "w").close()


def main(who, model, threads, *text):
    peer = WHO[who](model, int(threads))
    if text:
        print(peer.embed(list(text))[0].tolist(), flush=True)
        return
    lists = {}
    for line in sys.stdin:
        name, path, argument = line.rstrip("\n").split("\t")
        if path not in lists:
            lists[path] = json.load(open(path, encoding="utf-8"))
        texts = lists[path]
        if name == "embed":
            answer = []
            for _ in range(int(argument)):
                start = time.perf_counter()
                peer.embed(texts)
                answer.append(time.perf_counter() - start)
        elif name == "vectors":
            peer.embed(texts).astype("<f4").tofile(argument)
            answer = None
        else:
            raise SystemExit(f"unknown: {line}")
        print(json.dumps(answer), flush=True)


if sys.argv[1] == "prepare":
    prepare(*sys.argv[2:])
else:
    main(*sys.argv[1:])
