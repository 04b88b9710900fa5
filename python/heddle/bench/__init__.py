"""Times ops next to their peers on this machine: `python -m heddle.bench --suite smoke`."""
