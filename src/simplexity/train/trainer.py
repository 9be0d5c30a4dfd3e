"""Maximum likelihood training (paper, eq. 3) as a generator of events.

The loop tells what happened and keeps no other ears: progress bars, logs and tests read the events.
Every random choice is a function of the seed and of the step, so a resumed run repeats the unbroken
one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simplexity.errors import SimplexityError
from simplexity.train.checkpoint import Progress, load_checkpoint, save_checkpoint, save_whole
from simplexity.train.distributed import Workers
from simplexity.train.examples import Batch, Examples, collate, in_order, plan


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the outcome of a run, besides model and data."""

    learning_rate: float = 1e-3
    warmup: int = 200
    clip: float = 1.0
    label_smoothing: float = 0.1
    batch_tokens: int = 4096
    max_epochs: int = 20
    validate_every: int | None = None
    """Updates between validations; None: once an epoch."""
    patience: int = 1
    decay: float = 0.5
    stop_after: int = 3
    average: float | None = 0.998
    precision: Literal["bf16", "fp32"] = "bf16"
    seed: int = 1
    checkpoint_every: int = 200


@dataclass(frozen=True)
class Update:
    """One step was made; `loss` is its cost per word, label smoothing included."""

    progress: Progress
    loss: Tensor
    words: int
    batches: int
    """Number of batches of this epoch."""


@dataclass(frozen=True)
class Validation:
    """The model was tried on the development set."""

    progress: Progress
    perplexity: float
    learning_rate: float
    improved: bool


Event = Update | Validation


@dataclass(frozen=True)
class Run:
    """What training needs: the network (changed in place), its data, a folder for checkpoints."""

    network: nn.Module
    train: Examples
    dev: Examples
    recipe: Recipe
    folder: Path
    workers: Workers

    def events(self) -> Iterator[Event]:
        """Train to the end, from where the folder's checkpoint stands."""
        optimiser = torch.optim.Adam(self.network.parameters(), betas=(0.9, 0.98), fused=True)
        average = [p.detach().clone() for p in self.network.parameters()]
        progress = self._resume(optimiser, average)
        while not progress.finished:
            batches = plan(self.train, self.recipe.batch_tokens, self.recipe.seed, progress.epoch)
            for indices in batches[progress.batch :]:
                loss, words = self._update(indices, optimiser, average, progress)
                progress = replace(progress, step=progress.step + 1, batch=progress.batch + 1)
                yield Update(progress, loss, words, len(batches))
                if self._is_due(progress, len(batches)):
                    progress = yield from self._validate(average, progress)
                    self._save(optimiser, average, progress)
                elif progress.step % self.recipe.checkpoint_every == 0:
                    self._save(optimiser, average, progress)
                if progress.finished:
                    return
            progress = replace(progress, epoch=progress.epoch + 1, batch=0)
            if progress.epoch >= self.recipe.max_epochs:
                progress = replace(progress, finished=True)
                self._save(optimiser, average, progress)

    def best_weights(self) -> dict[str, Tensor]:
        """The weights with the lowest dev perplexity so far."""
        if not (self.folder / "best.pt").exists():
            raise SimplexityError(
                f"Training in {self.folder} went astray: the dev perplexity was never a number; "
                "start anew with --overwrite and a lower --learning-rate."
            )
        found: dict[str, Tensor] = torch.load(self.folder / "best.pt", weights_only=True)
        return found

    def _is_due(self, progress: Progress, batches: int) -> bool:
        """Whether to validate now; the last update of all always is, whatever the interval."""
        ended = progress.batch == batches
        if self.recipe.validate_every is None:
            return ended
        final = ended and progress.epoch + 1 >= self.recipe.max_epochs
        return final or progress.step % self.recipe.validate_every == 0

    def _update(
        self,
        indices: list[int],
        optimiser: torch.optim.Optimizer,
        average: list[Tensor],
        progress: Progress,
    ) -> tuple[Tensor, int]:
        draw = self.recipe.seed * 1_000_003 + progress.step
        torch.manual_seed(draw * self.workers.size + self.workers.rank)
        words = sum(len(self.train.target[i]) + 1 for i in indices)
        self.network.train()
        loss = self._cost(self.workers.share(indices), self.recipe.label_smoothing) / words
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        loss = self.workers.sum_gradients(self.network, loss.detach())
        nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(self.recipe, progress)
        optimiser.step()
        if self.recipe.average is not None:
            # A young average forgets faster, or the random start would stay in it for long.
            keep = min(self.recipe.average, (1 + progress.step) / (10 + progress.step))
            torch._foreach_lerp_(average, list(self.network.parameters()), 1 - keep)
        return loss, words

    def _cost(self, indices: list[int], smoothing: float) -> Tensor:
        if not indices:  # fewer sentences than processes: this one only takes part in the sum
            return sum((p.sum() * 0 for p in self.network.parameters()), torch.zeros(()))
        return self._batch_cost(collate(self.train, indices), smoothing)

    def _batch_cost(self, batch: Batch, smoothing: float) -> Tensor:
        device = next(self.network.parameters()).device
        batch = batch.to(device)
        half = self.recipe.precision == "bf16"
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            logits = self.network(
                input_ids=batch.source,
                attention_mask=batch.source_mask,
                decoder_input_ids=batch.previous,
            ).logits
        real = batch.label_mask
        return F.cross_entropy(
            logits[real].float(), batch.labels[real], reduction="sum", label_smoothing=smoothing
        )

    def _validate(
        self, average: list[Tensor], progress: Progress
    ) -> Generator[Event, None, Progress]:
        rate = learning_rate(self.recipe, progress)
        with self._averaged(average):
            cost = self._dev_cost()
            improved = cost < progress.best
            if improved and self.workers.rank == 0:
                save_whole(self.folder / "best.pt", self.network.state_dict())
        progress = after_validation(self.recipe, progress, cost)
        yield Validation(progress, math.exp(min(cost, 50.0)), rate, improved)
        return progress

    @torch.no_grad()
    def _dev_cost(self) -> float:
        self.network.eval()
        batches = list(in_order(self.dev, self.recipe.batch_tokens))
        costs = [self._batch_cost(batch, 0.0) for batch in self.workers.share(batches)]
        return self.workers.sum_number(sum(float(c) for c in costs)) / self.dev.words

    @contextmanager
    def _averaged(self, average: list[Tensor]) -> Iterator[None]:
        """Within, the network has its averaged weights."""
        if self.recipe.average is None:
            yield
            return
        parameters: list[Tensor] = list(self.network.parameters())
        kept = [p.detach().clone() for p in parameters]
        with torch.no_grad():
            torch._foreach_copy_(parameters, average)
            yield
            torch._foreach_copy_(parameters, kept)

    def _resume(self, optimiser: torch.optim.Optimizer, average: list[Tensor]) -> Progress:
        found = load_checkpoint(self.folder / "checkpoint.pt", self._signature())
        if found is None:
            return Progress()
        progress, parts = found
        self.network.load_state_dict(parts["network"])
        optimiser.load_state_dict(parts["optimiser"])
        for mine, saved in zip(average, parts["average"], strict=True):
            mine.copy_(saved)
        return progress

    def _save(
        self, optimiser: torch.optim.Optimizer, average: list[Tensor], progress: Progress
    ) -> None:
        if self.workers.rank == 0:
            parts: dict[str, Any] = {"network": self.network.state_dict(), "average": average}
            parts["optimiser"] = optimiser.state_dict()
            path = self.folder / "checkpoint.pt"
            save_checkpoint(path, progress, parts, self._signature())
        self.workers.wait()

    def _signature(self) -> str:
        # Limits may be raised when a run goes on; all else would make it another run.
        fixed = {k: v for k, v in asdict(self.recipe).items() if k != "max_epochs"}
        return json.dumps({**fixed, "pairs": len(self.train), "dev pairs": len(self.dev)})


def learning_rate(recipe: Recipe, progress: Progress) -> float:
    """Linear warm-up, then a constant that falls when the dev set stops improving."""
    warm = min(1.0, (progress.step + 1) / max(recipe.warmup, 1))
    return recipe.learning_rate * warm * recipe.decay**progress.decays


def after_validation(recipe: Recipe, progress: Progress, cost: float) -> Progress:
    """Remember the best; lower the rate after `patience` failures, stop after enough decays."""
    if math.isnan(cost):  # no further step would lead back
        return replace(progress, finished=True)
    if cost < progress.best:
        return replace(progress, best=cost, waiting=0)
    if progress.waiting + 1 <= recipe.patience:
        return replace(progress, waiting=progress.waiting + 1)
    if progress.decays >= recipe.stop_after:
        return replace(progress, finished=True)
    return replace(progress, waiting=0, decays=progress.decays + 1)
