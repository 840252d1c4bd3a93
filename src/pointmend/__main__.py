"""`python -m pointmend` is the same as `pointmend`."""

from pointmend.cli.main import entry

if __name__ == "__main__":
    entry()
