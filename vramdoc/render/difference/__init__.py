"""What grew between two runs, and what a baseline holds, as text: pure functions, imported where they are asked for."""
