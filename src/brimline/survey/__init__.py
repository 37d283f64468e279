"""All sessions on a machine: which there are, what each holds, and what they add up to."""
