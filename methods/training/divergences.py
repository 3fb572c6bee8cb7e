"""Divergences between a student's and a teacher's next-token distributions.

Pure functions on logits [N, V] at the same N positions; natural logarithm; computed from log-softmax in the inputs'
dtype, at least fp32. "Forward" is KL(teacher || student), "reverse" is KL(student || teacher). The teacher's logits
carry no gradient. Conventions as in GKD (2306.13649): TRL, SDFT, SDPO and OPSD share them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cl_bench.harness.models.vocabulary import shared_vocabulary_size
from cl_bench.methods.training.losses import at_least_fp32

Divergence = Callable[[Tensor, Tensor], Tensor]
"""(student logits [N, V], teacher logits [N, V]) -> divergence per position [N]."""

Head = Callable[[Tensor], Tensor]
"""Hidden states [N, D] -> logits [N, V]."""

_WHOLE_BELOW = 1 << 24
"""Logit entries under which positions are not chunked (recomputation would cost more than it saves)."""


def forward_kl(student_logits: Tensor, teacher_logits: Tensor) -> Tensor:
    """KL(teacher || student) at each position, [N]. Gradient on the student's logits: p_student - p_teacher."""
    student, teacher = _log_probs(student_logits, teacher_logits)
    return (teacher.exp() * (teacher - student)).sum(-1)


def reverse_kl(student_logits: Tensor, teacher_logits: Tensor) -> Tensor:
    """KL(student || teacher) at each position, [N]."""
    student, teacher = _log_probs(student_logits, teacher_logits)
    return (student.exp() * (student - teacher)).sum(-1)


def jensen_shannon(alpha: float) -> Divergence:
    """Generalised JSD: (1-a) KL(S || M) + a KL(T || M) with M = (1-a) S + a T.

    The ends are special-cased to the forward (0) and reverse (1) KL, as in GKD; the divergence itself tends to zero
    there.
    """
    if alpha == 0:
        return forward_kl
    if alpha == 1:
        return reverse_kl

    def divergence(student_logits: Tensor, teacher_logits: Tensor) -> Tensor:
        student, teacher = _log_probs(student_logits, teacher_logits)
        weights = torch.tensor([1 - alpha, alpha], dtype=student.dtype, device=student.device).log()
        mixture = torch.logsumexp(torch.stack([student + weights[0], teacher + weights[1]]), dim=0)
        student_part = (student.exp() * (student - mixture)).sum(-1)
        teacher_part = (teacher.exp() * (teacher - mixture)).sum(-1)
        return (1 - alpha) * student_part + alpha * teacher_part

    return divergence


def chunked(
    divergence: Divergence,
    student_hidden: Tensor,
    teacher_hidden: Tensor,
    student_head: Head,
    teacher_head: Head,
    vocabulary: int,
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
        chunk: Positions in a chunk.

    Returns:
        Divergence at each position, [N].
    """

    def part(student_part: Tensor, teacher_part: Tensor) -> Tensor:
        with torch.no_grad():
            teacher_logits = teacher_head(teacher_part)
        return divergence(student_head(student_part), teacher_logits)

    count = student_hidden.shape[0]
    if count * vocabulary <= _WHOLE_BELOW:
        return part(student_hidden, teacher_hidden)
    pieces = [
        checkpoint(part, student_hidden[i : i + chunk], teacher_hidden[i : i + chunk], use_reentrant=False)
        for i in range(0, count, chunk)
    ]
    return torch.cat([piece for piece in pieces if isinstance(piece, Tensor)])


def _log_probs(student_logits: Tensor, teacher_logits: Tensor) -> tuple[Tensor, Tensor]:
    # Padding rows of the larger table are cut before the softmax: they are no tokens.
    size = shared_vocabulary_size(student_logits.shape[-1], teacher_logits.shape[-1])
    student = at_least_fp32(student_logits[..., :size]).log_softmax(-1)
    teacher = at_least_fp32(teacher_logits[..., :size]).detach().log_softmax(-1)
    return student, teacher
