"""What a run may spend on language models: tokens, or dollars at a price; what comes after that is not run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from memstory.results.outcomes import CaseResult

SPENT_NAME: Final = "spent.txt"
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many tokens, and dollars at `price` (of a million tokens of prompts and of answers), a run may spend.

    What the processes of a run have spent is in `file`, a line for each case.
    """

    file: Path
    tokens: int | None = None
    dollars: float | None = None
    price: tuple[float, float] = (0.0, 0.0)

    @property
    def is_limited(self) -> bool:
        """Whether the run may not spend what it likes."""
        return self.tokens is not None or self.dollars is not None

    def clear(self) -> None:
        """Forget what an earlier run has spent."""
        self.file.unlink(missing_ok=True)

    def note(self, result: CaseResult) -> None:
        """Add what a case has spent."""
        if not self.is_limited:
            return
        uses = [use for trial in result.trials for _, use in trial.model_uses()]
        prompt, answer = (sum(getattr(one, name) or 0 for one in uses) for name in ("prompt_tokens", "answer_tokens"))
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as file:
            # In one write: several processes append.
            file.write(f"{prompt} {answer}\n")

    def reason_to_stop(self) -> str | None:
        """Return why no other case is to run, or None."""
        if not self.is_limited or not self.file.exists():
            return None
        counts = [tuple(map(int, line.split())) for line in self.file.read_text().splitlines()]
        prompt, answer = (sum(count[place] for count in counts) for place in (0, 1))
        if self.tokens is not None and prompt + answer >= self.tokens:
            return f"budget exhausted: {prompt + answer:,} of {self.tokens:,} tokens (--max-tokens) were used before it"
        spent = (prompt * self.price[0] + answer * self.price[1]) / _MILLION
        if self.dollars is not None and spent >= self.dollars:
            return f"budget exhausted: ${spent:.4f} of ${self.dollars:g} (--max-cost) were spent before it"
        return None


def budget_of(config: pytest.Config, folder: Path) -> Budget:
    """Return the budget that was typed; its file is in the `folder` of the report.

    Raises:
        pytest.UsageError: there is no price for the cost.
    """
    tokens, dollars = config.getoption("memstory_max_tokens"), config.getoption("memstory_max_cost")
    price = config.getoption("memstory_price")
    if dollars is not None and price is None:
        raise pytest.UsageError(
            "--max-cost needs the price of a million tokens of prompts and of answers: --price 0.15/0.60"
        )
    return Budget(file=folder / SPENT_NAME, tokens=tokens, dollars=dollars, price=price or (0.0, 0.0))
