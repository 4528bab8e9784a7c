#!/usr/bin/env python3
"""The DeepFM of `make bench-train` in PyTorch: prints examples/s of one mode as JSON.

Rows are trained with AdaGrad, the net with Adam, batches are in memory before the clock starts. The
peer is handed dense row numbers (bounded Zipf 1.05 over the 5 M rows of one table that all slots
share), never keys.
Modes: eager (nn.EmbeddingBag with sparse gradients) and fbgemm (table-batched embeddings with fused
AdaGrad); both with --compile for torch.compile of the net.
"""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn

SHAPES = {  # slots, values a slot, dense columns, dim, hidden
    "criteo": (26, 1, 13, 16, (400, 400, 400)),
    "ads100": (20, 5, 0, 8, (64, 32)),
    "ads500": (50, 10, 0, 8, (64, 32)),
}
ROWS = 5_000_000
BATCH = 4096


def zipf(rng, n, s, size):
    """Ranks of a bounded power law, by inverting its continuous form."""
    u = rng.random(size)
    top = (n + 1) ** (1 - s)
    return np.minimum(((u * (top - 1) + 1) ** (1 / (1 - s))).astype(np.int64) - 1, n - 1)


class Net(nn.Module):
    """FM over the slots' vectors + MLP over vectors and dense columns + linear terms."""

    def __init__(self, slots, dense, dim, hidden):
        super().__init__()
        self.slots, self.dim = slots, dim
        widths = [slots * dim + dense, *hidden]
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.mlp = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
        self.wide = nn.Linear(dense, 1) if dense else None
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, vectors, linear, dense):
        v = vectors.view(-1, self.slots, self.dim)
        total = v.sum(1)
        fm = 0.5 * (total * total - (v * v).sum(1)).sum(1)
        x = vectors if self.wide is None else torch.cat([vectors, dense], 1)
        logit = fm + self.mlp(x).squeeze(1) + linear + self.bias
        return logit if self.wide is None else logit + self.wide(dense).squeeze(1)


class EagerTables:
    def __init__(self, slots, dim):
        self.vectors = nn.EmbeddingBag(ROWS, dim, mode="sum", sparse=True)
        self.linear = nn.EmbeddingBag(ROWS, 1, mode="sum", sparse=True)
        nn.init.uniform_(self.vectors.weight, -0.01, 0.01)
        nn.init.zeros_(self.linear.weight)
        self.optimizer = torch.optim.Adagrad(
            [self.vectors.weight, self.linear.weight], lr=0.05, eps=1e-8)
        self.slots, self.dim = slots, dim

    def prepare(self, ranks):  # [batch, slots, values]
        batch, slots, values = ranks.shape
        rows = torch.from_numpy(ranks.reshape(-1))
        return rows, torch.arange(0, batch * slots * values, values)

    def forward(self, inputs):
        rows, offsets = inputs
        vectors = self.vectors(rows, offsets).view(-1, self.slots * self.dim)
        return vectors, self.linear(rows, offsets).view(-1, self.slots).sum(1)

    def zero(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()


class FbgemmTables:
    """One lookup for both: the linear weight is the first of four more columns (dims go by four)."""

    def __init__(self, slots, dim):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)
        self.tables = SplitTableBatchedEmbeddingBagsCodegen(
            [(ROWS, dim + 4, EmbeddingLocation.HOST, ComputeDevice.CPU)],
            feature_table_map=[0] * slots,
            optimizer=EmbOptimType.EXACT_ADAGRAD, learning_rate=0.05, eps=1e-8)
        self.tables.init_embedding_weights_uniform(-0.01, 0.01)
        self.slots, self.dim = slots, dim

    def prepare(self, ranks):  # slot-major, as this library wants it
        batch, slots, values = ranks.shape
        rows = np.ascontiguousarray(ranks.transpose(1, 0, 2)).reshape(-1)
        offsets = torch.arange(0, batch * slots * values + 1, values)
        return torch.from_numpy(rows), offsets

    def forward(self, inputs):
        out = self.tables(*inputs).view(-1, self.slots, self.dim + 4)
        return out[:, :, :self.dim].reshape(-1, self.slots * self.dim), out[:, :, self.dim].sum(1)

    def zero(self):
        pass

    def step(self):
        pass  # fused into the backward pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--mode", choices=["eager", "fbgemm"], required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batches", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    slots, values, dense_columns, dim, hidden = SHAPES[args.shape]
    rng = np.random.default_rng(1)
    tables = (EagerTables if args.mode == "eager" else FbgemmTables)(slots, dim)
    net = Net(slots, dense_columns, dim, hidden)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    forward = torch.compile(net) if args.compile else net
    batches = []
    for _ in range(args.batches):
        ranks = zipf(rng, ROWS, 1.05, (BATCH, slots, values))
        batches.append((tables.prepare(ranks),
                        torch.from_numpy(rng.standard_normal((BATCH, dense_columns), np.float32)),
                        torch.from_numpy((rng.random(BATCH) < 0.25).astype(np.float32))))
    loss_of = nn.BCEWithLogitsLoss()

    def train(batch):
        inputs, dense, labels = batch
        optimizer.zero_grad()
        tables.zero()
        vectors, linear = tables.forward(inputs)
        loss_of(forward(vectors, linear, dense), labels).backward()
        tables.step()
        optimizer.step()

    for batch in batches[:4]:  # compile, touch
        train(batch)
    times = []
    start = time.perf_counter()
    i = 0
    while time.perf_counter() - start < args.seconds or i < args.batches:
        t = time.perf_counter()
        train(batches[i % args.batches])
        times.append(time.perf_counter() - t)
        i += 1
    print(json.dumps({
        "shape": args.shape, "mode": args.mode + ("+compile" if args.compile else ""),
        "threads": args.threads, "torch": torch.__version__,
        "mean": BATCH / (sum(times) / len(times)), "best": BATCH / min(times)}))


if __name__ == "__main__":
    main()
