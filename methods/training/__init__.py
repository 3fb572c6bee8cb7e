"""What both trainers share."""
