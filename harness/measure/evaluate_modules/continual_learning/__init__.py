"""The script that ``evaluate.load`` runs; the package exists so that the wheel holds it."""
