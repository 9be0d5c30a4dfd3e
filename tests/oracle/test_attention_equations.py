"""The paper's model as section 2 prints it, word by word, against the network that is used."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from simplexity.models.attention import Attentional, AttentionalConfig

SIZE, LAYERS = 6, 2


def network(training: bool) -> Attentional:
    torch.manual_seed(3)
    sizes = {"embedding_size": 5, "hidden_size": SIZE, "alignment_size": 4}
    config = AttentionalConfig(9, 8, **sizes, decoder_layers=LAYERS, dropout=0.0)
    found = Attentional(config).double().train(training)
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return found


def cell(gates: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM's output and cell; gates in the order kept, written, shown, new."""
    kept, written, shown, new = gates.chunk(4)
    after = kept.sigmoid() * before + written.sigmoid() * new.tanh()
    return shown.sigmoid() * after.tanh(), after


def printed(net: Attentional, source: list[int], target: list[int]) -> Tensor:
    """log p_i at every position of one sentence, by the printed equations."""
    words = net.source_embedding.weight[source]
    ahead = net.readers[0](words[None])[0][0]
    back = net.backward_readers[0](words.flip(0)[None])[0][0].flip(0)
    h = torch.cat([ahead, back], -1)
    g = net.start_output(h.mean(0)).tanh().view(LAYERS, SIZE)
    memory = net.start_cell(h.mean(0)).view(LAYERS, SIZE)
    found = []
    for word in target:
        e = net.attention_score((net.attention_query(g[-1]) + net.attention_key(h)).tanh())
        c = e.softmax(0).squeeze(-1) @ h
        y = net.target_embedding.weight[word]
        gates = net.word_gates(y) + net.context_gates(c) + net.recurrent_gates[0](g[0])
        first = cell(gates, memory[0])
        second = cell(net.input_gates[0](first[0]) + net.recurrent_gates[1](g[1]), memory[1])
        g, memory = (torch.stack(pair) for pair in zip(first, second, strict=True))
        hidden = net.readout(torch.cat([c, y, g[-1]])).tanh()
        found.append(net.output(hidden).log_softmax(-1))
    return torch.stack(found)


@pytest.mark.parametrize("training", [True, False])
def test_the_network_is_what_the_paper_prints(training: bool) -> None:
    net = network(training)
    source, target = [4, 8, 5, 2], [1, 7, 4, 6, 5]
    mask = torch.ones(1, len(source), dtype=torch.bool)
    logits = net(torch.tensor([source]), mask, torch.tensor([target])).logits
    torch.testing.assert_close(logits[0].log_softmax(-1), printed(net, source, target))


def test_half_precision_is_near() -> None:
    net = network(False).float()
    source, target = torch.tensor([[4, 8, 5, 2]]), torch.tensor([[1, 7, 4, 6, 5]])
    mask = torch.ones_like(source, dtype=torch.bool)
    full = net(source, mask, target).logits.log_softmax(-1)
    with torch.autocast("cpu", torch.bfloat16):
        half = net(source, mask, target).logits.float().log_softmax(-1)
    assert not torch.equal(full, half)
    torch.testing.assert_close(half, full, rtol=0, atol=0.15)
