"""Divergences between a student's and a teacher's next-token distributions.

Pure functions on logits [N, V] at the same N positions; natural logarithm; computed from log-softmax in the inputs'
dtype, at least fp32. "Forward" is KL(teacher || student), "reverse" is KL(student || teacher). The teacher's logits
carry no gradient. Conventions as in GKD (2306.13649): TRL, SDFT, SDPO and OPSD share them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cl_bench.harness.models.vocabulary import shared_vocabulary_size
from cl_bench.methods.training.losses import at_least_fp32


class Divergence(Protocol):
    """Student logits [N, V], teacher logits [N, V] and the N tokens that stand there, to a value per position [N]."""

    def __call__(self, student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Compare; ``tokens`` matter to forms that look at the sampled token alone."""
        ...


Head = Callable[[Tensor], Tensor]
"""Hidden states [N, D] -> logits [N, V]."""

Support = Literal["student", "teacher"]
Rest = Literal["tail", "renormalise"]

_WHOLE_BELOW = 1 << 24
"""Logit entries under which positions are not chunked (recomputation would cost more than it saves)."""


def forward_kl(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
    """KL(teacher || student) at each position, [N]. Gradient on the student's logits: p_student - p_teacher."""
    return _forward(*log_probs(student_logits, teacher_logits))


def reverse_kl(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
    """KL(student || teacher) at each position, [N]."""
    return _reverse(*log_probs(student_logits, teacher_logits))


def jensen_shannon(alpha: float) -> Divergence:
    """Generalised JSD: (1-a) KL(S || M) + a KL(T || M) with M = (1-a) S + a T.

    The ends are special-cased to the forward (0) and reverse (1) KL, as in GKD; the divergence itself tends to zero
    there.
    """
    of_log_probs = _jensen_shannon(alpha)

    def divergence(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
        return of_log_probs(*log_probs(student_logits, teacher_logits))

    return divergence


def divergence_of(alpha: float, k: int | None = None, support: Support = "student", rest: Rest = "tail") -> Divergence:
    """Generalised JSD (see ``jensen_shannon``), over the vocabulary or on the k likeliest tokens of one of the models.

    Both models' true log-probabilities are taken on the support.

    Args:
        alpha: 0 forward KL, 1 reverse KL, between: JSD.
        k: Tokens of the support; None for the full vocabulary. With ``tail`` and k = V the two are the same.
        support: Whose likeliest tokens: the student's in SDPO (2601.20802), the teacher's in OPSD (2601.18734).
        rest: ``tail`` puts all other tokens into one bucket; ``renormalise`` leaves them out.
    """
    if k is None:
        return jensen_shannon(alpha)
    of_log_probs, size = _jensen_shannon(alpha), k

    def divergence(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
        both = log_probs(student_logits, teacher_logits)
        owner = both[0] if support == "student" else both[1]
        chosen = owner.detach().topk(min(size, owner.shape[-1]), dim=-1).indices
        student, teacher = (_with_rest(one.gather(-1, chosen), rest) for one in both)
        return of_log_probs(student, teacher)

    return divergence


def sampled_token(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
    """Policy-gradient form of the reverse KL on the sampled tokens alone, [N]: its gradient is right, its value is not.

    Minus the detached log-ratio of teacher to student, times the student's log-probability.
    """
    if tokens is None:
        raise ValueError("the sampled-token form needs the tokens")
    student, teacher = (one.gather(-1, tokens[:, None])[:, 0] for one in log_probs(student_logits, teacher_logits))
    return -(teacher - student).detach() * student


def tempered(divergence: Divergence, temperature: float) -> Divergence:
    """The divergence of both models' logits divided by a temperature; no rescaling of the result."""
    if temperature == 1:
        return divergence

    def at_temperature(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
        return divergence(student_logits / temperature, teacher_logits / temperature, tokens)

    return at_temperature


def log_probs(student_logits: Tensor, teacher_logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities of both models over the vocabulary that they share; the teacher's carry no gradient."""
    # Padding rows of the larger table are cut before the softmax: they are no tokens.
    size = shared_vocabulary_size(student_logits.shape[-1], teacher_logits.shape[-1])
    student = at_least_fp32(student_logits[..., :size]).log_softmax(-1)
    teacher = at_least_fp32(teacher_logits[..., :size]).detach().log_softmax(-1)
    return student, teacher


def token_log_probs(head: Head, hidden: Tensor, tokens: Tensor, temperature: float, chunk: int = 256) -> Tensor:
    """Log-probability of each token, [N], with gradient, a chunk of positions at a time."""

    def part(states: Tensor, ids: Tensor) -> Tensor:
        log_probs = (at_least_fp32(head(states)) / temperature).log_softmax(-1)
        return log_probs.gather(-1, ids[:, None])[:, 0]

    if len(tokens) <= chunk:
        return part(hidden, tokens)
    starts = range(0, len(tokens), chunk)
    pieces = [checkpoint(part, hidden[i : i + chunk], tokens[i : i + chunk], use_reentrant=False) for i in starts]
    return torch.cat([piece for piece in pieces if isinstance(piece, Tensor)])


def importance_weights(log_probs: Tensor, old_log_probs: Tensor, largest: float) -> Tensor:
    """Probability ratio of each token against the policy that drew it, cut at ``largest``; a constant, [N]."""
    return (log_probs.detach() - old_log_probs).clamp(-20, 20).exp().clamp(max=largest)


def chunked(
    divergence: Divergence,
    student_hidden: Tensor,
    teacher_hidden: Tensor,
    student_head: Head,
    teacher_head: Head,
    vocabulary: int,
    tokens: Tensor | None = None,
    chunk: int = 256,
) -> Tensor:
    """A divergence from hidden states [N, D], a chunk of positions at a time: never two full logit tensors alive.

    The logits of a chunk are recomputed in the backward pass. Small problems are done in one piece.

    Args:
        divergence: Which.
        student_hidden: [N, D_student], with gradient.
        teacher_hidden: [N, D_teacher].
        student_head: Student's hidden states to logits.
        teacher_head: Teacher's hidden states to logits.
        vocabulary: Number of logit columns, to decide whether chunking pays.
        tokens: The tokens at the positions, [N], for divergences that need them.
        chunk: Positions in a chunk.

    Returns:
        Divergence at each position, [N].
    """

    def part(student_part: Tensor, teacher_part: Tensor, tokens_part: Tensor | None) -> Tensor:
        with torch.no_grad():
            teacher_logits = teacher_head(teacher_part)
        return divergence(student_head(student_part), teacher_logits, tokens_part)

    count = student_hidden.shape[0]
    if count * vocabulary <= _WHOLE_BELOW:
        return part(student_hidden, teacher_hidden, tokens)
    pieces = []
    for start in range(0, count, chunk):
        where = slice(start, start + chunk)
        own = None if tokens is None else tokens[where]
        pieces.append(checkpoint(part, student_hidden[where], teacher_hidden[where], own, use_reentrant=False))
    return torch.cat([piece for piece in pieces if isinstance(piece, Tensor)])


def _forward(student: Tensor, teacher: Tensor) -> Tensor:
    return (teacher.exp() * (teacher - student)).sum(-1)


def _reverse(student: Tensor, teacher: Tensor) -> Tensor:
    return (student.exp() * (student - teacher)).sum(-1)


def _jensen_shannon(alpha: float) -> Callable[[Tensor, Tensor], Tensor]:
    if alpha == 0:
        return _forward
    if alpha == 1:
        return _reverse

    def divergence(student: Tensor, teacher: Tensor) -> Tensor:
        weights = torch.tensor([1 - alpha, alpha], dtype=student.dtype, device=student.device).log()
        mixture = torch.logsumexp(torch.stack([student + weights[0], teacher + weights[1]]), dim=0)
        student_part = (student.exp() * (student - mixture)).sum(-1)
        teacher_part = (teacher.exp() * (teacher - mixture)).sum(-1)
        return (1 - alpha) * student_part + alpha * teacher_part

    return divergence


def _with_rest(chosen: Tensor, rest: Rest) -> Tensor:
    inside = chosen.logsumexp(-1, keepdim=True)
    if rest == "renormalise":
        return chosen - inside
    # Rounding may put the support's sum at one; the tail then has the smallest probability that is told apart.
    outside = torch.log(-torch.expm1(inside.clamp(max=-1e-7)))
    return torch.cat([chosen, outside], dim=-1)
