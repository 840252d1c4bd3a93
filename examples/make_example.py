"""Make the noisy cloud that `pointmend demo` denoises: python examples/make_example.py."""

from pointmend.evaluation.example import EXAMPLE, write_example

if __name__ == "__main__":
    EXAMPLE.parent.mkdir(exist_ok=True)
    write_example(EXAMPLE)
