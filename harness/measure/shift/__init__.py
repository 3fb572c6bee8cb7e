"""How far a stage moved the model: distributions, weights, answers, and the rows trained on."""
